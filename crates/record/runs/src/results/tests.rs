//! Records survive Parquet exactly; lists and nulls come out as they went in.

use super::*;
use parquet::record::Field;
use proptest::prelude::*;
use stackline_core::run_record::{EmulationRecord, NetworkRecord, PortRecord};
use stackline_core::run_record::{
    Histogram, HostUsage, OpeningTimes, SideRecord, TimedCall, TransportRecord, Usage,
};
use std::collections::BTreeMap;

fn real() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), -1e12..1e12_f64, 1e-12..1e-3_f64]
}

fn histogram() -> impl Strategy<Value = Histogram> {
    let counts = proptest::collection::btree_map(any::<u64>(), 1_u64..1000, 0..6);
    (counts, any::<u64>(), real(), any::<Option<(u64, u64)>>()).prop_map(
        |(counts, sum, squares, min_max)| Histogram {
            counts: counts.into_iter().collect(),
            sum,
            squares,
            min_max,
        },
    )
}

fn usage() -> impl Strategy<Value = Usage> {
    (real(), real(), any::<u64>(), any::<u64>()).prop_map(
        |(user_s, system_s, voluntary_switches, major_faults)| Usage {
            user_s,
            system_s,
            voluntary_switches,
            major_faults,
            ..Usage::default()
        },
    )
}

fn host() -> impl Strategy<Value = HostUsage> {
    let reasons = proptest::collection::btree_map(".{0,5}", ".{0,9}", 0..2);
    (
        real(),
        real(),
        any::<u64>(),
        proptest::option::of(real()),
        reasons,
    )
        .prop_map(
            |(user_s, idle_s, swapped_pages, throttled_s, absent)| HostUsage {
                user_s,
                idle_s,
                swapped_pages,
                throttled_s,
                absent,
                ..HostUsage::default()
            },
        )
}

fn transport() -> impl Strategy<Value = TransportRecord> {
    (any::<u64>(), real(), proptest::option::of(real())).prop_map(|(retransmits, rtt_s, busy_s)| {
        TransportRecord {
            retransmits,
            rtt_s,
            busy_s,
            ..TransportRecord::default()
        }
    })
}

fn side() -> impl Strategy<Value = SideRecord> {
    let transport = proptest::option::of((transport(), transport()));
    let words = proptest::collection::btree_map("[a-z]{1,5}", ".{0,8}", 0..3);
    let marks = proptest::collection::btree_map(".{1,5}", histogram(), 0..2);
    (
        usage(),
        proptest::option::of(host()),
        transport,
        words,
        marks,
        any::<(u64, Option<u64>, Option<(usize, usize, bool)>)>(),
    )
        .prop_map(
            |(usage, host, transport, settings, marks, (received_units, lost, cpu))| SideRecord {
                usage,
                host,
                transport,
                notes: settings.values().cloned().collect(),
                settings,
                cpu,
                received_units,
                lost,
                marks,
                ..SideRecord::default()
            },
        )
}

prop_compose! {
    fn port()(
        name in "[a-z]{1,3}>[a-z]{1,3}",
        (packets, bytes, marked, duplicated) in any::<(u64, u64, u64, u64)>(),
        drops in proptest::collection::btree_map(".{0,9}", any::<u64>(), 0..3),
    ) -> PortRecord {
        PortRecord { name, packets, bytes, marked, duplicated, drops }
    }
}

prop_compose! {
    fn emulation()(
        (departures, lost, round_trip_ns) in any::<(u64, u64, Option<u64>)>(),
        (lateness_p50_ns, lateness_p99_ns, lateness_max_ns) in any::<(u64, u64, u64)>(),
        cpu_share in real(),
        overload in proptest::option::of(".{0,9}"),
    ) -> EmulationRecord {
        EmulationRecord {
            departures, lateness_p50_ns, lateness_p99_ns, lateness_max_ns, lost, cpu_share, round_trip_ns, overload,
        }
    }
}

prop_compose! {
    fn network()(
        name in ".{0,5}",
        ports in proptest::collection::vec(port(), 0..3),
        emulation in proptest::option::of(emulation()),
    ) -> NetworkRecord {
        NetworkRecord { name, ports, emulation }
    }
}

