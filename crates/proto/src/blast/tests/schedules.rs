//! Random schedules of loss, duplication, delay and reordering: nothing is lost, nothing comes twice, it always ends.
//!
//! `STACKLINE_SCHEDULES=100000 cargo test --release -p stackline-proto schedules` walks more of them.

use super::path::{Path, START};
use crate::blast::wire::Header;
use crate::blast::{Interval, Options, State, Strategy};
use alloc::vec::Vec;
use rand_core::Rng;
use stackline_core::random::Seed;
use stackline_core::time::Duration;

extern crate std;

fn schedules() -> u64 {
    std::env::var("STACKLINE_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(150)
}

/// One random schedule for one kind of connection.
fn one(options: Options, seed: Seed) {
    let mut draw = seed.generator();
    let mut below = move |n: u64| draw.next_u64() % n;
    let [loss, double, late] = [below(30), below(10), below(20)];
    let base = 20_000 + below(2_000_000);
    let jitter = 1 + below(3 * base);
    let mut sizes = Vec::new();
    for _ in 0..1 + below(3) {
        sizes.push(match below(5) {
            0 => 0,
            1 => 1,
            2 => u64::from(options.packet),
            _ => below(40_000),
        });
    }
    let back = below(2) * below(5_000);
    let fixed = below(3) == 0;
    let interval = if fixed { Interval::Fixed(Duration(2 * base + 2 * jitter)) } else { Interval::Adaptive };
    let options = Options { interval, patience: Duration(u64::MAX / 4), ..options };
    let fate = move |_: usize, _: &Header| {
        if below(100) < loss {
            return Vec::new();
        }
        let copies = if below(100) < double { 2 } else { 1 };
        (0..copies).map(|_| Duration(base + if below(100) < late { below(jitter) } else { 0 })).collect()
    };
    let mut path = Path::new([options; 2], fate);
    path.open();
    for size in &sizes {
        path.send(0, *size);
        path.send(1, back);
        path.finish(400_000);
    }
    let total = sizes.iter().sum();
    let backs = back * sizes.len() as u64;
    assert!(path.arrived(0, total), "{options:?} {sizes:?} {:?}", path.ends[1].connection.facts());
    assert!(path.arrived(1, backs), "{options:?} back {back}");
    let facts = path.ends.each_ref().map(|end| end.connection.facts());
    assert!(facts.iter().all(|facts| facts.received.violations == 0), "{facts:?}");
    let now = path.now;
    path.ends[0].connection.close(now);
    for _ in 0..100 {
        if !path.step() {
            break;
        }
    }
    assert_eq!(path.ends[0].connection.state(), State::Closed);
    assert!(path.now < START + Duration(3_600_000_000_000), "it took {}", path.now - START);
}

fn all(name: &str, options: Options) {
    for number in 0..schedules() {
        one(options, Seed::root(7).child(name).index(number));
    }
}

#[test]
fn stop_and_wait_brings_everything() {
    all("saw", Options::saw(700));
}

#[test]
fn sliding_window_brings_everything() {
    all("window", Options { buffer: 20_000, ..Options::window(700, 8) });
    all("wide window", Options::window(700, 1 << 15));
}

#[test]
fn full_retransmission_brings_everything() {
    all("full", Options::blast(Strategy::Full, 700, 5_600));
}

#[test]
fn full_retransmission_with_refusals_brings_everything() {
    all("full nak", Options { flight: 2, ..Options::blast(Strategy::FullNak, 700, 5_600) });
}

#[test]
fn partial_retransmission_brings_everything() {
    all("partial", Options { flight: 3, ..Options::blast(Strategy::Partial, 700, 9_800) });
}

#[test]
fn selective_retransmission_brings_everything() {
    all("selective", Options { flight: 3, ..Options::blast(Strategy::Selective, 100, 9_800) });
    all(
        "selective, little room",
        Options { flight: 3, buffer: 9_800, ..Options::blast(Strategy::Selective, 100, 9_800) },
    );
}
