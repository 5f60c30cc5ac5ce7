//! Clocks of several hosts: corrected, wrong within their error, and the order of points despite that.

use super::*;
use stackline_core::trace_index::HostTrace;

/// Two hosts, the second with that clock; three units from the one to the other, 100 us each.
fn two_clocks(ahead_ns: i64, clock: ClockCorrection) -> (EventTable, Index) {
    let mut log = String::new();
    let there = stream(0, EventStreamDirection::There);
    for number in 0..3_u64 {
        let sent = 1_000_000_000 + number * 1_000_000;
        let received = (sent + 100_000) as i64 + ahead_ns;
        let _ = writeln!(
            log,
            "APP_SEND; a; {}; {}; {number}; {there}; {}; 10",
            sent / 1_000_000_000,
            sent % 1_000_000_000,
            number * 10
        );
        let _ = writeln!(
            log,
            "APP_RECEIVED; b; {}; {}; {number}; {there}; {}; 10",
            received / 1_000_000_000,
            received % 1_000_000_000,
            number * 10
        );
    }
    let mut index = Index {
        reference: "a".into(),
        ..Index::default()
    };
    index.hosts.insert("a".into(), HostTrace::default());
    index.hosts.insert(
        "b".into(),
        HostTrace {
            clock,
            ..HostTrace::default()
        },
    );
    (table(&log), index)
}

#[test]
fn clocks_are_corrected_and_their_errors_reported() {
    let clock = ClockCorrection {
        offset_ns: 5_000_000,
        error_ns: Some(2_000),
        ..ClockCorrection::default()
    };
    let (table, index) = two_clocks(5_000_000, clock);
    let made = lifelines(&table, Some(&index), &LifelineOptions::default());
    let segments = crate::segments::segments(&made, Some(&index), false);
    assert_eq!(
        (
            segments[0].ns.median_ns,
            segments[0].negative,
            segments[0].clock_error_ns
        ),
        (1e5, 0, Some(2_000))
    );
    assert_eq!(made.clock_error_ns, 2_000);
}

#[test]
fn a_clock_that_is_wrong_within_its_error_shows_times_below_zero() {
    let (table, index) = two_clocks(
        -300_000,
        ClockCorrection {
            error_ns: Some(400_000),
            ..ClockCorrection::default()
        },
    );
    let made = lifelines(&table, Some(&index), &LifelineOptions::default());
    let segments = crate::segments::segments(&made, Some(&index), false);
    assert_eq!(
        made.points[0].keyword, "APP_SEND",
        "within the error the order is that of the catalogue"
    );
    assert_eq!(
        (
            segments[0].ns.median_ns,
            segments[0].negative,
            segments[0].ns.n
        ),
        (-2e5, 3, 3)
    );
}

/// A call from a to b by a switch s, 5 us a link, each packet queued and sent at each port; b's clock is 20 us ahead, and its
/// error is known to be 25 us. Those of a and s are right.
#[test]
fn one_clock_that_is_wrong_leaves_the_order_of_the_others() {
    let (call, there, back) = (
        unit(0, 0),
        stream(0, EventStreamDirection::There),
        stream(0, EventStreamDirection::Back),
    );
    let path = [
        ("APP_CALL", "a", "", there),
        ("TCP_SEGMENT", "a", "", there),
        ("NET_ENQUEUE", "a", "a>s", there),
        ("NET_DEQUEUE", "a", "a>s", there),
        ("NET_ENQUEUE", "s", "s>b", there),
        ("NET_DEQUEUE", "s", "s>b", there),
        ("NET_DELIVER", "b", "b", there),
        ("APP_INDICATION", "b", "", there),
        ("APP_REPLY", "b", "", back),
        ("TCP_SEGMENT", "b", "", back),
        ("NET_ENQUEUE", "b", "b>s", back),
        ("NET_DEQUEUE", "b", "b>s", back),
        ("NET_ENQUEUE", "s", "s>a", back),
        ("NET_DEQUEUE", "s", "s>a", back),
        ("NET_DELIVER", "a", "a", back),
        ("APP_RESPONSE", "a", "", back),
    ];
    for ahead_ns in [-20_000, -7_000, 0, 7_000, 20_000] {
        let (mut log, mut at_ns) = (String::new(), 1_000_000_i64);
        let mut before = ("", "a");
        for (keyword, host, place, stream) in path {
            at_ns += if host != before.1 || keyword == "NET_DELIVER" {
                5_000
            } else {
                i64::from(before.0 != "APP_CALL")
            };
            before = (keyword, host);
            let seen_ns = at_ns + if host == "b" { ahead_ns } else { 0 };
            let place = if place.is_empty() {
                String::new()
            } else {
                format!("; {place}")
            };
            let _ = writeln!(
                log,
                "{keyword}; {host}; 0; {seen_ns}; {call}; {stream}; 16; 10{place}"
            );
        }
        let mut index = Index {
            reference: "a".into(),
            ..Index::default()
        };
        let wrong = ClockCorrection {
            error_ns: Some(25_000),
            ..ClockCorrection::default()
        };
        for (host, clock) in [
            ("a", ClockCorrection::default()),
            ("s", ClockCorrection::default()),
            ("b", wrong),
        ] {
            index.hosts.insert(
                host.into(),
                HostTrace {
                    clock,
                    ..HostTrace::default()
                },
            );
        }
        let made = lifelines(&table(&log), Some(&index), &LifelineOptions::default());
        let met: Vec<(&str, &str)> = made
            .points
            .iter()
            .map(|point| (point.keyword.as_str(), point.host.as_str()))
            .collect();
        let expected: Vec<(&str, &str)> = path
            .iter()
            .map(|(keyword, host, ..)| (*keyword, *host))
            .collect();
        assert_eq!(met, expected, "b is {ahead_ns} ns ahead");
    }
}
