//! A small run across a network that drops and marks, in which the emulator kept its times but once.
#![cfg(test)]

use super::{a_plan, get, measurement, moved};
use stackline_core::plan::{Composer, MeasurementPart, Plan, Stack, World};
use stackline_core::run_record::{EmulationRecord, NetworkRecord, PortRecord, RunRecord};

fn port(name: &str, packets: u64, drops: &[(&str, u64)]) -> PortRecord {
    let drops = drops
        .iter()
        .map(|(reason, n)| ((*reason).to_owned(), *n))
        .collect();
    PortRecord {
        name: name.into(),
        packets,
        bytes: packets * 1500,
        drops,
        ..PortRecord::default()
    }
}

fn emulation(lost: u64) -> EmulationRecord {
    let why = "the emulator lost 3 frames (3 not read because the socket buffer was full): this machine was busy, or is too slow for \
               this network; results may reflect the machine's limits";
    EmulationRecord {
        departures: 6000,
        lateness_p50_ns: 200,
        lateness_p99_ns: 14_000,
        lateness_max_ns: 90_000,
        lost,
        cpu_share: 0.25,
        round_trip_ns: Some(45_000),
        overload: (lost > 0).then(|| why.to_owned()),
    }
}

/// Drops at one port, marks at another, nothing at a third.
fn few() -> Vec<PortRecord> {
    let marked = PortRecord {
        marked: 40,
        duplicated: 1,
        ..port("khons>edge", 1000, &[])
    };
    vec![
        marked,
        port("edge>udjat", 996, &[("queue full", 4)]),
        port("udjat>edge", 500, &[]),
    ]
}

/// More than there is room for.
fn many() -> Vec<PortRecord> {
    let lossy = |at: u64| {
        port(
            &format!("s{at}>s{}", at + 1),
            1000,
            &[("lost on the link", at), ("queue full", 2 * at)],
        )
    };
    (1..=8).map(lossy).collect()
}

fn across(
    measurement: usize,
    run: u32,
    ports: Vec<PortRecord>,
    emulation: Option<EmulationRecord>,
) -> RunRecord {
    RunRecord {
        network: Some(NetworkRecord {
            name: "wan".into(),
            ports,
            emulation,
        }),
        ..moved(measurement, 0, run, 100 + u64::from(run))
    }
}

/// Three emulated runs, the second of which the machine could not keep up with, and two simulated ones.
pub(crate) fn emulated() -> (Plan, Vec<RunRecord>) {
    let part = |stack| MeasurementPart {
        to: Some("udjat".into()),
        ..get(Stack::plain(stack))
    };
    let mut plan = a_plan();
    let crossing = |text: &str, world, part| {
        let mut made = measurement(text, Composer::Basic, vec![part]);
        (made.world, made.across) = (world, Some("wan".into()));
        made
    };
    plan.measurements = vec![
        crossing(
            "3 bulk_get 1024*1000 over tcp",
            World::Emulated,
            part("tcp"),
        ),
        crossing(
            "2 bulk_get 1024*1000 over udp",
            World::Simulated,
            part("udp"),
        ),
    ];
    let records = vec![
        across(0, 0, few(), Some(emulation(0))),
        across(0, 1, few(), Some(emulation(3))),
        across(0, 2, few(), Some(emulation(0))),
        across(1, 0, many(), None),
        across(1, 1, vec![], None),
    ];
    (plan, records)
}
