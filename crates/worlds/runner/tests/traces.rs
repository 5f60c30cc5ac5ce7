//! Traced runs of the simulated world: whole logs of small ones, and what holds for the events of any.
//!
//! `UPDATE_GOLDEN=1` writes the logs anew.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod common;

use common::{Made, Making, make};
use stackline_core::catalogue::{PacketContent, StackTable};
use stackline_core::plan::{Plan, World};
use stackline_events::text::TextEvent;
use stackline_runner::spec_source::SpecSource;
use stackline_spec::Overrides;
use std::collections::BTreeMap;
use std::path::Path;

/// Two hosts, `a` and `b`, 10 ms apart with a switch `x` between them, and what the link behind it does besides.
fn pair(loss: &str) -> String {
    format!(
        "network n {{ host a, b; switch x; link a - x 10 Mbit/s 4 ms; link x - b 10 Mbit/s 6 ms {loss}; }}"
    )
}

fn simulated(text: &str, seed: u64) -> Plan {
    let given = Overrides {
        seed: Some(seed),
        ..Overrides::default()
    };
    SpecSource::made("test", text.into())
        .plan_in(World::Simulated, given)
        .unwrap()
}

/// Runs it traced; its events in the order of their own hosts' times.
fn traced(text: &str, seed: u64) -> (Made, Vec<TextEvent>) {
    let making = Making {
        trace: true,
        ..Making::default()
    };
    let made = make(&simulated(text, seed), &making);
    let table = stackline_runs::events::read_run(&made.path).unwrap();
    let mut events: Vec<TextEvent> = (0..table.len()).map(|row| table.event(row)).collect();
    events.sort_by_key(|event| event.at_ns);
    (made, events)
}

/// The names of the simulated stacks for which that is true. Those across IMPs need a network of these.
fn stacks_that(is_so: impl Fn(&StackTable) -> bool) -> Vec<&'static str> {
    let stacks = stackline_sim::stack_tables().into_iter();
    let stacks = stacks.filter(|stack| !stack.imps && is_so(stack));
    stacks.map(|stack| stack.name).collect()
}

/// Whether its packets show which bytes of a stream they carry.
fn shows_its_bytes(stack: &StackTable) -> bool {
    matches!(
        stack.facts.packets,
        PacketContent::Stream | PacketContent::Blasts
    )
}

/// A number among the data of an event.
fn field(event: &TextEvent, name: &str) -> Option<i64> {
    let place = stackline_events::catalogue::find(&event.keyword)?.field(name)?;
    event.data.get(place)?.parse().ok()
}

/// The bytes of a stream, from and to, that an event is about.
fn range(event: &TextEvent) -> Option<(i64, i64)> {
    let offset = field(event, "offset")?;
    Some((offset, offset + field(event, "bytes")?))
}

/// The ranges of a stream that events of that keyword name, one behind the other.
fn ranges(events: &[TextEvent], keywords: &[&str], stream: i64) -> Vec<(i64, i64)> {
    let of = |event: &&TextEvent| {
        keywords.contains(&event.keyword.as_str()) && field(event, "stream") == Some(stream)
    };
    let mut ranges: Vec<(i64, i64)> = events.iter().filter(of).filter_map(range).collect();
    ranges.sort_unstable();
    ranges.dedup();
    ranges
}

fn covered(ranges: &[(i64, i64)], (from, to): (i64, i64)) -> bool {
    let mut at = from;
    for (start, end) in ranges {
        if *start <= at {
            at = at.max(*end);
        }
    }
    at >= to
}

const LOSSY: [&str; 4] = [
    "",
    "loss packets 9",
    "loss 3%",
    "loss 3% jitter uniform(0, 1 ms)",
];

