//! Traced runs as the program makes them: of the live world, of more events than are read, and of slow programs.

use crate::support::events::{events, field, range};
use crate::support::{Place, pair};
use stackline_events::text::TextEvent;

fn traced_in(world: &str, text: &str, seed: &str) -> (Place, Vec<TextEvent>) {
    let place = Place::new();
    place
        .stackline(&["run", "-e", text, "--in", world, "--trace", "--seed", seed])
        .succeeds();
    let events = events(&place.kept().0);
    (place, events)
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

#[test]
fn of_events_that_are_too_many_whole_runs_are_read_and_a_note_says_so() {
    let place = Place::new();
    let text = format!(
        "{} 3 from a to b bulk_put 1000*200 over tcp, blast across n in simulated",
        pair("")
    );
    let shown = place.stackline(&["run", "--trace", "-e", &text]);
    shown.succeeds();
    assert!(!shown.out.contains("events were read"), "{}", shown.out);
    let run = place.kept().0.display().to_string();
    let all = place.stackline(&["diagnose", "--json", &run]).json();
    let total = events(&place.kept().0).len();
    let (most, one) = ((total / 2).to_string(), "100");
    for (command, note) in [
        ("diagnose", "findings and lifelines cover "),
        ("lifelines", "lifelines cover "),
    ] {
        let part = place.stackline(&[command, &run, "--most-events", &most]);
        part.succeeds();
        let words = format!("{}{}", part.out, part.err)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            words.contains(&format!("of {total} events were read: {note}")),
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
            !format!("{}{}", whole.out, whole.err).contains("events were read"),
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
