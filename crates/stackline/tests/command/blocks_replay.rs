//! `blocks replay` in virtual time: what it keeps can be diagnosed, and shown.

use crate::support::Place;
use serde_json::Value;

const COLLAPSES: &str = "network atm { host s1, s2, s3, master, app; switch x { buffer 1500 bytes per port; cells 53; }
  link s1 - x 155.52 Mbit/s 100 us mtu 9180; link s2 - x 155.52 Mbit/s 100 us mtu 9180; link s3 - x 155.52 Mbit/s 100 us mtu 9180;
  link master - x 155.52 Mbit/s 100 us mtu 9180; link app - x 155.52 Mbit/s 100 us mtu 9180; }";

/// Replays in virtual time.
fn replayed(place: &Place, network: &str, flags: &[&str]) {
    place.write("net.stackline", network);
    let words = ["blocks", "replay", "--across", "net.stackline", "--in", "simulated", "--interval", "200ms"];
    place.stackline(&[&words, flags].concat()).succeeds();
}

fn texts<'j>(list: &'j Value, field: &str) -> Vec<&'j str> {
    list.as_array().unwrap().iter().filter_map(|one| one[field].as_str()).collect()
}

#[test]
fn the_port_whose_buffer_is_too_small_is_named_first() {
    let place = Place::new();
    replayed(&place, COLLAPSES, &["--for", "5s", "--disk", "exponential(12 ms)", "--blocks", "60"]);
    let run = place.kept().0;
    let run = run.to_str().unwrap();
    let json = place.stackline(&["diagnose", run, "--json"]).json();
    let first = &json["findings"][0];
    assert_eq!(first["kind"], "queue_drop", "{json:#}");
    assert!(first["sentence"].as_str().unwrap().contains("x>app (it holds 1500 B)"), "{first:#}");
    let evidence = texts(&first["evidence"], "what").join("\n");
    for words in ["frames spoilt", "segments sent again", "units were given up", "of the time of all units"] {
        assert!(evidence.contains(words), "{words}: {evidence}");
    }
    assert!(json["scope"].as_str().unwrap().contains("what units waited for inside hosts"), "{}", json["scope"]);

    let json = place.stackline(&["lifelines", run, "--json"]).json();
    assert!(["s1", "s2", "s3"].iter().all(|host| texts(&json["profiles"], "host").contains(host)), "{json:#}");
    let together = &json["together"];
    assert!(together["groups"] == 3 && together["share"].as_f64().unwrap() > 0.0, "{together}");
    let text = place.stackline(&["lifelines", run]).succeeds().out.clone();
    assert!(text.contains("of each host's time") && text.contains("several of 3 blocked at once"), "{text}");

    place.stackline(&["report", run, "-o", "page.html"]).succeeds();
}

#[test]
fn cells_lost_and_frames_spoilt_are_events_of_ports() {
    let place = Place::new();
    replayed(&place, COLLAPSES, &["--for", "1s", "--disk", "2 ms", "--blocks", "40"]);
    let run = place.kept().0;
    let exported = place.stackline(&["export", run.to_str().unwrap(), "--text", "-"]).succeeds().out.clone();
    let of = |keyword: &str| exported.lines().filter(|line| line.starts_with(keyword)).count();
    assert!(of("PORT_SETUP") >= 8, "{exported}");
    let spoilt: u64 = exported
        .lines()
        .filter(|line| line.starts_with("PORT_USE; x;") && line.contains("x>app"))
        .filter_map(|line| line.split("; ").nth(11)?.parse::<u64>().ok())
        .sum();
    assert!(spoilt > 0, "{exported}");
}

#[test]
fn what_keeps_up_is_healthy() {
    let place = Place::new();
    let lan = COLLAPSES.replace("buffer 1500 bytes per port; cells 53;", "");
    replayed(&place, &lan, &["--for", "2s", "--disk", "5 ms", "--blocks", "12"]);
    let run = place.kept().0;
    let json = place.stackline(&["diagnose", run.to_str().unwrap(), "--json"]).json();
    assert_eq!(texts(&json["findings"], "kind"), ["healthy"], "{json:#}");
}
