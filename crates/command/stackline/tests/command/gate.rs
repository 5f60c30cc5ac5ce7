//! `gate` and `run --against`: exit codes, baselines in a repository, what is wrong with them.

use crate::support::{Finished, Place};
use std::fs;

/// Calls over a link of this delay, with a little chance so that runs differ.
fn calls(delay: &str, runs: u32) -> String {
    format!(
        "network n {{ host a, b; link a - b 100 Mbit/s {delay} jitter exponential(20 us); }}\n{runs} from a to b rr 32*50 over tcp across n in simulated;\n"
    )
}

/// The JSON that a command printed, whatever its exit code is.
fn json_of(done: &Finished) -> serde_json::Value {
    serde_json::from_str(&done.out).unwrap()
}

fn run(place: &Place, name: &str, delay: &str, runs: u32) {
    let text = calls(delay, runs);
    place
        .stackline(&["run", "--name", name, "-e", &text])
        .succeeds();
}

#[test]
fn a_gate_ends_with_0_4_or_5() {
    let place = Place::new();
    run(&place, "base", "5 ms", 6);
    run(&place, "same", "5 ms", 5);
    run(&place, "slow", "6 ms", 6);
    run(&place, "once", "5 ms", 1);
    let gate = |arguments: &[&str]| place.stackline(&[&["gate"], arguments].concat());
    let same = gate(&["base", "same"]);
    assert!(same.succeeds().out.contains("same"), "{}", same.out);
    assert!(
        same.err.contains("passed: nothing is worse by 5 % or more"),
        "{}",
        same.err
    );
    let slow = gate(&["base", "slow", "--worse", "3%", "--error-rate", "0.1%"]);
    assert_eq!(slow.status.code(), Some(4), "{}", slow.err);
    assert!(
        slow.out.contains("WORSE") && slow.err.contains("failed: response time of"),
        "{}",
        slow.err
    );
    assert!(slow.err.contains("(error rate 0.1 %)"), "{}", slow.err);
    assert_eq!(
        gate(&["base", "slow", "--worse", "40%", "--tolerate", "30%"])
            .status
            .code(),
        Some(0)
    );
    assert_eq!(gate(&["slow", "base"]).status.code(), Some(0));
    let once = gate(&["base", "once"]);
    assert_eq!(once.status.code(), Some(5));
    assert!(
        once.out
            .contains("6 and 1 counted runs, but each side needs two"),
        "{}",
        once.out
    );
    let json = gate(&["base", "slow", "--json", "--junit", "gate.xml", "--github"]);
    assert_eq!(json_of(&json)["figures"][0]["verdict"], "worse");
    assert!(
        json.err.contains("::error title=response time of"),
        "{}",
        json.err
    );
    assert!(
        fs::read_to_string(place.path("gate.xml"))
            .unwrap()
            .contains("<failure ")
    );
}

#[test]
fn a_baseline_file_is_small_the_same_again_and_judges_as_its_run() {
    let place = Place::new();
    run(&place, "base", "5 ms", 6);
    run(&place, "slow", "6 ms", 6);
    for file in ["one.json", "two.json"] {
        place
            .stackline(&["gate", "--save", file, "base"])
            .succeeds();
    }
    let bytes = |file: &str| fs::read(place.path(file)).unwrap();
    assert_eq!(bytes("one.json"), bytes("two.json"));
    assert!(bytes("one.json").len() < 1000);
    let code = |arguments: &[&str]| {
        place
            .stackline(&[&["gate"], arguments].concat())
            .status
            .code()
    };
    assert_eq!(code(&["one.json", "slow"]), Some(4));
    assert_eq!(code(&["one.json", "base"]), Some(0));
    assert_eq!(code(&["one.json", "two.json"]), Some(0));
    // A figure of the file is that of the run to nine digits.
    let figures = |base: &str| {
        let gate = place.stackline(&["gate", base, "slow", "--json"]);
        json_of(&gate)["figures"].clone()
    };
    let (of_file, of_run) = (figures("one.json"), figures("base"));
    let mean = |figures: &serde_json::Value| figures[0]["base"]["mean"].as_f64().unwrap();
    assert!((mean(&of_file) / mean(&of_run) - 1.0).abs() < 1e-8);
}

