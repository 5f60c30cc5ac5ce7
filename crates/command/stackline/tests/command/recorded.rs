//! Traced runs of real programs: on loopback, on hosts whose clocks differ, on emulated networks.

use crate::support::events::{field, range, referred};
use crate::support::{Place, SSH, pair, program, skip, stacks, until};
use nix::sys::signal::Signal;
use stackline_core::trace_index::Index;
use stackline_events::text::TextEvent;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

fn traced(place: &Place, command: &mut Command) -> (Index, Vec<TextEvent>) {
    place.finish(command).succeeds();
    referred(&place.kept().0)
}

fn live(text: &str) -> (Index, Vec<TextEvent>) {
    let place = Place::new();
    traced(&place, &mut place.command(&["run", "--trace", "-e", text]))
}

fn emulated(text: &str) -> Option<(Index, Vec<TextEvent>)> {
    let place = Place::new();
    let output = place.stackline(&["run", "--trace", "--in", "emulated", "-e", text]);
    if output.status.code() == Some(3) {
        skip(&output.err);
        return None;
    }
    output.succeeds();
    Some(referred(&place.kept().0))
}

/// The keywords of each unit's events of the application, in the order of time, by unit.
fn keywords_by_unit(events: &[TextEvent]) -> BTreeMap<i64, Vec<&str>> {
    let mut by_unit: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for event in events
        .iter()
        .filter(|event| event.keyword.starts_with("APP_"))
    {
        let Some(unit) =
            field(event, "unit").filter(|unit| !stackline_events::unit_ids::parts(*unit).2)
        else {
            continue;
        };
        by_unit.entry(unit).or_default().push(&event.keyword);
    }
    by_unit
}

fn at(keywords: &[&str], keyword: &str) -> usize {
    keywords
        .iter()
        .position(|met| *met == keyword)
        .unwrap_or_else(|| panic!("{keyword} is not among {keywords:?}"))
}

#[test]
fn both_ends_name_a_call_alike() {
    for stack in stacks::that_answer("live") {
        let (index, events) = live(&format!("1 rr 100*20 over {stack};"));
        assert_eq!(index.flows.len(), 1);
        let by_unit = keywords_by_unit(&events);
        assert_eq!(by_unit.len(), 20, "{stack}");
        for keywords in by_unit.values() {
            let order = ["APP_CALL", "APP_INDICATION", "APP_REPLY", "APP_RESPONSE"]
                .map(|keyword| at(keywords, keyword));
            assert!(order.is_sorted(), "{stack} {keywords:?}");
            assert_eq!(keywords.len(), 5, "{stack} {keywords:?}");
        }
    }
}

#[test]
fn both_ends_of_a_transfer_name_its_units_alike() {
    for stack in stacks::that_answer("live") {
        for (transfer, from, to) in [
            ("bulk_put", "initiator", "responder"),
            ("bulk_get", "responder", "initiator"),
        ] {
            let (_, events) = live(&format!("1 {transfer} 1000*30 over {stack};"));
            let units = |keyword: &str, host: &str| -> BTreeMap<i64, Option<i64>> {
                let of = events
                    .iter()
                    .filter(|event| event.keyword == keyword && event.host == host);
                of.map(|event| (field(event, "unit").unwrap(), field(event, "offset")))
                    .collect()
            };
            let sent = units("APP_SEND", from);
            assert_eq!(sent.len(), 30, "{stack} {transfer}");
            assert_eq!(units("APP_RECEIVED", to), sent, "{stack} {transfer}");
            assert_eq!(units("APP_SENT", from), sent, "{stack} {transfer}");
            for keywords in keywords_by_unit(&events).values() {
                assert!(
                    at(keywords, "APP_SEND") < at(keywords, "APP_RECEIVED"),
                    "{stack} {transfer} {keywords:?}"
                );
            }
        }
    }
}

