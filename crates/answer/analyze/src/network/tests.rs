//! Networks of small plans whose sums can be checked by hand.

use super::*;
use crate::summarise::tests::{get, moved, plan};
use crate::{Summary, summarise};
use stackline_core::network::NetworkSwitch;
use stackline_core::plan::Composer;
use stackline_core::run_record::RunRecord;

fn port(name: &str, packets: u64, drops: &[(&str, u64)]) -> PortRecord {
    let drops = drops
        .iter()
        .map(|(reason, n)| ((*reason).to_owned(), *n))
        .collect();
    PortRecord {
        name: name.into(),
        packets,
        bytes: packets * 1000,
        drops,
        ..PortRecord::default()
    }
}

fn across(run: u32, ports: Vec<PortRecord>, emulation: Option<EmulationRecord>) -> RunRecord {
    RunRecord {
        network: Some(NetworkRecord {
            name: "wan".into(),
            ports,
            emulation,
        }),
        ..moved(0, run, 100)
    }
}

fn summary(records: &[RunRecord]) -> Summary {
    summarise(&plan(Composer::Basic, vec![get("a")]), records).remove(0)
}

fn ports_of(records: &[RunRecord]) -> Vec<PortSummary> {
    summary(records).network.unwrap().ports
}

#[test]
fn no_network_in_the_live_world() {
    let live = summary(&[moved(0, 0, 100), moved(0, 1, 100)]);
    assert_eq!((live.network.as_ref(), live.overloaded()), (None, 0));
}

#[test]
fn ports_are_summed_by_name_without_the_warmup() {
    let calm = || port("b>c", 500, &[]);
    let marked = PortRecord {
        marked: 7,
        duplicated: 1,
        ..port("c>b", 10, &[])
    };
    let warmup = RunRecord {
        warmup: true,
        ..across(0, vec![port("a>b", 1, &[("PIE", 1)])], None)
    };
    let first = across(
        0,
        vec![port("a>b", 90, &[("queue full", 10)]), calm(), marked],
        None,
    );
    let second = across(
        1,
        vec![port("a>b", 95, &[("queue full", 4), ("PIE", 1)]), calm()],
        None,
    );
    let ports = ports_of(&[warmup, first, second]);
    assert_eq!(
        ports.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
        ["a>b", "c>b", "b>c"]
    );
    let worst = &ports[0];
    assert_eq!(
        (worst.runs, worst.packets, worst.offered, worst.bytes),
        (2, 185, 200, 185_000)
    );
    assert_eq!(
        (worst.dropped, worst.drops["queue full"], worst.drops["PIE"]),
        (15, 14, 1)
    );
    assert_eq!(worst.drop_share, Some(0.075));
    assert_eq!(
        (ports[1].runs, ports[1].marked, ports[1].duplicated),
        (1, 7, 1)
    );
    assert_eq!(
        (ports[2].runs, ports[2].packets, ports[2].drop_share),
        (2, 1000, Some(0.0))
    );
    assert_eq!(
        ports
            .iter()
            .map(PortSummary::is_notable)
            .collect::<Vec<_>>(),
        [true, true, false]
    );
}

#[test]
fn packets_lost_on_the_link_have_left_the_queue() {
    let lost = port("a>b", 100, &[("lost on the link", 20), ("queue full", 100)]);
    let ports = ports_of(&[across(0, vec![lost], None)]);
    assert_eq!(
        (ports[0].offered, ports[0].dropped, ports[0].drop_share),
        (200, 120, Some(0.6))
    );
    assert_eq!(
        ports_of(&[across(0, vec![port("a>b", 0, &[])], None)])[0].drop_share,
        None
    );
}

#[test]
fn several_links_between_the_same_nodes_are_one() {
    let ports = ports_of(&[across(
        0,
        vec![
            port("a>b", 10, &[("PIE", 1)]),
            port("a>b", 20, &[("PIE", 2)]),
        ],
        None,
    )]);
    assert_eq!(
        (
            ports.len(),
            ports[0].runs,
            ports[0].packets,
            ports[0].dropped
        ),
        (1, 1, 30, 3)
    );
}

