//! Units that events follow, where nothing was measured: what limits is found by where they wait, whatever points are called.

use super::super::of_events;
use super::MS;
use stackline_events::{EventTable, EventValue};

/// Units that come to a server every 3 ms, are served one at a time in `serve` ms and sent one at a time in `send` ms; those that would
/// wait longer than 60 ms for either are given up.
fn session(serve: u64, send: u64) -> EventTable {
    let mut table = EventTable::default();
    let (mut served, mut sent) = (0_u64, 0_u64);
    for unit in 0..200_u64 {
        let mut event = |keyword: &str, host: &str, ms: u64, order: u64| {
            table.push(
                keyword,
                host,
                ms * MS + order,
                &[EventValue::Number(unit as i64)],
            );
        };
        let came = 3 * unit;
        event("ask", "me", came, 0);
        event("in", "host", came + 1, 1);
        let begins = served.max(came + 1);
        if begins > came + 60 {
            event("any_FLUSH", "host", came + 60, 2);
            continue;
        }
        served = begins + serve;
        event("begins", "host", begins, 2);
        event("ends", "host", served, 3);
        let leaves = sent.max(served);
        if leaves > served + 60 {
            event("any_FLUSH", "host", served + 60, 4);
            continue;
        }
        sent = leaves + send;
        event("leaves", "host", leaves, 4);
        event("left", "host", sent, 5);
        event("got", "me", sent + 1, 6);
    }
    table
}

/// What a port did all the time.
fn port(table: &mut EventTable, busy_ppm: u64, drops: u64) {
    table.push(
        "PORT_SETUP",
        "x",
        0,
        &[
            EventValue::Text("x>me"),
            10_000_000_u64.into(),
            3_000_u64.into(),
        ],
    );
    for at in 1..=6_u64 {
        let (interval, now) = (100 * MS, at * 100 * MS);
        let busy = EventValue::from(interval / 1_000_000 * busy_ppm);
        let port = [
            interval.into(),
            EventValue::Text("x>me"),
            100_u64.into(),
            100_000_u64.into(),
            busy,
            drops.into(),
        ];
        table.push("PORT_USE", "x", now, &port);
    }
}

/// What a host's processor did all the time.
fn processor(table: &mut EventTable, host: &str, busy_ppm: u64, until_ms: u64) {
    for at in 1..=until_ms / 100 {
        let shares = [busy_ppm, 0, 0, 0, 0, 1_000_000 - busy_ppm].map(EventValue::from);
        let data = [[100 * MS, 0].map(EventValue::from).as_slice(), &shares].concat();
        table.push("CPU_USE", host, at * 100 * MS, &data);
    }
}

/// What a port and a connection did all the time.
fn watched(table: &mut EventTable, busy_ppm: u64, drops: u64, limited_ppm: u64, unread: u64) {
    let absent = EventValue::Absent;
    port(table, busy_ppm, drops);
    for at in 1..=6_u64 {
        let (interval, now) = (100 * MS, at * 100 * MS);
        let part = |ppm: u64| EventValue::from(interval / 1_000_000 * ppm);
        let info = |local: &'static str, remote: &'static str, limited: u64, unread: u64| {
            let mut data = vec![
                EventValue::from(interval),
                absent,
                EventValue::Text(local),
                EventValue::Text(remote),
            ];
            data.extend([20_000, 9_000, MS, u64::from(drops > 0)].map(EventValue::from));
            data.extend([
                EventValue::from(interval),
                part(limited),
                0_u64.into(),
                0_u64.into(),
                unread.into(),
            ]);
            data.extend([60_000_u64, 1_448, 10_000].map(EventValue::from));
            data
        };
        table.push("TCP_INFO", "host", now, &info("host", "me", limited_ppm, 0));
        table.push("TCP_INFO", "me", now, &info("me", "host", 0, unread));
    }
}