#[test]
fn system_calls_have_their_place_in_the_stream() {
    let (_, events) = live("1 bulk_put 3000*40 over tcp;");
    let bytes = |keyword: &str, host: &str| {
        let mut ranges: Vec<(i64, i64)> = events
            .iter()
            .filter(|event| {
                event.keyword == keyword && event.host == host && field(event, "stream") == Some(0)
            })
            .filter_map(|event| Some((field(event, "offset")?, field(event, "bytes")?)))
            .filter(|(_, bytes)| *bytes > 0)
            .collect();
        ranges.sort_unstable();
        ranges
    };
    // 16 bytes of introduction, one that starts the transfer, the units.
    for (keyword, host, from) in [
        ("SOCK_SENT", "initiator", 0),
        ("SOCK_RECEIVED", "responder", 16),
    ] {
        let mut next = from;
        for (offset, bytes) in bytes(keyword, host) {
            assert_eq!(offset, next, "{keyword}");
            next += bytes;
        }
        assert_eq!(next, 17 + 3000 * 40, "{keyword}");
    }
    let connected = events
        .iter()
        .find(|event| event.keyword == "APP_CONNECTED")
        .unwrap();
    let accepted = events
        .iter()
        .find(|event| event.keyword == "APP_ACCEPTED")
        .unwrap();
    assert_eq!(
        (field(connected, "offset"), field(accepted, "offset")),
        (Some(16), Some(0))
    );
    assert_eq!(
        connected.data[4..6].to_vec(),
        [accepted.data[5].clone(), accepted.data[4].clone()]
    );
}

#[test]
fn a_program_without_a_trace_leaves_no_events() {
    let place = Place::new();
    place.stackline(&["run", "-e", "1 rr 100*5;"]).succeeds();
    assert!(!place.kept().0.join("events").exists());
}

#[test]
fn what_a_killed_run_recorded_can_be_read() {
    let place = Place::new();
    let mut command = place.command(&["run", "--trace", "-e", "1 rr 100*7; 1 rr 100*1000000000;"]);
    let running = place.start(&mut command);
    let first = until("the first run is kept", || {
        let run = place.runs().pop()?;
        run.join("events/index.json").exists().then_some(run)
    });
    running.process().signal(Signal::SIGKILL);
    drop(running);
    place.empties();
    let (index, events) = referred(&first);
    assert_eq!(index.runs.len(), 1);
    assert_eq!(keywords_by_unit(&events).len(), 7);
}

/// One call after the other to a host whose agent is started so; its clock as it is told.
fn elsewhere(start: &str) -> Option<(Index, Vec<TextEvent>)> {
    measured_elsewhere(start, "2 to far rr 100*10")
}

fn measured_elsewhere(start: &str, measurement: &str) -> Option<(Index, Vec<TextEvent>)> {
    let place = Place::new();
    let ssh = place.script("ssh", &format!("{SSH}{start}"));
    let text = format!("host far via ssh \"127.0.0.1\"; {measurement};");
    let mut command = place.command(&["run", "--trace", "-e", &text]);
    command
        .env("STACKLINE_SSH", ssh)
        .env("STACKLINE_REMOTE", program());
    let output = place.finish(&mut command);
    if output.status.code() == Some(3) {
        skip(&output.err);
        return None;
    }
    output.succeeds();
    Some(referred(&place.kept().0))
}

