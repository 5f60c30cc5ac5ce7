//! `runs changes`: where a figure of kept runs changed, and their series for Otava.

use crate::support::Place;
use std::fs;

fn run(place: &Place, name: &str, delay: &str, seed: usize) {
    let text = format!(
        "network n {{ host a, b; link a - b 100 Mbit/s {delay} jitter exponential(100 us); }} 2 from a to b rr 32*50 over tcp across n in simulated;"
    );
    let seed = seed.to_string();
    place
        .stackline(&["run", "--name", name, "--seed", &seed, "-e", &text])
        .succeeds();
}

#[test]
fn a_step_in_kept_runs_is_found_with_its_first_run() {
    let place = Place::new();
    for at in 0..8 {
        run(&place, &format!("old{at}"), "5 ms", at);
    }
    for at in 0..8 {
        run(&place, &format!("new{at}"), "5.5 ms", 100 + at);
    }
    place
        .stackline(&["runs", "tag", "new0", "kernel"])
        .succeeds();
    let found = place.stackline(&["runs", "changes", "--otava", "series.csv"]);
    let out = &found.succeeds().out;
    assert!(out.contains("runs: 1 change point"), "{out}");
    assert!(
        out.contains("-new0 [kernel]") && out.contains("SLOWER"),
        "{out}"
    );
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let csv = fs::read_to_string(place.path("series.csv")).unwrap();
    assert_eq!(csv.lines().count(), 17);
    assert!(
        found.err.contains("wrote 16 rows to series.csv"),
        "{}",
        found.err
    );
    let json = place
        .stackline(&["runs", "changes", "--metric", "median", "--json"])
        .succeeds()
        .json();
    let series = &json["series"][0];
    assert_eq!(series["changes"][0]["index"], 8);
    assert_eq!(series["metric"], "median of response time");
    assert_eq!(series["points"].as_array().unwrap().len(), 16);
    let none = place.stackline(&["runs", "changes", "--magnitude", "50%"]);
    assert!(
        none.succeeds().out.contains("no change point"),
        "{}",
        none.out
    );
    let old = place.stackline(&["runs", "changes", "old"]);
    assert!(
        old.succeeds().out.contains("runs: no change point"),
        "{}",
        old.out
    );
}

#[test]
fn what_cannot_be_a_series_is_refused() {
    let place = Place::new();
    run(&place, "one", "5 ms", 1);
    let changes = |words: &[&str]| place.stackline(&[&["runs", "changes"], words].concat());
    changes(&["nothing"]).fails(2, &["no complete run with `nothing`"]);
    changes(&["--metric", "throughput"]).fails(2, &["has this figure"]);
    changes(&["--metric", "speed"]).fails(2, &["there is no metric `speed`"]);
    changes(&["--window", "1"]).fails(2, &["from 2 to 500"]);
    changes(&["--max-p", "1"]).fails(2, &["a probability such as 0.001"]);
    let few = changes(&[]);
    assert!(
        few.succeeds().out.contains("too few for a change point"),
        "{}",
        few.out
    );
}