#[test]
fn cells_are_not_counted_as_packets() {
    let mut plan = plan(Composer::Basic, vec![get("a")]);
    let switch = NetworkSwitch {
        name: "edge".into(),
        cell_bytes: Some(53),
        ..NetworkSwitch::default()
    };
    plan.networks.push(Network {
        name: "wan".into(),
        switches: vec![switch],
        ..Network::default()
    });
    let into = port("a>edge", 10, &[("bit error on the link", 30)]);
    let out = port(
        "edge>b",
        300,
        &[("bit error on the link", 30), ("queue full", 100)],
    );
    let network = summarise(&plan, &[across(0, vec![into, out], None)])
        .remove(0)
        .network
        .unwrap();
    let [out, into] = &network.ports[..] else {
        panic!("{network:?}")
    };
    assert_eq!(
        (
            into.cells,
            into.cells_dropped,
            into.offered,
            into.drop_share
        ),
        (false, true, 10, None)
    );
    assert_eq!(
        (out.cells, out.cells_dropped, out.offered, out.drop_share),
        (true, true, 400, Some(0.325))
    );
}

fn emulated(run: u32, late: u64, overload: Option<&str>) -> RunRecord {
    let emulation = EmulationRecord {
        departures: 1000,
        lateness_p50_ns: late,
        lateness_p99_ns: late * 10,
        lateness_max_ns: 1_000_000 - late,
        lost: 2,
        cpu_share: 0.1 * f64::from(run),
        round_trip_ns: (run > 0).then_some(45_000),
        overload: overload.map(Into::into),
    };
    across(run, vec![], Some(emulation))
}

#[test]
fn the_emulator_is_summarised_by_its_worst_run() {
    let records = [
        emulated(0, 100, None),
        emulated(1, 900, None),
        emulated(2, 200, None),
    ];
    let summary = summary(&records);
    let emulation = summary
        .network
        .as_ref()
        .unwrap()
        .emulation
        .as_ref()
        .unwrap();
    assert_eq!(
        (emulation.departures, emulation.lost, emulation.cpu_share),
        (3000, 6, 0.2)
    );
    assert_eq!(
        emulation.lateness_p50_s,
        Some(200e-9),
        "the median of the medians"
    );
    assert_eq!(
        (emulation.lateness_p99_s, emulation.lateness_max_s),
        (Some(9e-6), Some(0.000_999_9))
    );
    assert_eq!(emulation.round_trip_s, Some(45e-6));
    assert!(emulation.overload.is_empty() && !summary.flags.contains(&"overload".to_owned()));
}

#[test]
fn without_departures_lateness_is_absent() {
    let idle = across(
        0,
        vec![],
        Some(EmulationRecord {
            lost: 1,
            ..EmulationRecord::default()
        }),
    );
    let emulation = summary(&[idle]).network.unwrap().emulation.unwrap();
    assert_eq!(
        (
            emulation.lateness_p50_s,
            emulation.lateness_max_s,
            emulation.lost
        ),
        (None, None, 1)
    );
}

#[test]
fn overloaded_runs_are_counted_and_flagged() {
    let texts = [
        Some("lost 3 frames"),
        None,
        Some("lost 4 frames"),
        Some("late"),
    ];
    let records: Vec<RunRecord> = (0..)
        .zip(texts)
        .map(|(run, text)| emulated(run, 100, text))
        .collect();
    let flagged = summary(&records);
    assert_eq!((flagged.overloaded(), flagged.runs), (3, 4));
    assert_eq!(
        flagged.network.unwrap().emulation.unwrap().overload,
        ["late", "lost 4 frames"]
    );
    assert_eq!(flagged.flags[0], "overload");
    let warmup = RunRecord {
        warmup: true,
        ..records[0].clone()
    };
    assert_eq!(
        summary(&[warmup, records[1].clone()]).overloaded(),
        0,
        "a warm-up run is no figure"
    );
}

#[test]
fn parts_share_one_network() {
    let second = |record: &RunRecord| RunRecord {
        part: 1,
        ..record.clone()
    };
    let both = emulated(0, 100, Some("late"));
    let summaries = summarise(
        &plan(Composer::Parallel, vec![get("a"), get("b")]),
        &[second(&both), both],
    );
    let lost = |s: &Summary| s.network.as_ref().unwrap().emulation.as_ref().unwrap().lost;
    assert_eq!(
        summaries
            .iter()
            .map(|s| (lost(s), s.overloaded()))
            .collect::<Vec<_>>(),
        [(2, 1); 3]
    );
}
