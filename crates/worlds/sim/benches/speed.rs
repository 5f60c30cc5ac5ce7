//! How fast the simulated world is, in CPU seconds of this process: `cargo bench -p stackline-sim`. A number behind it is
//! the most flows there are, `tcp` leaves the rest out (`cargo bench -p stackline-sim -- tcp 1000`), `quic` measures that instead,
//! with and without cryptography, and so does `blast`.
//!
//! It measures nothing but itself: no figure depends on a clock, every run is the same.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stackline_core::network::{Network, NetworkHost, NetworkLink};
use stackline_core::plan::{Measurement, MeasurementPart};
use stackline_core::random::Seed;
use stackline_core::time::Instant;
use stackline_net::event_queue::EventQueue;
use stackline_sim::{
    CAPABILITIES, SimRunLimits, SimRunOutcome, SimRunScene, carry_out, stack_tables,
};
use stackline_spec::{Available, CheckContext, Overrides, check};
use stackline_testing::bench_arguments::BenchArguments;
use std::hint::black_box;

/// Data segments of 1448 bytes that all flows send together, at least; and each of them, at least.
const SEGMENTS: u64 = 200_000;
const SEGMENTS_EACH: u64 = 100;
/// More flows at 10 Mbit/s would do little else than lose.
const MOST_AT_10_MBIT_S: u64 = 100;

fn main() {
    let mut arguments = BenchArguments::read();
    let most = arguments.take_first_number().unwrap_or(10_000);
    let [tcp, quic, blast] = ["tcp", "quic", "blast"].map(|stack| arguments.take_flag(stack));
    let stacks = match (quic, blast) {
        (true, _) => ["quic", "quic(crypto = null)"].as_slice(),
        (_, true) => &["blast"],
        _ => &["tcp"],
    };
    if !tcp && !quic && !blast {
        println!("{:<28} {:>12}", "agenda, hold model", "Mevents/CPU-s");
        for pending in [1_000, 1_000_000] {
            println!(
                "{:<28} {:>12.1}",
                format!("  {pending} pending"),
                hold(pending) / 1e6
            );
        }
        println!();
    }
    println!(
        "{:<34} {:>9} {:>9} {:>11} {:>10} {:>9} {:>9} {:>9}",
        "through a dumbbell",
        "CPU s",
        "virtual s",
        "packets",
        "packets/s",
        "ns/packet",
        "ev/packet",
        "peak MB"
    );
    for rate in ["10 Mbit/s", "1 Gbit/s"] {
        let bound = if rate == "10 Mbit/s" {
            most.min(MOST_AT_10_MBIT_S)
        } else {
            most
        };
        for flows in [10_u64, 100, 1000, 10_000]
            .into_iter()
            .filter(|flows| *flows <= bound)
        {
            stacks.iter().for_each(|stack| row(stack, rate, flows));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures to be read")]
fn row(stack: &str, rate: &str, flows: u64) {
    let (network, measurement) = dumbbell(stack, rate, flows);
    let (outcome, cpu) = run(&network, &measurement);
    // The first link is the bottleneck, and its first direction has nothing but data on it.
    let packets = outcome.ports[0].packets as f64;
    println!(
        "{:<34} {cpu:>9.3} {:>9.1} {packets:>11} {:>10.0} {:>9.0} {:>9.2} {:>9.0}",
        format!("{stack}, {rate}, {flows}"),
        outcome.virtual_time.0 as f64 / 1e9,
        packets / cpu,
        cpu / packets * 1e9,
        outcome.events as f64 / packets,
        peak_megabytes(),
    );
}

/// As many hosts as flows, half on each side; every two flows have a host at each end. Made from a text with one pair of
/// hosts, since a text may not have so many of them.
fn dumbbell(stack: &str, rate: &str, flows: u64) -> (Network, Measurement) {
    let bytes = (SEGMENTS / flows).max(SEGMENTS_EACH) * 1448;
    // Room for what all of them begin with.
    let queue = 500 + 12 * flows;
    let text = format!(
        "network bell {{ switch left; switch right; host s, r; link left - right {rate} 10 ms queue {queue} packets;
         link s - left 10 Gbit/s 100 us; link r - right 10 Gbit/s 100 us; }}
         1 parallel over {stack} across bell in simulated: 2 from s to r bulk_put {bytes}*1;"
    );
    let read_file = |_: &str| Err("no file".to_string());
    let stacks = stack_tables();
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let context = CheckContext {
        worlds: &worlds,
        read_file: &read_file,
        cores: &[],
    };
    let checked = check(&text, &context, &Overrides::default());
    let mut plan = checked
        .plan
        .unwrap_or_else(|| panic!("{:#?}", checked.diagnostics));
    let (mut network, mut measurement) = (plan.networks.remove(0), plan.measurements.remove(0));
    let (hosts, part) = (
        std::mem::take(&mut network.hosts),
        measurement.parts.remove(0),
    );
    let access = network.links.split_off(1);
    for pair in 0..flows / 2 {
        for (host, link) in hosts.iter().zip(&access) {
            let name = format!("{}{pair}", host.name);
            network.links.push(NetworkLink {
                ends: (name.clone(), link.ends.1.clone()),
                ..link.clone()
            });
            network.hosts.push(NetworkHost {
                name,
                ..host.clone()
            });
        }
        let (from, to) = (Some(format!("s{pair}")), Some(format!("r{pair}")));
        measurement.parts.push(MeasurementPart {
            from,
            to,
            ..part.clone()
        });
    }
    (network, measurement)
}

fn run(network: &Network, measurement: &Measurement) -> (SimRunOutcome, f64) {
    let (seed, limits) = (Seed::root(1), SimRunLimits::default());
    let before = cpu_seconds();
    let scene = SimRunScene {
        network,
        measurement,
        index: 0,
        run: 0,
        warmup: false,
        seed,
        limits,
        interrupted: None,
    };
    let (outcome, ()) = carry_out(&scene, ()).unwrap_or_else(|failure| panic!("{failure}"));
    (outcome, cpu_seconds() - before)
}

/// Takes one out and puts one in, again and again, with `pending` in it: events per CPU second.
fn hold(pending: u64) -> f64 {
    const EVENTS: u32 = 4_000_000;
    let mut state = 1_u64;
    let mut ahead = move || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        state >> 43
    };
    let mut agenda = EventQueue::default();
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
