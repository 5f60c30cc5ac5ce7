//! How fast the simulated world is, in CPU seconds of this process: `cargo bench -p stackline-sim`. A number behind it is
//! the most flows there are (`cargo bench -p stackline-sim -- 1000`).
//!
//! It measures nothing but itself: no figure depends on a clock, every run is the same.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stackline_core::random::Seed;
use stackline_core::time::Instant;
use stackline_net::agenda::Agenda;
use stackline_sim::{Limits, Outcome, Scene, carry_out, catalogue};
use stackline_spec::{Context, Overrides, check};
use std::fmt::Write as _;
use std::hint::black_box;

/// Data segments of 1448 bytes that all flows send together.
const SEGMENTS: u64 = 200_000;

fn main() {
    let most = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(10_000);
    println!("{:<28} {:>12}", "agenda, hold model", "Mevents/CPU-s");
    for pending in [1_000, 1_000_000] {
        println!("{:<28} {:>12.1}", format!("  {pending} pending"), hold(pending) / 1e6);
    }
    println!();
    println!(
        "{:<28} {:>9} {:>9} {:>11} {:>10} {:>9} {:>9} {:>9}",
        "tcp through a dumbbell", "CPU s", "virtual s", "packets", "packets/s", "ns/packet", "ev/packet", "peak MB"
    );
    for rate in ["10 Mbit/s", "1 Gbit/s"] {
        for flows in [10_u64, 100, 1000, 10_000].into_iter().filter(|flows| *flows <= most) {
            row(rate, flows);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures to be read")]
fn row(rate: &str, flows: u64) {
    let text = dumbbell(rate, flows);
    let (outcome, cpu) = run(&text);
    // The first link is the bottleneck, and its first direction has nothing but data on it.
    let packets = outcome.ports[0].packets as f64;
    println!(
        "{:<28} {cpu:>9.3} {:>9.1} {packets:>11} {:>10.0} {:>9.0} {:>9.2} {:>9.0}",
        format!("  {rate}, {flows} flows"),
        outcome.virtual_time.0 as f64 / 1e9,
        packets / cpu,
        cpu / packets * 1e9,
        outcome.events as f64 / packets,
        peak_megabytes(),
    );
}

/// As many hosts as flows, half on each side; every two flows have a host at each end.
fn dumbbell(rate: &str, flows: u64) -> String {
    let pairs = flows / 2;
    let mut text = String::from("network bell { switch left; switch right; host ");
    for pair in 0..pairs {
        let comma = if pair > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}s{pair}, r{pair}");
    }
    let _ = write!(text, ";\n link left - right {rate} 10 ms queue 500 packets;\n");
    for pair in 0..pairs {
        let _ = write!(text, " link s{pair} - left 10 Gbit/s 100 us;\n link r{pair} - right 10 Gbit/s 100 us;\n");
    }
    let bytes = SEGMENTS * 1448 / flows;
    text.push_str("}\n1 parallel over tcp across bell in simulated: ");
    for pair in 0..pairs {
        let bar = if pair > 0 { " | " } else { "" };
        let _ = write!(text, "{bar}2 from s{pair} to r{pair} bulk_put {bytes}*1");
    }
    text.push(';');
    text
}

fn run(text: &str) -> (Outcome, f64) {
    let read_file = |_: &str| Err("no file".to_string());
    let stacks = catalogue();
    let checked =
        check(text, &Context { stacks: &stacks, simulated: &stacks, read_file: &read_file }, &Overrides::default());
    let plan = checked.plan.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics));
    let (network, measurement) = (&plan.networks[0], &plan.measurements[0]);
    let (seed, limits) = (Seed::root(1), Limits::default());
    let before = cpu_seconds();
    let scene = Scene { network, measurement, index: 0, run: 0, warmup: false, seed, limits };
    let (outcome, ()) = carry_out(&scene, ()).unwrap_or_else(|failure| panic!("{failure}"));
    (outcome, cpu_seconds() - before)
}

/// Takes one out and puts one in, again and again, with `pending` in it: events per CPU second.
fn hold(pending: u64) -> f64 {
    const EVENTS: u32 = 4_000_000;
    let mut state = 1_u64;
    let mut ahead = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 43
    };
    let mut agenda = Agenda::default();
    (0..pending).for_each(|thing| agenda.put(Instant(ahead()), thing));
    let before = cpu_seconds();
    for _ in 0..EVENTS {
        if let Some((at, thing)) = agenda.take(Instant(u64::MAX)) {
            agenda.put(Instant(at.0 + ahead()), black_box(thing));
        }
    }
    f64::from(EVENTS) / (cpu_seconds() - before)
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of a benchmark")]
fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask for its own usage");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

/// The most memory the process has had so far.
#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
fn peak_megabytes() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| usage.max_rss() as f64 / 1024.0)
}