fn first(table: &EventTable) -> (&'static str, String) {
    let found = of_events(table);
    found
        .into_iter()
        .next()
        .map_or_else(Default::default, |first| (first.kind, first.sentence))
}

#[test]
fn a_busy_stage_limits_and_its_units_end_before_it() {
    let found = of_events(&session(5, 1));
    assert_eq!(found[0].kind, "stage_limited");
    assert!(
        found[0]
            .sentence
            .starts_with("the stage begins to ends at host is the limit"),
        "{}",
        found[0].sentence
    );
    let evidence: Vec<&str> = found[0]
        .evidence
        .iter()
        .map(|evidence| evidence.what.as_str())
        .collect();
    assert!(
        evidence
            .iter()
            .any(|what| what.ends_with("units were abandoned: 100 % after in")),
        "{evidence:?}"
    );
}

#[test]
fn beyond_the_server_ports_and_connections_decide() {
    let slow = || session(1, 5);
    assert_eq!(
        first(&slow()).0,
        "network_limited",
        "nothing was seen of the network"
    );
    for (kind, (busy, drops, limited, unread)) in [
        ("network_limited", (970_000, 3, 0, 0)),
        ("queue_drop", (300_000, 40, 0, 0)),
        ("receiver_limited", (300_000, 0, 900_000, 50_000)),
        ("window_below_bdp", (300_000, 0, 900_000, 0)),
    ] {
        let mut table = slow();
        watched(&mut table, busy, drops, limited, unread);
        let (found, sentence) = first(&table);
        assert_eq!(found, kind, "{sentence}");
        assert!(
            kind == "window_below_bdp" || kind == "receiver_limited" || sentence.contains("x>me"),
            "{sentence}"
        );
    }
}

/// Requests of a display, each `every` ms after the one before, or once that is done: drawn in 2 ms, done when `back` ms later.
fn drawn(every: Option<u64>, back: u64) -> EventTable {
    let mut table = EventTable::default();
    let (mut done, mut free) = (0_u64, 0_u64);
    for unit in 0..200_u64 {
        let called = every.map_or(done, |every| every * unit);
        let begins = free.max(called + 1);
        free = begins + 2;
        done = free + back;
        let path = [
            ("CALL", "me", called),
            ("PARSE", "host", begins),
            ("STORE", "host", begins),
            ("RENDER", "host", free),
        ];
        for (order, (name, host, ms)) in path.into_iter().chain([("DONE", "me", done)]).enumerate()
        {
            let keyword = format!("DISPLAY_{name}");
            table.push(
                &keyword,
                host,
                ms * MS + order as u64,
                &[EventValue::Number(unit as i64)],
            );
        }
    }
    table
}

#[test]
fn what_ends_with_work_is_no_sending_and_what_waits_for_its_answer_goes_one_after_the_other() {
    // Asked for every 1 ms, drawn in 2: the display. Its requests wait where they are on their way to it.
    let mut arrives = drawn(Some(1), 5);
    for unit in 0..200_u64 {
        arrives.push(
            "DISPLAY_AGENT",
            "host",
            unit * MS + 1_000,
            &[EventValue::Number(unit as i64)],
        );
    }
    let (kind, sentence) = first(&arrives);
    assert_eq!(kind, "stage_limited", "{sentence}");
    assert!(
        sentence.starts_with("the stage stored to drawn at host is the limit"),
        "{sentence}"
    );
    // One at a time, of which each takes 10 ms and is drawn in 2.
    let (kind, sentence) = first(&drawn(None, 7));
    assert_eq!(kind, "serial_round_trips", "{sentence}");
    assert!(
        sentence.starts_with("200 units are sent one after another")
            && sentence.contains("10.0 ms"),
        "{sentence}"
    );
    assert!(sentence.contains("20 % is spent at host"), "{sentence}");
    // A way of 7 ms beside one of 1 ms is not a distance; one of 2 ms may be.
    assert!(
        sentence.contains(
            "the rest is 7.00 ms in transit back and 1.00 ms in transit there: distance cannot"
        ),
        "{sentence}"
    );
    assert!(
        first(&drawn(None, 2))
            .1
            .ends_with("the rest is spent on round trips or on a timer")
    );
    // One every 20 ms takes as long, and nobody waits for it.
    let (kind, sentence) = first(&drawn(Some(20), 7));
    assert_eq!(kind, "healthy", "{sentence}");
}

