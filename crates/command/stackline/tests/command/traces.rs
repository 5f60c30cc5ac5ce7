//! Traced runs of the simulated world: whole logs of small ones, and what holds for the events of any.
//!
//! `UPDATE_GOLDEN=1` writes the logs anew.

use crate::support::events::{events, field, range};
use crate::support::{Place, number, pair, stacks};
use stackline_events::text::TextEvent;
use std::collections::BTreeMap;
use std::path::Path;

/// Runs it traced, simulated.
fn traced(text: &str, seed: &str) -> (Place, Vec<TextEvent>) {
    traced_in("simulated", text, seed)
}

fn traced_in(world: &str, text: &str, seed: &str) -> (Place, Vec<TextEvent>) {
    let place = Place::new();
    place
        .stackline(&["run", "-e", text, "--in", world, "--trace", "--seed", seed])
        .succeeds();
    let events = events(&place.kept().0);
    (place, events)
}

#[test]
fn small_runs_have_the_logs_that_are_kept() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/traces");
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
        let (_, events) = traced(
            &format!("{} 1 from a to b {what} across n;", pair(loss)),
            "7",
        );
        let log: String = events.iter().map(|event| format!("{event}\n")).collect();
        let path = directory.join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &log).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(log == expected, "{name} differs; it is now:\n{log}");
    }
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
fn every_byte_of_a_unit_is_sent_and_delivered() {
    for stack in stacks::that_show_their_bytes("simulated") {
        for (loss, seed) in LOSSY.iter().zip(["1", "2", "3", "4"]) {
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

/// The machines of `proto::blast` emit the same events when real datagrams carry them.
#[test]
fn blasts_are_recorded_in_the_live_world_too() {
    let (_, events) = traced_in("live", "1 bulk_put 5000*30 over blast", "1");
    let units = ranges(&events, &["APP_SEND"], 0);
    assert_eq!(units.len(), 30, "{events:?}");
    let (sent, confirmed) = (
        ranges(&events, &["BLAST_SEND"], 0),
        ranges(&events, &["BLAST_ACK"], 0),
    );
    for unit in units {
        assert!(
            covered(&sent, unit) && covered(&confirmed, unit),
            "{unit:?} of {sent:?}, {confirmed:?}"
        );
    }
}

/// What is dropped of a TCP stream is sent again with the very bytes, and arrives.
#[test]
fn what_is_dropped_is_sent_again() {
    let text = format!(
        "{} 1 from a to b bulk_put 1400*200 over tcp across n;",
        pair("loss 4%")
    );
    let (_, events) = traced(&text, "5");
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
    let over = stacks::that_answer("simulated").join(", ");
    let types = ["bulk_put 900*30", "bulk_get 900*30", "rr 100*20"];
    let measurements = types.map(|what| format!("1 from a to b {what} over {over} across n;\n"));
    format!("{}\n{}", pair(loss), measurements.concat())
}

#[test]
fn tracing_changes_nothing_and_repeats_itself() {
    let text = every_stack("loss packets 25");
    let digest = |place: &Place| {
        let environment = std::fs::read_to_string(place.kept().0.join("environment.json")).unwrap();
        let known: serde_json::Value = serde_json::from_str(&environment).unwrap();
        let known = &known["worlds"]["simulated"];
        assert!(known["digest"].is_string(), "{environment}");
        (
            known["digest"].clone(),
            known["events"].clone(),
            std::fs::read(place.kept().0.join("runs.jsonl")).unwrap(),
        )
    };
    let plain = Place::new();
    plain
        .stackline(&["run", "-e", &text, "--in", "simulated", "--seed", "11"])
        .succeeds();
    let (first, events) = traced(&text, "11");
    let (second, again) = traced(&text, "11");
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
    let stacks = stacks::that_answer("simulated").len();
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
    let (place, events) = traced(&text, "3");
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
    let json = place
        .stackline(&["run", "-e", &text, "--seed", "3", "--json"])
        .json();
    let output = number(&json, "/measurements/0/response_s/max");
    assert!(
        (longest as f64 / 1e9 - output).abs() < 1e-9,
        "{longest} ns, {output} s"
    );
}

/// Ten packets of 1000 bytes and more, each 5 ms of copying at either end: the processors are what holds them up.
#[test]
fn a_processor_that_copies_is_busy() {
    let slow = pair("").replace("host a, b;", "host a, b { copy 5 ms per packet; }");
    let (_, events) = traced(
        &format!("{slow} 1 from a to b bulk_put 1000*60 over udp across n;"),
        "7",
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
        "7",
    );
    let (_, wrong) = traced(
        &format!("{wrong} 1 from a to b rr 100*2 over tcp across n;"),
        "7",
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

#[test]
fn of_events_that_are_too_many_whole_runs_are_read_and_a_note_says_so() {
    let place = Place::new();
    let text = format!(
        "{} 3 from a to b bulk_put 1000*200 over tcp, blast across n in simulated",
        pair("")
    );
    let shown = place.stackline(&["run", "--trace", "-e", &text]);
    shown.succeeds();
    assert!(!shown.out.contains("read at once"), "{}", shown.out);
    let run = place.kept().0.display().to_string();
    let all = place.stackline(&["diagnose", "--json", &run]).json();
    let total = events(&place.kept().0).len();
    let (most, one) = ((total / 2).to_string(), "100");
    for (command, note) in [
        ("diagnose", "findings and lifelines are of "),
        ("lifelines", "lifelines are of "),
    ] {
        let part = place.stackline(&[command, &run, "--most-events", &most]);
        part.succeeds();
        let words = format!("{}{}", part.out, part.err)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            words.contains(&format!("of {total} events are read at once: {note}")),
            "{words}"
        );
        // The command in the note reads them all.
        let hint = words
            .split('`')
            .find(|text| text.contains(" --most-events "))
            .unwrap();
        let followed: Vec<&str> = hint.split(' ').skip(1).collect();
        let whole = place.stackline(&followed);
        whole.succeeds();
        assert!(
            !format!("{}{}", whole.out, whole.err).contains("read at once"),
            "{hint}"
        );
    }
    let kinds = |json: &serde_json::Value| -> Vec<(String, String)> {
        let of = |finding: &serde_json::Value| {
            (
                finding["kind"].to_string(),
                finding["measurement"].to_string(),
            )
        };
        json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(of)
            .collect()
    };
    let part = place
        .stackline(&["diagnose", "--json", &run, "--most-events", &most])
        .json();
    assert_eq!(kinds(&part), kinds(&all), "each run is like the other");
    let records = place
        .stackline(&["diagnose", "--json", &run, "--most-events", one])
        .json();
    let named = records["findings"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|finding| finding["evidence"].as_array().unwrap());
    assert!(
        named.clone().count() > 0
            && named
                .clone()
                .all(|evidence| evidence["events"] == serde_json::json!([]))
    );
}

#[test]
fn a_processor_whose_programs_are_slow_is_named_and_a_faster_one_simulated() {
    let place = Place::new();
    place.write(
        "slow.stackline",
        "network n { host a; host b { work 2 ms per operation; } link a - b 10 Mbit/s 1 ms; }\n\
         1 from a to b bulk_put 1000*1000 across n in simulated;\n",
    );
    place
        .stackline(&["run", "--trace", "slow.stackline"])
        .succeeds();
    let listing = place
        .stackline(&["diagnose", "last"])
        .succeeds()
        .out
        .clone();
    let first = listing.lines().take(8).collect::<Vec<_>>().join(" ");
    assert!(
        first.contains("1. the processor of b is at its limit"),
        "{listing}"
    );
    assert!(
        listing.contains("at twice its speed: 2.0") || listing.contains("at twice its speed: 1.9"),
        "{listing}"
    );
}
