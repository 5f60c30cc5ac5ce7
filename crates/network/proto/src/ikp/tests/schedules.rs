//! Random schedules of loss, duplication, delay and reordering: every message has its reply, every byte is where it belongs.
//!
//! `STACKLINE_SCHEDULES=100000 cargo test --release -p stackline-proto ikp` walks more of them.

use super::world::{Act, START, World};
use crate::blast::{BlastHeader, BlastStrategy, BlastTimeout};
use crate::ikp::client::IkpClientState;
use crate::ikp::{Grants, IkpOptions};
use alloc::vec::Vec;
use rand_core::Rng;
use stackline_core::random::Seed;
use stackline_core::time::Duration;

extern crate std;

fn schedules() -> u64 {
    std::env::var("STACKLINE_SCHEDULES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200)
}

/// What a server's process may do, by chance.
fn script(below: &mut impl FnMut(u64) -> u64, grants: Grants, room: u32) -> Vec<Act> {
    let part = |all: u32, below: &mut dyn FnMut(u64) -> u64| {
        let from = below(u64::from(all) + 1) as u32;
        (from, below(u64::from(all - from) + 1) as u32)
    };
    let mut acts = Vec::new();
    for _ in 0..below(4) {
        acts.push(match below(4) {
            0 => Act::Think(Duration(below(400_000_000))),
            1 => {
                let (from, bytes) = part(grants.readable, below);
                Act::From(from, bytes)
            }
            _ => {
                let (from, bytes) = part(grants.writable, below);
                Act::To(from, bytes)
            }
        });
    }
    let (from, bytes) = part(grants.writable, below);
    let message = 1 + below(u64::from(room)) as u32;
    acts.push(Act::Reply(message, from, bytes.min(room - message)));
    acts
}

fn one(options: IkpOptions, seed: Seed) {
    let mut draw = seed.generator();
    let mut below = move |n: u64| draw.next_u64() % n;
    let [loss, back_off, late] = [below(30), below(15), below(30)];
    let base = 20_000 + below(2_000_000);
    let jitter = 1 + below(5 * base);
    let fixed = below(3) == 0;
    let interval = if fixed {
        BlastTimeout::Fixed(Duration(2 * base + 2 * jitter))
    } else {
        BlastTimeout::Adaptive
    };
    let forever = Duration(u64::MAX / 4);
    let options = IkpOptions {
        interval,
        patience: forever,
        memory: forever,
        ..options
    }
    .fitted();
    let mut path = seed.child("path").generator();
    let mut fate = move |n: u64| path.next_u64() % n;
    let hand = move |_: usize, _: &BlastHeader| {
        if fate(100) < loss {
            return Vec::new();
        }
        let copies = if fate(100) < back_off { 2 } else { 1 };
        (0..copies)
            .map(|_| Duration(base + if fate(100) < late { fate(jitter) } else { 0 }))
            .collect()
    };
    // Numbers wrap in every schedule.
    let mut world = World::new(options, u32::MAX - 1, hand);
    for _ in 0..4 {
        let size = |below: &mut dyn FnMut(u64) -> u64| {
            [0, below(300), below(20_000)][below(3) as usize] as u32
        };
        let grants = Grants {
            readable: size(&mut below),
            writable: size(&mut below),
        };
        world.script = script(&mut below, grants, options.room());
        world.send(below(u64::from(options.room()) + 1) as u32, grants);
        world.finish(400_000);
        assert_eq!(world.client.state(), IkpClientState::Idle);
        assert!(
            world.is_right(),
            "{options:?} {grants:?} {:?} {:?}",
            world.script,
            world.client.counters()
        );
        let deliveries = world.deliveries[&world.transaction];
        assert!(if options.once {
            deliveries == 1
        } else {
            deliveries >= 1
        });
    }
    assert_eq!(
        (
            world.client.counters().violations,
            world.server.counters().violations
        ),
        (0, 0)
    );
    assert!(
        world.now < START + Duration(3_600_000_000_000),
        "it took {}",
        world.now - START
    );
}

fn all(name: &str, options: IkpOptions) {
    for number in 0..schedules() {
        one(options, Seed::root(11).child(name).index(number));
    }
}

#[test]
fn v_brings_everything_at_least_once() {
    all(
        "v",
        IkpOptions {
            packet: 500,
            size: 4000,
            ..IkpOptions::v()
        },
    );
}

#[test]
fn suppressed_duplicates_are_delivered_once() {
    all(
        "once",
        IkpOptions {
            packet: 500,
            size: 4000,
            ..IkpOptions::once()
        },
    );
}

#[test]
fn every_strategy_moves_everything() {
    for strategy in [
        BlastStrategy::Full,
        BlastStrategy::FullNak,
        BlastStrategy::Selective,
    ] {
        let options = IkpOptions {
            strategy,
            packet: 400,
            size: 2000,
            ..IkpOptions::v()
        };
        all("strategies", options);
        all(
            "strategies once",
            IkpOptions {
                once: true,
                ..options
            },
        );
    }
}

#[test]
fn several_blasts_of_a_move_are_in_flight() {
    all(
        "flight",
        IkpOptions {
            flight: 4,
            packet: 300,
            size: 1200,
            strategy: BlastStrategy::Selective,
            ..IkpOptions::v()
        },
    );
    all(
        "window",
        IkpOptions {
            flight: 16,
            packet: 300,
            size: 300,
            ..IkpOptions::once()
        },
    );
}

#[test]
fn repeated_deliveries_do_happen() {
    // Otherwise the tests above would not test at-least-once.
    let mut replies = 0;
    let hand = move |side: usize, _: &BlastHeader| {
        replies += u32::from(side == 1);
        if side == 1 && replies == 1 {
            Vec::new()
        } else {
            alloc::vec![Duration(1000)]
        }
    };
    let mut world = World::new(IkpOptions::v(), 1, hand);
    world.script = alloc::vec![Act::Reply(32, 0, 0)];
    world.send(32, Grants::default());
    world.finish(100);
    assert_eq!((world.deliveries[&1], world.replied), (2, Some(2)));
}