#[test]
fn small_runs_have_the_logs_that_are_kept() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/traces");
    for (name, loss, what) in [
        ("two-calls.txt", "", "rr 100*2 over tcp"),
        (
            "put-with-a-loss.txt",
            "loss packets 6",
            "bulk_put 1000*12 over tcp",
        ),
        (
            "blast-with-a-nak.txt",
            "loss packets 6",
            "bulk_put 1000*6 over blast(selective)",
        ),
        (
            "datagrams.txt",
            "loss packets 17",
            "bulk_put 1000*4 over udp",
        ),
    ] {
        let (_, events) = traced(&format!("{} 1 from a to b {what} across n;", pair(loss)), 7);
        let log: String = events.iter().map(|event| format!("{event}\n")).collect();
        let path = directory.join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &log).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(log == expected, "{name} differs; it is now:\n{log}");
    }
}

#[test]
fn every_byte_of_a_unit_is_sent_and_delivered() {
    for stack in stacks_that(shows_its_bytes) {
        for (loss, seed) in LOSSY.iter().zip(1..) {
            let text = format!(
                "{} 1 from a to b bulk_put 700*60 over {stack} across n;",
                pair(loss)
            );
            let (_, events) = traced(&text, seed);
            let units = ranges(&events, &["APP_SEND"], 0);
            assert_eq!(units.len(), 60, "{stack} {loss}");
            assert_eq!(
                ranges(&events, &["APP_RECEIVED"], 0),
                units,
                "{stack} {loss}"
            );
            let sent = ranges(&events, &["TCP_SEGMENT", "BLAST_SEND"], 0);
            let delivered = ranges(&events, &["NET_DELIVER"], 0);
            for unit in units {
                assert!(
                    covered(&sent, unit) && covered(&delivered, unit),
                    "{stack} {loss} {unit:?}"
                );
            }
            let ids = |keyword: &str| {
                let of = events.iter().filter(|event| event.keyword == keyword);
                of.filter_map(|event| field(event, "unit"))
                    .collect::<Vec<_>>()
            };
            assert_eq!(ids("APP_SEND"), ids("APP_RECEIVED"), "{stack} {loss}");
        }
    }
}

/// What is dropped of a TCP stream is sent again with the very bytes, and arrives.
#[test]
fn what_is_dropped_is_sent_again() {
    let text = format!(
        "{} 1 from a to b bulk_put 1400*200 over tcp across n;",
        pair("loss 4%")
    );
    let (_, events) = traced(&text, 5);
    let dropped = ranges(&events, &["NET_DROP"], 0);
    assert!(dropped.len() > 3, "{dropped:?}");
    let again = ranges(&events, &["TCP_RETRANSMIT"], 0);
    let delivered = ranges(&events, &["NET_DELIVER"], 0);
    for range in dropped.into_iter().filter(|(from, to)| from < to) {
        assert!(
            covered(&again, range) && covered(&delivered, range),
            "{range:?}"
        );
    }
}

/// One program that uses every stack.
fn every_stack(loss: &str) -> String {
    let over = stacks_that(|stack| !stack.one_way).join(", ");
    let types = ["bulk_put 900*30", "bulk_get 900*30", "rr 100*20"];
    let measurements = types.map(|what| format!("1 from a to b {what} over {over} across n;\n"));
    format!("{}\n{}", pair(loss), measurements.concat())
}