#[test]
fn a_run_is_judged_as_soon_as_it_is_made() {
    let place = Place::new();
    run(&place, "base", "5 ms", 6);
    place
        .stackline(&["gate", "--save", "base.json", "base"])
        .succeeds();
    place.write("slow.stackline", calls("6 ms", 6));
    let slow = place.stackline(&[
        "run",
        "slow.stackline",
        "--against",
        "base.json",
        "--junit",
        "run.xml",
        "--github",
    ]);
    assert_eq!(slow.status.code(), Some(4), "{}", slow.err);
    assert!(
        slow.out.contains("WORSE") && slow.err.contains("failed: "),
        "{}",
        slow.out
    );
    assert!(
        slow.err.contains("::error file=slow.stackline,line="),
        "{}",
        slow.err
    );
    assert!(
        fs::read_to_string(place.path("run.xml"))
            .unwrap()
            .contains("against the baseline")
    );
    // `last` is the newest run before this one.
    let again = place.stackline(&["run", "slow.stackline", "--against", "last", "--json"]);
    assert_eq!(again.succeeds().json()["gate"]["verdict"], "passed");
    let lost = place.stackline(&["run", "slow.stackline", "--against", "nothing"]);
    lost.fails(2, &["nothing"]);
    place
        .stackline(&["run", "slow.stackline", "--worse", "3%"])
        .fails(2, &["no baseline is given"])
        .hints("--against");
    assert_eq!(
        place.runs().len(),
        3,
        "nothing ran where the baseline is missing"
    );
}

#[test]
fn a_bad_baseline_is_refused_with_what_to_do() {
    let place = Place::new();
    run(&place, "base", "5 ms", 2);
    place
        .stackline(&["gate", "--save", "base.json", "base"])
        .succeeds();
    let text = fs::read_to_string(place.path("base.json")).unwrap();
    place.write("cut.json", &text[..text.len() / 2]);
    place.write(
        "newer.json",
        text.replace("\"version\": 1", "\"version\": 9"),
    );
    place.write("else.json", "{\"measurements\": []}");
    place.write(
        "other.json",
        text.replace("request_response", "bulk_get")
            .replace("rr 32", "bulk_get 1"),
    );
    let gate = |file: &str| place.stackline(&["gate", file, "base"]);
    gate("cut.json")
        .fails(2, &["is damaged"])
        .hints("save it again");
    gate("newer.json")
        .fails(2, &["has version 9"])
        .hints("the stackline that saved it");
    gate("else.json")
        .fails(2, &["is not a baseline"])
        .hints("--save");
    gate("other.json").fails(2, &["no measurement in common"]);
    gate("base")
        .fails(2, &["name the same run"])
        .hints("last~1");
    assert_eq!(place.stackline(&["gate", "base"]).status.code(), Some(2));
    for wrong in [
        ["--worse", "0%"],
        ["--error-rate", "60%"],
        ["--tolerate", "7%"],
    ] {
        let words = ["gate", "base.json", "base", wrong[0], wrong[1]];
        place.stackline(&words).fails(2, &[wrong[0]]);
    }
}

