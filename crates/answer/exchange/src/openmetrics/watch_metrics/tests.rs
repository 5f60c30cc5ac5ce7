//! What a scraper reads after given events of a watch.

use super::*;
use crate::openmetrics::{MetricKind, openmetrics_text};
use stackline_events::catalogue::rows::{
    ConnectionOwner, CpuUse, InterfaceUse, MemoryUse, SwitchPort, TcpDrop, TcpInfo,
};
use stackline_events::{EventValue, catalogue};
use stackline_testing::metrics_text::{ReadMetricFamily, read_openmetrics};
use std::collections::BTreeSet;

const SECOND: u64 = 1_000_000_000;

fn metrics() -> WatchMetrics {
    WatchMetrics::new(Duration::from_secs(1), "0.1.0")
}

/// The families as a scraper reads them.
fn served(metrics: &WatchMetrics) -> Vec<ReadMetricFamily> {
    read_openmetrics(&openmetrics_text(&metrics.families())).unwrap()
}

/// The value of a series; `labels` are `name=value`.
fn value(metrics: &WatchMetrics, family: &str, labels: &[&str]) -> Option<f64> {
    let families = served(metrics);
    let family = families.iter().find(|read| read.name == family)?;
    let mut samples = family.samples.iter().filter(|sample| {
        let written = |(name, value): (&String, &String)| format!("{name}={value}");
        let own: BTreeSet<String> = sample.labels.iter().map(written).collect();
        own == labels.iter().map(|label| (*label).to_owned()).collect()
    });
    samples.next().map(|sample| sample.value)
}

fn traffic(log: &mut EventLog, interface: &str, received_bytes: u64, at_s: u64) {
    InterfaceUse {
        interval_ns: SECOND.into(),
        interface: EventValue::Text(interface),
        received_bytes: received_bytes.into(),
        ..InterfaceUse::default()
    }
    .write(log, at_s * SECOND);
}

fn connection(log: &mut EventLog, process: u64, retransmits: u64, at_s: u64) {
    let remote = format!("192.0.2.1:{process}");
    let (local, remote) = (EventValue::Text("10.0.0.1:9"), EventValue::Text(&remote));
    let program = format!("program{process}");
    ConnectionOwner {
        local,
        remote,
        pid: process.into(),
        program: EventValue::Text(&program),
    }
    .write(log, at_s * SECOND);
    TcpInfo {
        interval_ns: SECOND.into(),
        local,
        remote,
        retransmits: retransmits.into(),
        rtt_ns: 20_000_000_u64.into(),
        unsent_bytes: 7_u64.into(),
        acked_bytes: 100_u64.into(),
        ..TcpInfo::default()
    }
    .write(log, at_s * SECOND);
}

#[test]
fn counters_add_up_gauges_are_the_latest_and_units_are_base_units() {
    let (mut metrics, mut log) = (metrics(), EventLog::default());
    log.host("khons");
    traffic(&mut log, "eth0", 1_000, 1);
    traffic(&mut log, "eth0", 500, 2);
    for available in [5_u64, 4] {
        MemoryUse {
            interval_ns: SECOND.into(),
            available_bytes: available.into(),
            ..MemoryUse::default()
        }
        .write(&mut log, SECOND);
    }
    CpuUse {
        interval_ns: (2 * SECOND).into(),
        core: 3_u64.into(),
        user_ppm: 250_000_u64.into(),
        ..CpuUse::default()
    }
    .write(&mut log, SECOND);
    TcpDrop {
        reason: EventValue::Text("socket_rcvbuff"),
        ..TcpDrop::default()
    }
    .write(&mut log, SECOND);
    log.host("switch1");
    SwitchPort {
        interval_ns: SECOND.into(),
        port: EventValue::Text("1/2"),
        out_discards: 9_u64.into(),
        ..SwitchPort::default()
    }
    .write(&mut log, SECOND);
    metrics.add(&log);
    for (family, labels, expected) in [
        (
            "stackline_interface_bytes",
            &["interface=eth0", "direction=received"][..],
            1_500.0,
        ),
        ("stackline_memory_bytes", &["state=available"], 4.0),
        ("stackline_cpu_seconds", &["core=3", "mode=user"], 0.5),
        ("stackline_tcp_drops", &["reason=socket_rcvbuff"], 1.0),
        (
            "stackline_switch_discards",
            &["switch=switch1", "port=1/2", "direction=out"],
            9.0,
        ),
        ("stackline_events", &[], 7.0),
        ("stackline_watch_interval_seconds", &[], 1.0),
    ] {
        assert_eq!(value(&metrics, family, labels), Some(expected), "{family}");
    }
    // What an event does not say has no series.
    let sent = ["interface=eth0", "direction=sent"];
    assert_eq!(value(&metrics, "stackline_interface_bytes", &sent), None);
}

