//! Where the time of each data unit went, of a run and of a log of others: as text, as JSON, for gnuplot.

use crate::support::Place;
use std::fs;

const TRACED: &str = "network n { host a, b; switch x; link a - x 10 Mbit/s 4 ms; link x - b 10 Mbit/s 6 ms; } \
     2 from a to b rr 100*20 over tcp across n in simulated;";

/// Shows the run in every form: `units` units, the first point of the way, the sum of all shares.
fn shown(place: &Place, units: u64, begins: &str) {
    let run = place.kept().0;
    let run = run.to_str().unwrap();
    let text = place.stackline(&["lifelines", run]).succeeds().out.clone();
    assert!(
        text.contains("where the time went") && text.contains(begins),
        "{text}"
    );
    let json = place.stackline(&["lifelines", run, "--json"]).json();
    let complete = json["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|count| count["connections"] == false);
    let complete: Vec<_> = complete
        .map(|count| (count["outcome"].as_str(), count["units"].as_u64()))
        .collect();
    assert_eq!(complete, [(Some("complete"), Some(units))]);
    let segments = json["segments"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|segment| segment["connections"] == false);
    let share: f64 = segments
        .map(|segment| segment["share"].as_f64().unwrap())
        .sum();
    assert!((share - 1.0).abs() < 1e-9, "{share}");
    place
        .stackline(&["lifelines", run, "--gnuplot", "drawn"])
        .succeeds();
    let script = fs::read_to_string(place.path("drawn/lifelines.gp")).unwrap();
    assert!(script.contains(begins), "{script}");
    let lines = fs::read_to_string(place.path("drawn/lines-0.dat")).unwrap();
    assert!(lines.split("\n\n").count() as u64 > units, "{lines}");
}

#[test]
fn a_simulated_run() {
    let place = Place::new();
    place
        .stackline(&["run", "--trace", "-e", TRACED])
        .succeeds();
    shown(&place, 40, "APP_CALL a");
}

#[test]
fn a_log_of_others() {
    let mut log = String::new();
    for block in 0..10 {
        let path = [
            ("APP_ASKS", "viewer", 10),
            ("START_READ", "server", 18),
            ("END_READ", "server", 40),
            ("APP_HAS", "viewer", 60),
        ];
        for (keyword, host, ms) in path {
            log += &format!("{keyword}; {host}; {block}; {ms}000000; {block}\n");
        }
    }
    let place = Place::new();
    place.write("blocks.log", log);
    place.stackline(&["import", "blocks.log"]).succeeds();
    shown(&place, 10, "APP_ASKS viewer");
}