/// Requests of a display made every 5 ms, each `across` ms on a line that carries one at a time; they are kept at once and drawn and
/// answered together with the last.
fn together(across: u64) -> EventTable {
    let mut table = EventTable::default();
    let mut line = 0;
    let times: Vec<[u64; 3]> = (0..200)
        .map(|unit| {
            let sent = 5 * unit + 1;
            line = sent.max(line) + across;
            [5 * unit, sent, line]
        })
        .collect();
    let end = line + 1;
    for (unit, [called, sent, came]) in times.into_iter().enumerate() {
        let path = [
            ("CALL", "me", called),
            ("SEND", "me", sent),
            ("ARRIVE", "host", came),
            ("PARSE", "host", came),
        ];
        let path = path.into_iter().chain([
            ("STORE", "host", came),
            ("RENDER", "host", end),
            ("DONE", "me", end + 1),
        ]);
        for (order, (name, host, ms)) in path.enumerate() {
            let keyword = format!("DISPLAY_{name}");
            table.push(
                &keyword,
                host,
                ms * MS + order as u64,
                &[EventValue::Number(unit as i64)],
            );
        }
    }
    table
}

#[test]
fn work_and_bits_that_no_point_tells_of_are_found_by_what_processors_and_ports_did() {
    // One at a time, 10 ms each, of which 9 are work at a host between that no point is of; or bits.
    let mut works = drawn(None, 7);
    processor(&mut works, "between", 900_000, 2_000);
    let (kind, sentence) = first(&works);
    assert_eq!(
        (kind, sentence.as_str()),
        (
            "cpu_limit",
            "the limit is the processor of between, busy 90 % of the time"
        )
    );
    let mut bits = drawn(None, 7);
    bits.push(
        "PORT_SETUP",
        "host",
        0,
        &[EventValue::Text("host>me"), 2_400_u64.into()],
    );
    let used = [
        (2_000 * MS).into(),
        EventValue::Text("host>me"),
        200_u64.into(),
        8_000_u64.into(),
        (1_900 * MS).into(),
    ];
    bits.push("PORT_USE", "host", 2_000 * MS, &used);
    let (kind, sentence) = first(&bits);
    assert_eq!(
        (kind, sentence.as_str()),
        (
            "network_limited",
            "the link host>me is full: 95 % of 2.40 kbit/s is used"
        )
    );
    // Neither works for long, while all are on their way together.
    let mut waits = EventTable::default();
    for unit in 0..200_u64 {
        let sent = unit / 20 * 100;
        let path = [
            ("CALL", "me", sent),
            ("SEND", "me", sent),
            ("ARRIVE", "host", sent + 50),
            ("PARSE", "host", sent + 50),
        ];
        for (order, (name, host, ms)) in path
            .into_iter()
            .chain([
                ("STORE", "host", sent + 50),
                ("RENDER", "host", sent + 50),
                ("DONE", "me", 1_000),
            ])
            .enumerate()
        {
            waits.push(
                &format!("DISPLAY_{name}"),
                host,
                ms * MS + order as u64,
                &[EventValue::Number(unit as i64)],
            );
        }
    }
    assert_eq!(first(&waits).0, "healthy", "nothing was seen of ports");
    port(&mut waits, 10_000, 0);
    let (kind, sentence) = first(&waits);
    assert!(
        kind == "serial_round_trips"
            && sentence.contains(
                "no link is busy more than 1 % of the time; processors were not monitored"
            ),
        "{sentence}"
    );
    processor(&mut waits, "me", 600_000, 1_000);
    let (kind, sentence) = first(&waits);
    assert!(
        kind == "cpu_limit"
            && sentence.starts_with(
                "the busiest resource is the processor of me, in use 60 % of the time"
            ),
        "{sentence}"
    );
    // Work that takes a part is reported, and what is left is the way.
    let mut partly = drawn(None, 7);
    processor(&mut partly, "between", 400_000, 2_000);
    let (kind, sentence) = first(&partly);
    assert!(
        kind == "serial_round_trips"
            && sentence.contains("40 % is work on the processor of between"),
        "{sentence}"
    );
    // What a stretch of the way says already is said once.
    let mut known = drawn(Some(1), 5);
    for unit in 0..200_u64 {
        known.push(
            "DISPLAY_AGENT",
            "host",
            unit * MS + 1_000,
            &[EventValue::Number(unit as i64)],
        );
    }
    processor(&mut known, "host", 990_000, 400);
    let kinds: Vec<&str> = of_events(&known).iter().map(|found| found.kind).collect();
    assert!(
        kinds.contains(&"stage_limited") && !kinds.contains(&"cpu_limit"),
        "{kinds:?}"
    );
}

