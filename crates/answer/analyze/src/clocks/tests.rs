//! Logs of a client and a server whose clocks differ: corrected where the events prove it, doubted where they do not.

use super::*;
use stackline_core::trace_index::HostTrace;
use stackline_events::EventValue;

const SECOND: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;

/// 40 calls, 10 ms apart, answered after a time that varies, each way 1 ms; the server's clock is so much ahead and drifts.
fn calls(
    ahead_ns: i64,
    drift_ppm: i64,
    keywords: [&str; 4],
    work_ns: impl Fn(i64) -> i64,
) -> EventTable {
    let mut table = EventTable::default();
    for unit in 0..40 {
        let sent = 1_000 * SECOND + unit * 100 * MS;
        let heard = sent + MS;
        let answered = heard + work_ns(unit);
        let server = |at: i64| at + ahead_ns + (at - 1_000 * SECOND) / 1_000_000 * drift_ppm;
        let hosts = ["client", "server", "server", "client"];
        let times = [
            sent,
            server(heard),
            server(answered),
            answered + MS + unit % 3,
        ];
        for ((keyword, host), at) in keywords.iter().zip(hosts).zip(times) {
            table.push(
                keyword,
                host,
                u64::try_from(at).unwrap(),
                &[EventValue::Number(unit)],
            );
        }
    }
    table
}

const OTHERS: [&str; 4] = ["GO", "COME", "LEAVE", "BACK"];
const OWN: [&str; 4] = ["APP_CALL", "APP_INDICATION", "APP_REPLY", "APP_RESPONSE"];

fn clocks(table: &EventTable, index: &Index) -> Clocks {
    let mut causality = Causality::new(index);
    causality.add(table);
    causality.finish()
}

fn varied(unit: i64) -> i64 {
    5 * MS + unit % 7 * 3 * MS
}

#[test]
fn a_clock_that_contradicts_what_was_sent_is_corrected_within_its_error() {
    for (ahead, drift) in [(SECOND, 0), (-SECOND, 0), (30 * MS, 0), (-7 * SECOND, 80)] {
        let clocks = clocks(&calls(ahead, drift, OTHERS, varied), &Index::default());
        let (clock, sentence) = &clocks.corrected["server"];
        let error = clock.error_ns.unwrap();
        for at in [0, 4 * SECOND] {
            let now = 1_000 * SECOND + at;
            let shown = now + ahead + at / 1_000_000 * drift;
            let off = clock
                .reference_ns(u64::try_from(shown).unwrap())
                .abs_diff(u64::try_from(now).unwrap());
            assert!(
                off <= error && error < 3 * MS as u64,
                "{off} ns off, {error} ns reported"
            );
        }
        assert_eq!(
            (clocks.reference.as_deref(), clocks.doubts.len()),
            (Some("client"), 0)
        );
        assert!(
            sentence.starts_with("the clock of server is "),
            "{sentence}"
        );
    }
}

#[test]
fn clocks_that_can_be_right_stay() {
    for ahead in [0, MS / 2] {
        assert_eq!(
            clocks(&calls(ahead, 0, OTHERS, varied), &Index::default()),
            Clocks::default()
        );
    }
}

#[test]
fn times_that_never_vary_prove_nothing_unless_the_events_do() {
    let same = |_| 5 * MS;
    let found = clocks(&calls(-SECOND, 0, OTHERS, same), &Index::default());
    assert!(found.corrected.is_empty());
    let doubt = &found.doubts["server"];
    assert!(
        doubt.contains("before those at client") && doubt.contains("--clock server=-"),
        "{doubt}"
    );
    let found = clocks(&calls(-SECOND, 0, OWN, same), &Index::default());
    assert!(
        found.corrected["server"].0.offset_ns.abs_diff(-SECOND) < 2 * MS as u64,
        "{found:?}"
    );
}

#[test]
fn a_pipeline_is_no_call() {
    // Each unit goes on to the other host, after a time of its own, and does not come back.
    let mut table = EventTable::default();
    for unit in 0..40 {
        let at = 1_000 * SECOND + unit * 100 * MS;
        let there = at + 30 * MS + unit * unit % 11 * 4 * MS;
        for (keyword, host, at) in [
            ("READ", "a", at),
            ("SENT", "a", at + (9 + unit % 5) * MS),
            ("CAME", "b", there),
            ("KEPT", "b", there + unit % 3 * MS),
        ] {
            table.push(
                keyword,
                host,
                u64::try_from(at).unwrap(),
                &[EventValue::Number(unit)],
            );
        }
    }
    assert_eq!(clocks(&table, &Index::default()), Clocks::default());
}