prop_compose! {
    fn record()(
        place in any::<(usize, usize, u32, bool, u32)>(),
        (elapsed_ns, span_ns, limited) in any::<(u64, u64, bool)>(),
        calls in histogram(), connects in histogram(), lateness in histogram(),
        transport in histogram(), tls_round_trip in histogram(),
        timed_calls in proptest::collection::vec(any::<(u64, u64)>(), 0..3),
        initiator in side(), responder in side(),
        absent in proptest::collection::btree_map(".{0,5}", ".{0,9}", 0..3),
        network in proptest::option::of(network()),
    ) -> RunRecord {
        let (measurement, part, run, warmup, replicas) = place;
        RunRecord {
            measurement, part, run, warmup, replicas, elapsed_ns, span_ns, limited, calls, connects,
            own_lateness: if lateness.counts.is_empty() { Histogram::default() } else { lateness.clone() },
            lateness,
            initiator, responder, absent, network,
            initiator_intervals: None,
            responder_intervals: None,
            opening: OpeningTimes { transport, tls_round_trip },
            timed_calls: timed_calls.into_iter().map(|(begun_ns, took_ns)| TimedCall { begun_ns, took_ns }).collect(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn records_come_back_exactly(records in proptest::collection::vec(record(), 0..6)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.parquet");
        write(&path, None, &records).unwrap();
        prop_assert_eq!(read(&path).unwrap(), records);
    }
}

/// The rows as another program sees them.
fn rows(path: &Path) -> Vec<BTreeMap<String, Field>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let row =
        |row: Parquet<parquet::record::Row>| row.unwrap().into_columns().into_iter().collect();
    reader.get_row_iter(None).unwrap().map(row).collect()
}

#[test]
fn lists_and_nulls_come_out_as_they_went_in() {
    let calls = Histogram {
        counts: vec![(10, 2), (30, 1)],
        sum: 50,
        squares: 1100.0,
        min_max: Some((10, 30)),
    };
    let first = RunRecord {
        calls,
        replicas: 3,
        ..RunRecord::default()
    };
    let second = RunRecord {
        warmup: true,
        ..RunRecord::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.parquet");
    write(&path, None, &[first, second]).unwrap();
    let rows = rows(&path);
    assert_eq!(rows[0]["call_ns"].to_string(), "[10, 30]");
    assert_eq!(rows[0]["call_count"].to_string(), "[2, 1]");
    assert_eq!(rows[0]["calls"], Field::Long(3));
    assert_eq!(rows[0]["replicas"], Field::Long(3));
    assert_eq!(rows[1]["call_ns"].to_string(), "[]");
    assert_eq!(rows[1]["calls"], Field::Null);
    assert_eq!(rows[1]["lost"], Field::Null);
    assert_eq!(rows[1]["warmup"], Field::Bool(true));
}

#[test]
fn throttling_that_nobody_counts_is_null() {
    let host = |throttled_s| {
        Some(HostUsage {
            throttled_s,
            ..HostUsage::default()
        })
    };
    let mut record = RunRecord::default();
    record.initiator.host = host(None);
    record.responder.host = host(Some(0.0));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.parquet");
    write(&path, None, &[record]).unwrap();
    let rows = rows(&path);
    assert_eq!(rows[0]["initiator_host_throttled_s"], Field::Null);
    assert_eq!(rows[0]["responder_host_throttled_s"], Field::Double(0.0));
}

fn emulated() -> NetworkRecord {
    let drops = |all: &[(&str, u64)]| {
        all.iter()
            .map(|(reason, n)| ((*reason).to_owned(), *n))
            .collect()
    };
    let port = |name: &str, all| PortRecord {
        name: name.into(),
        drops: drops(all),
        ..PortRecord::default()
    };
    let first = PortRecord {
        packets: 3000,
        bytes: 4_500_000,
        ..port("edge>udjat", &[("queue full", 12), ("PIE", 1)])
    };
    let second = PortRecord {
        marked: 7,
        ..port("khons>edge", &[("lost on the link", 2)])
    };
    let emulation = EmulationRecord {
        departures: 6000,
        lateness_p50_ns: 200,
        lateness_p99_ns: 14_000,
        lateness_max_ns: 90_000,
        lost: 3,
        cpu_share: 0.25,
        round_trip_ns: None,
        overload: Some("too slow".into()),
    };
    NetworkRecord {
        name: "wan".into(),
        ports: vec![first, second],
        emulation: Some(emulation),
    }
}

#[test]
fn a_modelled_network_has_columns() {
    let mut simulated = NetworkRecord {
        emulation: None,
        ..emulated()
    };
    simulated.ports.clear();
    let idle = NetworkRecord {
        emulation: Some(EmulationRecord::default()),
        ..emulated()
    };
    let record = |network| RunRecord {
        network: Some(network),
        ..RunRecord::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.parquet");
    write(
        &path,
        None,
        &[
            record(emulated()),
            record(simulated),
            record(idle),
            RunRecord::default(),
        ],
    )
    .unwrap();
    let rows = rows(&path);
    assert_eq!(rows[0]["network"], Field::Str("wan".into()));
    assert_eq!(
        (&rows[0]["network_drops"], &rows[0]["network_marks"]),
        (&Field::Long(15), &Field::Long(7))
    );
    let Field::Str(ports) = &rows[0]["network_ports"] else {
        panic!("no text")
    };
    assert_eq!(
        serde_json::from_str::<Vec<PortRecord>>(ports).unwrap(),
        emulated().ports
    );
    assert_eq!(rows[0]["emulation_departures"], Field::Long(6000));
    assert_eq!(rows[0]["emulation_lateness_p50_s"], Field::Double(200e-9));
    assert_eq!(rows[0]["emulation_lateness_p99_s"], Field::Double(14e-6));
    assert_eq!(rows[0]["emulation_lateness_max_s"], Field::Double(90e-6));
    assert_eq!(
        (
            &rows[0]["emulation_lost"],
            &rows[0]["emulation_round_trip_s"]
        ),
        (&Field::Long(3), &Field::Null)
    );
    assert_eq!(rows[0]["emulation_cpu_share"], Field::Double(0.25));
    assert_eq!(rows[0]["emulation_overload"], Field::Str("too slow".into()));
    assert_eq!(
        (&rows[1]["network_drops"], &rows[1]["emulation_lost"]),
        (&Field::Long(0), &Field::Null)
    );
    assert_eq!(
        rows[2]["emulation_lateness_max_s"],
        Field::Null,
        "nothing left, so nothing was late"
    );
    assert_eq!(
        (&rows[3]["network"], &rows[3]["network_ports"]),
        (&Field::Null, &Field::Null)
    );
}

#[test]
fn a_file_from_before_networks_were_recorded_still_opens() {
    let old: Vec<ResultColumn> = COLUMNS
        .iter()
        .filter(|c| !c.name.starts_with("network") && !c.name.starts_with("emul"))
        .copied()
        .collect();
    assert_eq!(COLUMNS.len() - old.len(), 12);
    let records = [RunRecord {
        replicas: 3,
        ..RunRecord::default()
    }];
    let text = serde_json::to_string(&records[0]).unwrap();
    assert!(!text.contains("network"), "as it was written then: {text}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.parquet");
    write_rows(
        &mut File::create(&path).unwrap(),
        &old,
        &[ResultRow::new(None, &records[0])],
    )
    .unwrap();
    assert_eq!(read(&path).unwrap(), records);
}

#[test]
fn many_rows_come_back_in_order() {
    let records: Vec<RunRecord> = (0..5000)
        .map(|run| RunRecord {
            run,
            ..RunRecord::default()
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.parquet");
    write(&path, None, &records).unwrap();
    assert_eq!(read(&path).unwrap(), records);
}

#[test]
fn no_changed_bit_gives_another_record() {
    let records: Vec<RunRecord> = (0..3)
        .map(|run| RunRecord {
            run,
            elapsed_ns: 12_345,
            ..RunRecord::default()
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.parquet");
    write(&path, None, &records).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(31) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, bytes).unwrap();
        assert!(
            read(&path).map_or(true, |read| read == records),
            "byte {at} of {}",
            whole.len()
        );
    }
}

#[test]
fn another_file_is_an_error_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.parquet");
    std::fs::write(&path, "not parquet").unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.message.starts_with("cannot read") && error.hint.contains("run directory"));
}
