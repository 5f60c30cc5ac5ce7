//! Random schedules of loss, duplication, delay, reordering and corruption, of buffers and of applications that take late:
//! nothing is lost, nothing comes twice, it always ends.
//!
//! `STACKLINE_SCHEDULES=100000 cargo test --release -p stackline-proto schedules` walks more of them.

use super::path::{Fate, Path, START};
use crate::blast::connection::CLOSE_TIMEOUT;
use crate::blast::wire::BlastHeader;
use crate::blast::{BlastOptions, BlastPacing, BlastState, BlastStrategy, BlastTimeout};
use alloc::vec::Vec;
use rand_core::Rng;
use stackline_core::random::Seed;
use stackline_core::time::Duration;

extern crate std;

fn schedules() -> u64 {
    std::env::var("STACKLINE_SCHEDULES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100)
}

/// What is agreed upon in one schedule, where `below` draws.
fn vary(
    options: BlastOptions,
    base: u64,
    jitter: u64,
    below: &mut impl FnMut(u64) -> u64,
) -> BlastOptions {
    let fixed = below(3) == 0;
    let interval = if fixed {
        BlastTimeout::Fixed(Duration(2 * base + 2 * jitter))
    } else {
        BlastTimeout::Adaptive
    };
    let pacing = match below(6) {
        0 => BlastPacing::Ceiling(1e6 * (1 + below(1000)) as f64),
        1 => BlastPacing::Auto,
        _ => BlastPacing::Off,
    };
    // A third has room for little more than a packet, or for a part of a blast.
    let buffer = match below(6) {
        0 => 1 + below(3 * u64::from(options.packet)),
        1 => 1 + below(2 * u64::from(options.size)),
        _ => options.buffer,
    };
    let flight = if options.flight > 1 && below(2) == 0 {
        1 + below(8) as u32
    } else {
        options.flight
    };
    let nak_delay = options.nak_delay.filter(|_| !fixed || below(2) == 0);
    let patience = Duration(u64::MAX / 4);
    BlastOptions {
        interval,
        pacing,
        buffer,
        flight,
        nak_delay,
        patience,
        checked: below(4) == 0,
        ..options
    }
}

/// One random schedule for one kind of connection.
fn one(options: BlastOptions, seed: Seed) {
    let mut draw = seed.generator();
    let mut below = move |n: u64| draw.next_u64() % n;
    let [loss, back_off, late] = [below(30), below(10), below(20)];
    let base = 20_000 + below(2_000_000);
    let jitter = 1 + below(3 * base);
    let sizes: Vec<u64> = (0..1 + below(3))
        .map(|_| size(&options, below(5), below(40_000)))
        .collect();
    let back = below(2) * below(20_000);
    let options = vary(options, base, jitter, &mut below);
    // A fixed interval that is shorter than its blast takes fills a path without end.
    let slow = u64::from(options.interval == BlastTimeout::Adaptive);
    let (slot, spoil) = (slow * below(2) * below(100_000), 300 + below(3000));
    let at_once = [below(4) > 0, below(4) > 0];
    let fate = move |_: usize, _: &BlastHeader| {
        if below(100) < loss {
            return Vec::new();
        }
        let copies = if below(100) < back_off { 2 } else { 1 };
        (0..copies)
            .map(|_| Duration(base + if below(100) < late { below(jitter) } else { 0 }))
            .collect()
    };
    let mut path = Path::new([options; 2], fate);
    (path.slot, path.spoil) = (Duration(slot), if options.checked { spoil } else { 0 });
    path.open();
    (path.ends[0].takes, path.ends[1].takes) = (at_once[0], at_once[1]);
    let mut application = seed.child("application").generator();
    for (place, size) in sizes.iter().enumerate() {
        path.send(0, *size);
        path.send(1, back);
        if place + 1 == sizes.len() {
            path.ends.iter_mut().for_each(|end| end.connection.finish());
        }
        path.finish(400_000, || {
            application
                .next_u64()
                .is_multiple_of(8)
                .then(|| application.next_u64() as u8)
        });
    }
    arrived(&mut path, sizes.iter().sum(), back * sizes.len() as u64);
}

/// Everything has arrived each way, nothing else, and the connection can be closed.
fn arrived<F: FnMut(usize, &BlastHeader) -> Fate>(path: &mut Path<F>, total: u64, back: u64) {
    let options = *path.ends[0].connection.options();
    assert!(
        path.arrived(0, total),
        "{options:?} {total} {:?}",
        path.ends[1].connection.facts()
    );
    assert!(path.arrived(1, back), "{options:?} back {back}");
    assert!(
        path.ends
            .iter()
            .all(|end| end.connection.receiver().ended())
    );
    let facts = path.ends.each_ref().map(|end| end.connection.facts());
    assert!(
        facts.iter().all(|facts| facts.received.violations == 0),
        "{facts:?}"
    );
    let now = path.now;
    path.ends[0].connection.close(now);
    while path.ends[0].connection.state() != BlastState::Closed && path.step() {}
    assert!(path.now <= now + CLOSE_TIMEOUT);
    assert_eq!(path.ends[0].connection.state(), BlastState::Closed);
    assert!(
        path.now < START + Duration(3_600_000_000_000),
        "it took {}",
        path.now - START
    );
}

fn size(options: &BlastOptions, kind: u64, any: u64) -> u64 {
    match kind {
        0 => 0,
        1 => 1,
        2 => u64::from(options.packet),
        _ => any,
    }
}

fn all(name: &str, options: BlastOptions) {
    for number in 0..schedules() {
        one(options, Seed::root(7).child(name).index(number));
    }
}

#[test]
fn stop_and_wait_brings_everything() {
    all("saw", BlastOptions::saw(700));
}

#[test]
fn sliding_window_brings_everything() {
    all(
        "window",
        BlastOptions {
            buffer: 20_000,
            ..BlastOptions::window(700, 8)
        },
    );
    all("wide window", BlastOptions::window(700, 1 << 15));
}

#[test]
fn full_retransmission_brings_everything() {
    all("full", BlastOptions::blast(BlastStrategy::Full, 700, 5_600));
}

#[test]
fn full_retransmission_with_refusals_brings_everything() {
    all(
        "full nak",
        BlastOptions {
            flight: 2,
            ..BlastOptions::blast(BlastStrategy::FullNak, 700, 5_600)
        },
    );
}

#[test]
fn partial_retransmission_brings_everything() {
    all(
        "partial",
        BlastOptions {
            flight: 3,
            ..BlastOptions::blast(BlastStrategy::Partial, 700, 9_800)
        },
    );
}

#[test]
fn selective_retransmission_brings_everything() {
    all(
        "selective",
        BlastOptions {
            flight: 3,
            ..BlastOptions::blast(BlastStrategy::Selective, 100, 9_800)
        },
    );
    all(
        "selective, little room",
        BlastOptions {
            flight: 3,
            buffer: 9_800,
            ..BlastOptions::blast(BlastStrategy::Selective, 100, 9_800)
        },
    );
}
