//! What the recording itself has wrong: clocks that differ, events that were lost, figures beyond all bounds.

use super::ends::writer;
use super::waits::{own, stalls};
use super::*;
use stackline_core::trace_index::ClockCorrection;

#[test]
fn stalls_within_the_clocks_error_are_not_explained() {
    let blurred = stalls(400, own, 0, "").with(|given| given.lifelines.clock_error_ns = SECOND);
    assert_eq!(blurred.kinds(), NOTHING);
}

#[test]
fn steps_and_large_errors_of_clocks_are_trouble() {
    let clock = |clock: ClockCorrection| {
        used(0.5).with(|given| {
            drop(given.index.hosts.insert(
                "b".into(),
                HostTrace {
                    clock,
                    ..HostTrace::default()
                },
            ))
        })
    };
    let kinds = clock(ClockCorrection {
        steps: vec![(SECOND, 5_000_000)],
        ..ClockCorrection::default()
    })
    .kinds();
    assert_eq!(kinds, ["clock_trouble"]);
    assert_eq!(
        clock(ClockCorrection {
            error_ns: Some(50 * MS),
            ..ClockCorrection::default()
        })
        .kinds(),
        ["clock_trouble"]
    );
    assert_eq!(
        clock(ClockCorrection {
            error_ns: Some(50_000),
            offset_ns: 3_000,
            ..ClockCorrection::default()
        })
        .kinds(),
        NOTHING
    );
}

#[test]
fn a_clock_that_is_corrected_is_noted_at_most() {
    let clock = |given: Given, clock: ClockCorrection| {
        given.with(|given| {
            drop(given.index.hosts.insert(
                "b".into(),
                HostTrace {
                    clock,
                    ..HostTrace::default()
                },
            ))
        })
    };
    let ahead = || ClockCorrection {
        offset_ns: 80_000_000,
        error_ns: Some(50_000),
        ..ClockCorrection::default()
    };
    let fast = || ClockCorrection {
        drift_ppm: 300.0,
        error_ns: Some(50_000),
        ..ClockCorrection::default()
    };
    assert_eq!(
        clock(calls(&[(20, 4)]), ahead()).all(),
        ["healthy", "clock_trouble"]
    );
    assert_eq!(
        clock(calls(&[(20, 4)]), fast()).all(),
        ["healthy", "clock_trouble"]
    );
    // What one clock shows comes before what two cannot.
    let blurred = || ClockCorrection {
        error_ns: Some(50 * MS),
        ..ClockCorrection::default()
    };
    let found = clock(writer(1, 7), blurred());
    assert_eq!(found.kinds(), ["clock_trouble"]);
    let found = clock(writer(5, 1), blurred()).found();
    assert_eq!(
        [found[0].kind, found[1].kind],
        ["application_limited", "clock_trouble"]
    );
    assert_eq!(
        found[1].evidence[0].what,
        "error 50.0 ms, half a round trip 10.0 ms"
    );
}

#[test]
fn many_lost_events_are_a_finding() {
    let lost = |lost: u64| {
        writer(0, 10).with(|given| {
            drop(given.index.hosts.insert(
                "s".into(),
                HostTrace {
                    lost,
                    ..HostTrace::default()
                },
            ))
        })
    };
    assert_eq!(lost(1000).kinds(), ["lost_events"]);
    assert_eq!(lost(10).kinds(), NOTHING);
}

#[test]
fn what_a_trace_lost_is_a_share_of_all_that_it_saw_until_its_end() {
    let lost = |seen_at_end: Option<u64>| {
        writer(0, 10).with(|given| {
            given.event(1000, "s", "EVENTS_LOST", "1000; 10000");
            if let Some(seen) = seen_at_end {
                given.event(9000, "s", "EVENTS_LOST", &format!("0; {seen}"));
            }
        })
    };
    assert_eq!(lost(None).kinds(), ["lost_events"]);
    assert_eq!(lost(Some(12_000)).kinds(), ["lost_events"]);
    assert_eq!(lost(Some(600_000)).kinds(), NOTHING);
}

#[test]
fn huge_figures_do_not_panic() {
    let most = i64::MAX;
    let hostile = writer(5, 1).with(|given| {
        given.lifelines.clock_error_ns = u64::MAX;
        for keyword in [
            "TCP_RETRANSMIT",
            "NET_DROP",
            "PROCESS_PAUSED",
            "EVENTS_LOST",
            "APP_RECEIVED",
            "TCP_SEGMENT",
        ] {
            for (first, second) in [(most, most), (i64::MIN, most), (-1, i64::MIN)] {
                given.event(
                    u64::MAX / 1000 - 1,
                    "b",
                    keyword,
                    &format!("{first}; {second}; {first}; {second}; s>b"),
                );
                given.event(0, "a0", keyword, &format!("{second}; 0; {first}; {second}"));
            }
        }
        let trace = HostTrace {
            lost: u64::MAX,
            recorded: u64::MAX,
            ..HostTrace::default()
        };
        given.index.hosts.insert("a0".into(), trace.clone());
        given.index.hosts.insert("b".into(), trace);
    });
    assert!(!hostile.found().is_empty());
}