#[test]
fn a_clock_that_is_ahead_is_corrected() {
    for ahead_ns in [5_000_000_000_i64, -70_000_000] {
        let start = format!("export STACKLINE_CLOCK_AHEAD_NS={ahead_ns}\nexec sh -c \"$*\"");
        let (index, events) = elsewhere(&start).unwrap();
        let clock = &index.hosts["far"].clock;
        let error = clock.error_ns.unwrap();
        // Where its clock was read and where it was shifted lie a little apart, within what an exchange takes.
        assert!(
            clock.offset_ns.abs_diff(ahead_ns) < 2_000_000 + error,
            "{clock:?}"
        );
        assert_eq!(clock.exchanges.len(), 4, "before and after each run");
        assert!(clock.steps.is_empty());
        let slack = i128::from(error);
        for unit in keywords_by_unit(&events).keys() {
            let when = |keyword: &str| {
                let of = |event: &&TextEvent| {
                    event.keyword == keyword && field(event, "unit") == Some(*unit)
                };
                i128::from(events.iter().find(of).unwrap().at_ns)
            };
            let (call, indication, response) = (
                when("APP_CALL"),
                when("APP_INDICATION"),
                when("APP_RESPONSE"),
            );
            assert!(
                call <= indication + slack && indication <= response + slack,
                "{unit}"
            );
        }
        assert_eq!(index.reference, "initiator");
        assert!(
            index.hosts["initiator"].clock.exchanges.is_empty(),
            "it has our clock"
        );
    }
}

#[test]
fn clocks_are_compared_while_a_long_run_goes_on() {
    let start = "export STACKLINE_CLOCK_AHEAD_NS=70000000\nexec sh -c \"$*\"";
    let (index, _) = measured_elsewhere(start, "1 to far rr 100*25 constant(100 ms)").unwrap();
    let (clock, run) = (&index.hosts["far"].clock, &index.runs[0]);
    let during = clock
        .exchanges
        .iter()
        .filter(|one| run.from_ns < one.asked_ns && one.returned_ns < run.to_ns);
    assert!(during.count() >= 2, "one a second: {clock:?}");
    assert!(
        clock.offset_ns.abs_diff(70_000_000) < 2_000_000 + clock.error_ns.unwrap(),
        "{clock:?}"
    );
}

#[test]
fn a_host_in_a_time_namespace_has_another_clock() {
    let unshare = [
        "--user",
        "--map-root-user",
        "--time",
        "--monotonic",
        "86400",
        "--fork",
    ];
    if !Command::new("unshare")
        .args(unshare)
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        return skip("time namespaces cannot be made here");
    }
    let start = format!("exec unshare {} sh -c \"$*\"", unshare.join(" "));
    let Some((index, events)) = elsewhere(&start) else {
        return;
    };
    let clock = &index.hosts["far"].clock;
    assert!(
        !clock.exchanges.is_empty(),
        "its clock is not taken for ours"
    );
    assert!(
        clock.offset_ns.unsigned_abs() < 10_000_000,
        "the time of day is the same: {clock:?}"
    );
    assert_eq!(keywords_by_unit(&events).len(), 20);
}

#[test]
fn tracing_reports_its_cost() {
    let place = Place::new();
    let finished = place.stackline(&["run", "--trace", "-e", "1 rr 100*200;"]);
    finished.succeeds();
    let (index, _) = referred(&place.kept().0);
    for host in ["initiator", "responder"] {
        let trace = &index.hosts[host];
        assert!(trace.recorded > 1000 && trace.lost == 0, "{trace:?}");
        assert!(
            trace.cost_s["drain"] > 0.0 && trace.cost_s["endpoints"] > 0.0,
            "{trace:?}"
        );
    }
    assert!(index.hosts["initiator"].cost_s.contains_key("monitors"));
    assert!(index.hosts["responder"].absent["monitors"].contains("initiator"));
}

/// The hosts of [`pair`] nearer to each other.
fn near(loss: &str) -> String {
    pair(loss).replace("4 ms", "1 ms").replace("6 ms", "1 ms")
}

/// Ranges of stream 0 that those events report at a place.
fn ranges(events: &[TextEvent], keyword: &str, place: &str) -> Vec<(i64, i64)> {
    let of = |event: &&TextEvent| {
        event.keyword == keyword
            && field(event, "stream") == Some(0)
            && event.data.get(4).is_some_and(|p| p == place)
    };
    events.iter().filter(of).filter_map(range).collect()
}