#[test]
fn what_is_held_for_later_requests_is_no_work_and_a_line_that_is_waited_for_is_named() {
    let (kind, sentence) = first(&together(12));
    assert_eq!(kind, "network_limited", "{sentence}");
    assert!(
        sentence.starts_with("the path between me and host is the limit"),
        "{sentence}"
    );
    // A line that keeps up: nothing works all the time, and something is waited for all the same.
    let found = of_events(&together(1));
    let (kind, sentence, sure) = (found[0].kind, &found[0].sentence, found[0].confidence);
    assert_eq!((kind, sure), ("healthy", 0.5), "{sentence}");
    assert!(sentence.starts_with("the limit is unknown"), "{sentence}");
}

#[test]
fn what_keeps_up_is_healthy_and_a_few_units_are_no_session() {
    let (kind, sentence) = first(&session(1, 1));
    assert_eq!(kind, "healthy", "{sentence}");
    let mut few = EventTable::default();
    for unit in 0..5_i64 {
        few.push("ask", "me", unit as u64 * MS, &[unit.into()]);
        few.push("in", "host", unit as u64 * MS + 1, &[unit.into()]);
        few.push("got", "me", unit as u64 * MS + 2, &[unit.into()]);
    }
    assert_eq!(of_events(&few), []);
}

/// Units of which one in ten comes and nothing is ever heard of the others, though each was sent.
fn lossy() -> EventTable {
    let mut table = EventTable::default();
    for unit in 0..400_u64 {
        let mut event = |keyword: &str, host: &str, at_ns: u64| {
            table.push(keyword, host, at_ns, &[EventValue::Number(unit as i64)]);
        };
        // Whoever asks and whoever forwards are one host.
        let asked = unit / 20 * 30 * MS;
        event("ask", "me", asked);
        if unit % 10 == 0 {
            event("forward", "me", asked + MS);
            event("in", "host", asked + 2 * MS);
            event("leaves", "host", asked + 3 * MS);
            event("got", "me", asked + 4 * MS);
        }
    }
    table
}

#[test]
fn what_is_lost_for_good_is_counted_and_its_port_named() {
    for (kind, (busy, drops), words) in [
        ("queue_drop", (300_000, 40), "x>me"),
        ("network_limited", (970_000, 40), "the link x>me is full"),
        ("receiver_limited", (300_000, 0), "no port drops anything"),
    ] {
        let mut table = lossy();
        port(&mut table, busy, drops);
        let (found, sentence) = first(&table);
        assert_eq!(found, kind, "{sentence}");
        assert!(sentence.contains(words), "{sentence}");
        assert!(
            sentence.contains("342 of 400 units never arrived, and none of them was retransmitted"),
            "{sentence}"
        );
    }
    assert_eq!(
        first(&lossy()).0,
        "network_limited",
        "nothing was seen of the network"
    );
}