#[test]
fn the_slowest_processes_have_series_of_their_own_and_sums_never_go_back() {
    let (mut metrics, mut log) = (metrics(), EventLog::default());
    log.host("khons");
    for process in 1..=25 {
        connection(&mut log, process, process, 1);
    }
    metrics.add(&log);
    let family = "stackline_connection_retransmissions";
    let own = |metrics: &WatchMetrics, process: u64| {
        let (program, pid) = (
            format!("program=program{process}"),
            format!("pid={process}"),
        );
        value(metrics, family, &[&program, &pid])
    };
    let rest = |metrics: &WatchMetrics| value(metrics, family, &["program=other", "pid="]).unwrap();
    assert_eq!(own(&metrics, 25), Some(25.0));
    assert_eq!(
        (own(&metrics, 5), rest(&metrics)),
        (None, 1.0 + 2.0 + 3.0 + 4.0 + 5.0)
    );
    assert_eq!(
        value(
            &metrics,
            "stackline_connections_active",
            &["program=other", "pid="]
        ),
        Some(5.0)
    );
    assert_eq!(
        value(
            &metrics,
            "stackline_connection_round_trip_seconds",
            &["program=program25", "pid=25"]
        ),
        Some(0.02)
    );
    // Now process 5 is the slowest, and 6 among the rest.
    let mut later = EventLog::default();
    later.host("khons");
    connection(&mut later, 5, 100, 2);
    metrics.add(&later);
    assert_eq!((own(&metrics, 5), own(&metrics, 6)), (Some(100.0), None));
    assert_eq!(rest(&metrics), 15.0);
    let mut again = EventLog::default();
    again.host("khons");
    connection(&mut again, 6, 200, 3);
    metrics.add(&again);
    assert_eq!(own(&metrics, 6), Some(206.0), "it goes on");
    assert_eq!(rest(&metrics), 15.0);
}

#[test]
fn names_of_others_are_bounded_and_what_is_left_out_is_counted() {
    let (mut metrics, mut log) = (metrics(), EventLog::default());
    log.host("khons");
    let long = "x".repeat(500);
    traffic(&mut log, &format!("\u{1b}[2J{long}"), 1, 1);
    for number in 0..MOST_SERIES {
        traffic(&mut log, &format!("eth{number}"), 1, 1);
    }
    metrics.add(&log);
    assert_eq!(value(&metrics, "stackline_left_out_values", &[]), Some(1.0));
    let families = served(&metrics);
    let bytes = families
        .iter()
        .find(|family| family.name == "stackline_interface_bytes")
        .unwrap();
    assert_eq!(bytes.samples.len(), MOST_SERIES);
    assert!(bytes.samples.iter().all(|sample| {
        let interface = &sample.labels["interface"];
        interface.chars().count() <= LONGEST_LABEL && !interface.contains(char::is_control)
    }));
}

#[test]
fn every_field_is_of_the_catalogue_and_of_a_family_with_its_labels() {
    for field in WATCHED_FIELDS {
        let entry = catalogue::find(field.keyword).unwrap();
        let is_there = field.scale == FieldScale::Occurrence || entry.field(field.field).is_some();
        assert!(is_there, "{field:?}");
        for label in field.labels {
            if let LabelSource::Field(name) = label {
                assert!(entry.field(name).is_some(), "{field:?}");
            }
        }
        let family = FAMILIES
            .iter()
            .find(|family| family.name == field.family)
            .unwrap_or_else(|| panic!("{field:?}"));
        assert_eq!(family.labels.len(), field.labels.len(), "{field:?}");
        let is_latest = field.scale == FieldScale::Latest;
        assert_eq!(family.kind == MetricKind::Gauge, is_latest, "{field:?}");
    }
    for family in FAMILIES {
        let of_unit = family
            .unit
            .is_none_or(|unit| family.name.ends_with(&format!("_{unit}")));
        assert!(of_unit && family.help.ends_with('.'), "{family:?}");
    }
    let names: BTreeSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), FAMILIES.len());
}