#[test]
fn bytes_that_an_emulated_network_drops_are_sent_again() {
    let text = format!(
        "{} 1 from a to b bulk_put 1000*150 over tcp across n;",
        near("loss packets 20")
    );
    let Some((_, events)) = emulated(&text) else {
        return;
    };
    let dropped = ranges(&events, "NET_DROP", "x>b");
    assert!(!dropped.is_empty());
    let (sent, arrived) = (
        ranges(&events, "NET_ENQUEUE", "a>x"),
        ranges(&events, "NET_DELIVER", "b"),
    );
    let again = ranges(&events, "NET_AGAIN", "a>x");
    for (from, to) in dropped {
        let crosses = |(start, end): &&(i64, i64)| *start < to && from < *end;
        assert!(
            sent.iter().filter(crosses).count() > 1,
            "{from}..{to} is sent again"
        );
        assert!(
            again.iter().any(|range| crosses(&range)),
            "{from}..{to} is reported as sent again"
        );
        assert!(
            arrived.iter().any(|range| crosses(&range)),
            "{from}..{to} arrives"
        );
    }
    // The bytes of every unit are reported to arrive at the host, in whichever packets.
    let received: Vec<&TextEvent> = events
        .iter()
        .filter(|event| event.keyword == "APP_RECEIVED")
        .collect();
    assert_eq!(received.len(), 150);
    for event in received {
        let (from, bytes) = (
            field(event, "offset").unwrap(),
            field(event, "bytes").unwrap(),
        );
        let mut parts: Vec<_> = arrived
            .iter()
            .filter(|(start, end)| *start < from + bytes && from < *end)
            .collect();
        parts.sort_unstable();
        assert!(
            parts[0].0 <= from && parts.iter().map(|part| part.1).max().unwrap() >= from + bytes
        );
    }
}

#[test]
fn a_dropped_datagram_is_the_missing_unit() {
    let text = format!(
        "{} 1 from a to b bulk_put 1000*60 over udp across n;",
        near("loss packets 15")
    );
    let Some((_, events)) = emulated(&text) else {
        return;
    };
    let units = |keyword: &str| -> BTreeSet<i64> {
        events
            .iter()
            .filter(|event| event.keyword == keyword)
            .filter_map(|event| field(event, "unit"))
            .collect()
    };
    let dropped = units("NET_DROP");
    assert!(!dropped.is_empty());
    let missing: BTreeSet<i64> = units("APP_SEND")
        .difference(&units("APP_RECEIVED"))
        .copied()
        .collect();
    assert_eq!(missing, dropped);
}

#[test]
fn packets_are_between_the_operations_they_belong_to() {
    for stack in stacks::that_show_their_bytes("emulated") {
        let text = format!(
            "{} 1 from a to b rr 100*10 over {stack} across n;",
            near("")
        );
        let Some((index, events)) = emulated(&text) else {
            return;
        };
        assert_eq!(
            (
                index.hosts["a"].clock.offset_ns,
                index.hosts["b"].clock.offset_ns
            ),
            (0, 0)
        );
        for call in events.iter().filter(|event| event.keyword == "APP_CALL") {
            let (unit, offset) = (field(call, "unit"), field(call, "offset").unwrap());
            let enqueued = events.iter().find(|event| {
                event.keyword == "NET_ENQUEUE"
                    && event.data[4] == "a>x"
                    && field(event, "stream") == Some(0)
                    && field(event, "offset").is_some_and(|from| {
                        from <= offset && offset < from + field(event, "bytes").unwrap()
                    })
            });
            let enqueued = enqueued.unwrap_or_else(|| panic!("{stack}: {offset} was never seen"));
            let response = events
                .iter()
                .find(|event| event.keyword == "APP_RESPONSE" && field(event, "unit") == unit);
            assert!(
                call.at_ns < enqueued.at_ns && enqueued.at_ns < response.unwrap().at_ns,
                "{stack}"
            );
        }
    }
}
