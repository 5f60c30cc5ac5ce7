//! Latency against offered load: as a queue's theory has it in virtual time, over sockets, at servers of others, and what is refused.

use crate::support::{Finished, Place, number};
use serde_json::Value;
use std::fs;

/// One server that takes 1 ms for each call, and a way to it that takes no time.
const QUEUE: &str = "network n { host a, b; link a - b 100 Gbit/s 0 s; }
3 timelimit 4 from a to b rr 64*5 poisson 9/s service 1 ms across n in simulated;";

fn load(place: &Place, more: &[&str], text: &str) -> Finished {
    let words = [&["load", "--json"][..], more, &["-e", text]].concat();
    place.stackline(&words)
}

fn steps(answer: &Value) -> &Vec<Value> {
    answer["steps"].as_array().unwrap()
}

#[test]
fn a_queue_saturates_at_its_capacity_and_the_rates_are_one_kept_run() {
    let place = Place::new();
    let curve = place.path("curve.svg");
    let more = ["--steps", "5", "-o", curve.to_str().unwrap()];
    let finished = load(&place, &more, QUEUE);
    let answer = finished.succeeds().json();
    // 1000/s without pauses; steps from 50/s to 1250/s, of which the last is too much.
    assert!(
        (number(&answer, "/closed_per_s") - 1000.0).abs() < 10.0,
        "{answer}"
    );
    let offered: Vec<f64> = steps(&answer)
        .iter()
        .map(|step| number(step, "/offered_per_s"))
        .collect();
    assert_eq!(offered.len(), 5, "{answer}");
    assert!(
        (offered[0] - 50.0).abs() < 1.0 && (offered[4] - 1250.0).abs() < 15.0,
        "{answer}"
    );
    assert_eq!(answer["stop"]["why"], "saturated");
    assert!(
        steps(&answer)[..4]
            .iter()
            .all(|step| step["saturated"].is_null()),
        "{answer}"
    );
    // M/D/1 waits r / (2 (1 - r)) of a service time on average: medians stay near it, and grow without bound beyond.
    let median = |at: usize| number(&steps(&answer)[at], "/p50/value_s");
    assert!((0.001..0.0012).contains(&median(0)), "{answer}");
    assert!(median(4) > 0.01, "{answer}");
    assert_eq!(
        (&answer["arrivals"], &answer["pairs"]),
        (&"poisson".into(), &1.into())
    );
    // In virtual time the generator is never late.
    assert_eq!(number(&answer, "/steps/4/generator_lateness_s/max"), 0.0);
    assert!(fs::read_to_string(&curve).unwrap().contains("offered"));
    let points = place.stackline(&["plot", "last", "--x", "offered", "--y", "p99"]);
    assert_eq!(points.succeeds().out.lines().count(), 1 + 5);
    let text = fs::read_to_string(place.runs()[0].join("specification.stackline")).unwrap();
    assert!(
        text.contains("rr 64 poisson <offered>/s total service 1 ms"),
        "{text}"
    );
}

#[test]
fn the_highest_rate_is_that_of_the_theory() {
    let place = Place::new();
    let more = [
        "--meet",
        "p99 < 5 ms",
        "--precision",
        "10%",
        "--rates",
        "100/s..2k/s",
    ];
    let finished = load(&place, &more, QUEUE);
    let answer = finished.succeeds().json();
    // The distribution of waits in M/D/1 (A. K. Erlang, 1909) puts the 99th percentile at 5 ms for 561/s.
    let met = number(&answer, "/highest/met_per_s");
    let missed = number(&answer, "/highest/missed_per_s");
    assert!((300.0..575.0).contains(&met), "{answer}");
    assert!((548.0..1000.0).contains(&missed), "{answer}");
    assert_eq!(number(&answer, "/highest/error_rate"), 0.05);
    let verdicts: Vec<&str> = steps(&answer)
        .iter()
        .map(|step| step["verdict"].as_str().unwrap())
        .collect();
    assert!(
        verdicts.contains(&"met") && verdicts.contains(&"missed"),
        "{verdicts:?}"
    );
}

#[test]
fn all_rates_miss_or_all_meet() {
    let place = Place::new();
    let even = QUEUE
        .replace("poisson", "rate")
        .replace("timelimit 4", "timelimit 8");
    let rates = ["--rates", "20/s..500/s", "--meet"];
    let missed = load(&place, &[&rates[..], &["p99 < 1 us"]].concat(), &even);
    assert_eq!(missed.status.code(), Some(4), "{}", missed.err);
    let answer: Value = serde_json::from_str(&missed.out).unwrap();
    assert_eq!(answer["highest"]["met_per_s"], Value::Null);
    assert_eq!(number(&answer, "/highest/missed_per_s"), 20.0);
    let met = load(&place, &[&rates[..], &["p99 < 1 s"]].concat(), &even);
    let answer = met.succeeds().json();
    assert_eq!(number(&answer, "/highest/met_per_s"), 500.0);
    assert_eq!(answer["highest"]["missed_per_s"], Value::Null);
}

#[test]
fn pairs_share_the_rate_over_sockets() {
    let place = Place::new();
    let more = ["--rates", "200/s..400/s", "--steps", "2", "--runs", "2"];
    let answer = load(&place, &more, "1 4 rr 64 timelimit 0.3")
        .succeeds()
        .json();
    let steps = steps(&answer);
    assert_eq!(number(&answer, "/pairs"), 4.0);
    // So few calls are made in time on any machine; all pairs together make them.
    let achieved = number(&steps[0], "/achieved_per_s/mean");
    assert!((150.0..230.0).contains(&achieved), "{answer}");
    assert!(
        number(&steps[0], "/generator_lateness_s/p99") > 0.0,
        "{answer}"
    );
}

#[test]
fn what_cannot_be_loaded_is_refused() {
    let place = Place::new();
    let refused = |more: &[&str], text: &str, words: &[&str]| {
        let all = [&["load"][..], more, &["-e", text]].concat();
        place.stackline(&all).fails(2, words);
    };
    refused(&[], "1 rr 32*5; 1 rr 64*5;", &["several measurements"]);
    refused(
        &["--line", "7"],
        "1 rr 32*5;",
        &["no measurement begins on line 7"],
    );
    refused(
        &[],
        "1 rr 32*5 over tcp, udp;",
        &["2 measurements would be loaded"],
    );
    refused(&[], "1 rr 32*5 R/s; R = 5, 6;", &["is a variable"]);
    refused(&["--meet", "p99 < 5"], "1 rr 32*5;", &["--meet"]);
    refused(
        &["--meet", "finding nagle_delayed_ack"],
        "1 rr 32*5;",
        &["--meet"],
    );
    refused(&["-o", "x.txt"], "1 rr 32*5;", &["x.txt"]);
    refused(&["--rates", "9/s..1/s"], "1 rr 32*5;", &["9/s..1/s"]);
    place.empties();
}
