//! Units that events follow, where nothing was measured: what limits is found by where they wait, whatever points are called.

use super::super::of_events;
use super::MS;
use stackline_events::{Table, Value};

/// Units that come to a server every 3 ms, are served one at a time in `serve` ms and sent one at a time in `send` ms; those that would
/// wait longer than 60 ms for either are given up.
fn session(serve: u64, send: u64) -> Table {
    let mut table = Table::default();
    let (mut served, mut sent) = (0_u64, 0_u64);
    for unit in 0..200_u64 {
        let mut event = |keyword: &str, host: &str, ms: u64, order: u64| {
            table.push(keyword, host, ms * MS + order, &[Value::Number(unit as i64)]);
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
fn port(table: &mut Table, busy_ppm: u64, drops: u64) {
    table.push("PORT_SETUP", "x", 0, &[Value::Text("x>me"), 10_000_000_u64.into(), 3_000_u64.into()]);
    for at in 1..=6_u64 {
        let (interval, now) = (100 * MS, at * 100 * MS);
        let busy = Value::from(interval / 1_000_000 * busy_ppm);
        let port = [interval.into(), Value::Text("x>me"), 100_u64.into(), 100_000_u64.into(), busy, drops.into()];
        table.push("PORT_USE", "x", now, &port);
    }
}

/// What a port and a connection did all the time.
fn watched(table: &mut Table, busy_ppm: u64, drops: u64, limited_ppm: u64, unread: u64) {
    let absent = Value::Absent;
    port(table, busy_ppm, drops);
    for at in 1..=6_u64 {
        let (interval, now) = (100 * MS, at * 100 * MS);
        let part = |ppm: u64| Value::from(interval / 1_000_000 * ppm);
        let info = |local: &'static str, remote: &'static str, limited: u64, unread: u64| {
            let mut data = vec![Value::from(interval), absent, Value::Text(local), Value::Text(remote)];
            data.extend([20_000, 9_000, MS, u64::from(drops > 0)].map(Value::from));
            data.extend([Value::from(interval), part(limited), 0_u64.into(), 0_u64.into(), unread.into()]);
            data.extend([60_000_u64, 1_448, 10_000].map(Value::from));
            data
        };
        table.push("TCP_INFO", "host", now, &info("host", "me", limited_ppm, 0));
        table.push("TCP_INFO", "me", now, &info("me", "host", 0, unread));
    }
}

fn first(table: &Table) -> (&'static str, String) {
    let found = of_events(table);
    found.into_iter().next().map_or_else(Default::default, |first| (first.kind, first.sentence))
}

#[test]
fn a_busy_stage_limits_and_its_units_end_before_it() {
    let found = of_events(&session(5, 1));
    assert_eq!(found[0].kind, "stage_limited");
    assert!(found[0].sentence.starts_with("begins to ends at host limits"), "{}", found[0].sentence);
    let evidence: Vec<&str> = found[0].evidence.iter().map(|evidence| evidence.what.as_str()).collect();
    assert!(evidence.iter().any(|what| what.ends_with("units were given up: 100 % behind in")), "{evidence:?}");
}

#[test]
fn beyond_the_server_ports_and_connections_decide() {
    let slow = || session(1, 5);
    assert_eq!(first(&slow()).0, "network_limited", "nothing was seen of the network");
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
        assert!(kind == "window_below_bdp" || kind == "receiver_limited" || sentence.contains("x>me"), "{sentence}");
    }
}

#[test]
fn what_keeps_up_is_healthy_and_a_few_units_are_no_session() {
    let (kind, sentence) = first(&session(1, 1));
    assert_eq!(kind, "healthy", "{sentence}");
    let mut few = Table::default();
    for unit in 0..5_i64 {
        few.push("ask", "me", unit as u64 * MS, &[unit.into()]);
        few.push("in", "host", unit as u64 * MS + 1, &[unit.into()]);
        few.push("got", "me", unit as u64 * MS + 2, &[unit.into()]);
    }
    assert_eq!(of_events(&few), []);
}

/// Units of which one in ten comes and nothing is ever heard of the others, though each was sent.
fn lossy() -> Table {
    let mut table = Table::default();
    for unit in 0..400_u64 {
        let mut event = |keyword: &str, host: &str, at_ns: u64| {
            table.push(keyword, host, at_ns, &[Value::Number(unit as i64)]);
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
        assert!(sentence.contains("342 of 400 units never came, and nothing of them was sent again"), "{sentence}");
    }
    assert_eq!(first(&lossy()).0, "network_limited", "nothing was seen of the network");
}