#[test]
fn other_hardware_is_said_with_what_differs() {
    let place = Place::new();
    let text = "3 rr 32*20 over unix";
    place
        .stackline(&["run", "--name", "base", "-e", text])
        .succeeds();
    place
        .stackline(&["gate", "--save", "base.json", "base"])
        .succeeds();
    let saved = fs::read_to_string(place.path("base.json")).unwrap();
    let kernel = saved
        .split("\"kernel\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap();
    place.write("old.json", saved.replace(kernel, "2.6.32"));
    let gate = place.stackline(&["gate", "old.json", "base"]);
    let said = format!("another machine: kernel 2.6.32 -> {kernel}");
    assert!(
        gate.out.replace("\n  ", " ").contains(&said),
        "{}",
        gate.out
    );
}

#[test]
fn percentiles_are_judged_where_they_are_asked_for() {
    let place = Place::new();
    let make = |name: &str, delay: &str, count: u32| {
        let text = calls(delay, 6).replace("32*50", &format!("32*{count}"));
        place
            .stackline(&["run", "--name", name, "-e", &text])
            .succeeds();
    };
    make("base", "5 ms", 150);
    make("slow", "6 ms", 150);
    make("short", "5 ms", 50);
    let metrics = |arguments: &[&str]| -> Vec<String> {
        let gate = place.stackline(&[&["gate", "--json"], arguments].concat());
        let figures = json_of(&gate)["figures"].as_array().unwrap().clone();
        let of = |one: &serde_json::Value| format!("{} {}", one["metric"], one["verdict"]);
        figures.iter().map(of).collect()
    };
    let asked = ["base", "slow", "--figures", "mean,p50,p99"];
    let worse =
        ["response", "response_p50", "response_p99"].map(|name| format!("\"{name}\" \"worse\""));
    assert_eq!(metrics(&asked), worse);
    assert_eq!(metrics(&["base", "slow"]), worse[..1]);
    assert_eq!(metrics(&["base", "slow", "--figures", "p99"]), worse[2..]);
    let save = ["gate", "--save", "base.json", "base"];
    place.stackline(&save).succeeds();
    let saved = ["base.json", "slow", "--figures", "mean,p50,p99"];
    assert_eq!(metrics(&saved), worse);
    place
        .stackline(&["gate", "base", "short", "--figures", "p99"])
        .fails(2, &["the new run has no p99 of response time"])
        .hints("100 calls");
    // A file that an older version saved has means alone.
    let text = fs::read_to_string(place.path("base.json")).unwrap();
    let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let figures = file["measurements"][0]["figures"].as_object_mut().unwrap();
    figures.retain(|name, _| !name.contains("_p"));
    place.write("old.json", file.to_string());
    assert_eq!(metrics(&["old.json", "slow"]), worse[..1]);
    place
        .stackline(&["gate", "old.json", "slow", "--figures", "p99"])
        .fails(2, &["the baseline has no p99 of response time"])
        .hints("save it again");
}

#[test]
fn a_small_segment_that_became_slower_is_found_in_30_runs() {
    let place = Place::new();
    // The first link takes 1 % of the time, and depends on the size; the second one varies by much more than it.
    let make = |name: &str, rate: &str| {
        let text = format!(
            "network n {{ host a, b; switch s; link a - s {rate} 0 us; link s - b 1 Gbit/s 5 ms jitter exponential(500 us); }}
             30 from a to b rr uniform(60, 100)*20 over tcp across n in simulated;"
        );
        place
            .stackline(&["run", "--trace", "--name", name, "-e", &text])
            .succeeds();
    };
    make("base", "10 Mbit/s");
    make("slow", "9.52 Mbit/s");
    let whole = place.stackline(&["gate", "base", "slow", "--worse", "10%"]);
    assert_ne!(whole.status.code(), Some(4), "{}", whole.err);
    let found = place.stackline(&["gate", "base", "slow", "--worse", "10%", "--segments"]);
    assert_eq!(found.status.code(), Some(4), "{}{}", found.out, found.err);
    assert!(found.err.contains("a>s"), "{}{}", found.out, found.err);
    assert!(
        found.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        found.out
    );
    place
        .stackline(&["gate", "--save", "base.json", "base"])
        .succeeds();
    place
        .stackline(&["gate", "base.json", "slow", "--segments"])
        .fails(2, &["a baseline file, which has no segments"])
        .hints("--trace");
    run(&place, "untraced", "5 ms", 3);
    place
        .stackline(&["gate", "untraced", "slow", "--segments"])
        .fails(2, &["has no events of its measurements"])
        .hints("--trace");
}