#[test]
fn a_clock_that_was_given_is_not_corrected_again() {
    let mut index = Index::default();
    let given = |offset_ns| HostTrace {
        clock: ClockCorrection {
            offset_ns,
            ..ClockCorrection::default()
        },
        ..HostTrace::default()
    };
    index.hosts.insert("server".into(), given(SECOND));
    let table = calls(SECOND, 0, OTHERS, varied);
    assert_eq!(clocks(&table, &index), Clocks::default());
    index.hosts.insert("server".into(), given(3 * SECOND));
    let found = clocks(&table, &index);
    assert!(
        found.corrected.is_empty()
            && found.doubts["server"].contains("specified or estimated correction"),
        "{found:?}"
    );
}

#[test]
fn what_comes_without_being_asked_for_says_nothing_of_clocks() {
    let mut table = calls(0, 0, OWN, varied);
    let mut pushes = EventTable::default();
    // The server says something, and the client gets it 1 ms later.
    for unit in 100..140 {
        let left = 1_000 * SECOND + unit * 100 * MS;
        let events = [
            ("APP_REPLY", "server", left),
            ("NET_SEEN", "client", left + MS),
            ("APP_RESPONSE", "client", left + MS),
        ];
        for (keyword, host, at) in events {
            let at_ns = u64::try_from(at).unwrap();
            pushes.push(keyword, host, at_ns, &[EventValue::Number(unit)]);
            table.push(keyword, host, at_ns, &[EventValue::Number(unit)]);
        }
    }
    for table in [table, pushes] {
        assert_eq!(clocks(&table, &Index::default()), Clocks::default());
    }
}

#[test]
fn what_lies_within_the_error_of_an_estimate_does_not_contradict_it() {
    let estimated = |error_ns| HostTrace {
        clock: ClockCorrection {
            offset_ns: 5,
            error_ns: Some(error_ns),
            ..ClockCorrection::default()
        },
        ..HostTrace::default()
    };
    let mut index = Index::default();
    index.hosts.insert("server".into(), estimated(5_000_000));
    let table = calls(4 * MS, 0, OWN, varied);
    assert_eq!(clocks(&table, &index), Clocks::default());
    index.hosts.insert("server".into(), estimated(1_000));
    assert!(clocks(&table, &index).doubts.contains_key("server"));
}

#[test]
fn hosts_behind_one_another_are_corrected_to_one_clock() {
    let mut table = EventTable::default();
    let offsets = [0, 2 * SECOND, -5 * SECOND];
    for unit in 0..20 {
        let at = 1_000 * SECOND + unit * 100 * MS;
        let work = varied(unit);
        for (depth, (host, ahead)) in ["web", "app", "db"].iter().zip(offsets).enumerate() {
            let span = format!("{unit}-{depth}");
            let parent = depth
                .checked_sub(1)
                .map(|depth| format!("{unit}-{depth}"))
                .unwrap_or_default();
            let inset = depth as i64 * MS;
            for (keyword, at) in [
                ("X_START", at + inset),
                ("X_END", at + 9 * MS + work - inset),
            ] {
                let data = [
                    EventValue::Number(unit),
                    EventValue::Text(&span),
                    EventValue::parse(&parent),
                ];
                table.push(keyword, host, u64::try_from(at + ahead).unwrap(), &data);
            }
        }
    }
    let found = clocks(&table, &Index::default());
    assert_eq!(found.reference.as_deref(), Some("web"));
    for (host, ahead) in [("app", offsets[1]), ("db", offsets[2])] {
        let clock = &found.corrected[host].0;
        assert!(
            clock.offset_ns.abs_diff(ahead) <= clock.error_ns.unwrap(),
            "{host}: {clock:?}"
        );
    }
}

#[test]
fn the_span_that_waits_lies_closer_around_another_than_its_unit() {
    // A request of 120 ms whose span of 100 ms waits for one of 80 ms on another host, the clock of which is behind.
    for late_ns in [0, 15 * MS] {
        let mut table = EventTable::default();
        for unit in 0..6 {
            let begin = 1_000 * SECOND + unit * 500 * MS;
            let trace = format!("{unit:032x}");
            let spans = [
                ("h1", "a1", None, begin, 120),
                ("h1", "a2", Some("a1"), begin + 5 * MS, 100),
                (
                    "h2",
                    "b1",
                    Some("a2"),
                    begin + 15 * MS + late_ns - 200 * MS,
                    80,
                ),
                (
                    "h2",
                    "b2",
                    Some("b1"),
                    begin + 20 * MS + late_ns - 200 * MS,
                    30,
                ),
            ];
            for (host, span, parent, from, ms) in spans {
                let ids = [
                    EventValue::Text(&trace),
                    span.into(),
                    EventValue::from(parent),
                ];
                for at in [from, from + ms * MS] {
                    table.push("SPAN", host, u64::try_from(at).unwrap(), &ids);
                }
            }
        }
        let (clock, _) = &clocks(&table, &Index::default()).corrected["h2"];
        // That of the parent takes 20 ms more, that of the unit 40.
        let off_ns = clock.offset_ns.abs_diff(late_ns - 200 * MS);
        let error_ns = clock.error_ns.unwrap();
        assert!(off_ns < MS as u64 && error_ns < 11 * MS as u64, "{clock:?}");
    }
}