#[test]
fn tracing_changes_nothing_and_repeats_itself() {
    let text = every_stack("loss packets 25");
    let digest = |made: &Made| {
        let environment = made.stored().environment;
        let known = &environment["worlds"]["simulated"];
        assert!(known["digest"].is_string(), "{environment}");
        (
            known["digest"].clone(),
            known["events"].clone(),
            std::fs::read(made.path.join("runs.jsonl")).unwrap(),
        )
    };
    let plain = make(&simulated(&text, 11), &Making::default());
    let (first, events) = traced(&text, 11);
    let (second, again) = traced(&text, 11);
    assert_eq!(digest(&plain), digest(&first));
    assert_eq!(digest(&plain), digest(&second));
    assert!(events == again, "the same seed, the same events");
    // Every protocol machine emitted events.
    for keyword in [
        "BLAST_RETRANSMIT",
        "IKP_SEND",
        "IKP_RETRANSMIT",
        "QUIC_LOST",
        "TCP_INFO",
        "QUIC_INFO",
        "BLAST_INFO",
    ] {
        assert!(
            events.iter().any(|event| event.keyword == keyword),
            "no {keyword}"
        );
    }
    // Both ends of every flow tell of the same units: what was sent came, or its loss is known.
    let stacks = stacks_that(|stack| !stack.one_way).len();
    let count = |keyword: &str| {
        events
            .iter()
            .filter(|event| event.keyword == keyword)
            .count()
    };
    assert_eq!(
        (count("APP_CALL"), count("APP_RESPONSE") + count("APP_LOST")),
        (stacks * 20, stacks * 20)
    );
    assert_eq!(count("APP_SEND"), 2 * stacks * 30);
    assert!(
        count("APP_RECEIVED") <= count("APP_SEND") && count("APP_RECEIVED") > 2 * stacks * 30 - 20
    );
}

#[test]
fn results_agree_with_what_was_traced() {
    let text = format!(
        "{} 1 from a to b rr 100*25 over tcp across n in simulated;",
        pair("loss 2%")
    );
    let (made, events) = traced(&text, 3);
    let mut calls: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for event in events
        .iter()
        .filter(|event| matches!(event.keyword.as_str(), "APP_CALL" | "APP_RESPONSE"))
    {
        calls
            .entry(field(event, "unit").unwrap())
            .or_default()
            .push(event.at_ns);
    }
    assert_eq!(calls.len(), 25);
    let longest = calls.values().map(|at| at[1] - at[0]).max().unwrap();
    let most = made.records[0].calls.min_max.map(|(_, most)| most);
    assert_eq!(most, Some(longest));
}

/// Ten packets of 1000 bytes and more, each 5 ms of copying at either end: the processors are what holds them up.
#[test]
fn a_processor_that_copies_is_busy() {
    let slow = pair("").replace("host a, b;", "host a, b { copy 5 ms per packet; }");
    let (_, events) = traced(
        &format!("{slow} 1 from a to b bulk_put 1000*60 over udp across n;"),
        7,
    );
    let of = |event: &&TextEvent| event.keyword == "CPU_USE" && event.host == "a";
    let shares: Vec<i64> = events
        .iter()
        .filter(of)
        .filter_map(|event| field(event, "system_ppm"))
        .collect();
    assert!(
        shares.len() > 3 && shares.iter().all(|ppm| (1..=1_000_000).contains(ppm)),
        "{shares:?}"
    );
    assert!(shares.contains(&1_000_000), "{shares:?}");
}

#[test]
fn a_host_with_a_wrong_clock_stamps_with_it() {
    let wrong = pair("").replace("host a, b;", "host a; host b { clock behind 3 ms; }");
    let (_, right) = traced(
        &format!("{} 1 from a to b rr 100*2 over tcp across n;", pair("")),
        7,
    );
    let (_, wrong) = traced(
        &format!("{wrong} 1 from a to b rr 100*2 over tcp across n;"),
        7,
    );
    let at = |events: &[TextEvent], host: &str| {
        let of = events.iter().filter(|event| event.host == host);
        of.map(|event| event.at_ns).collect::<Vec<_>>()
    };
    let later = |by: u64, times: Vec<u64>| times.into_iter().map(|at| at + by).collect::<Vec<_>>();
    // The whole run begins 3 ms later, so that nothing is stamped before its origin.
    assert_eq!(at(&wrong, "b"), at(&right, "b"));
    assert_eq!(at(&wrong, "a"), later(3_000_000, at(&right, "a")));
    assert_eq!(at(&wrong, "x"), later(3_000_000, at(&right, "x")));
}
