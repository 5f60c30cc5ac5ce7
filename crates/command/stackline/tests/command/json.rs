//! `--json`: one object on stdout and nothing else; its keys; numbers that make sense.

use crate::support::{Place, number};
use serde_json::Value;
use std::path::Path;

const RUN: &[&str] = &[
    "complete",
    "measurements",
    "reason",
    "run",
    "seed",
    "stackline",
    "world",
];
const MEASUREMENT: &[&str] = &[
    "absent",
    "application",
    "background",
    "connect_run_s",
    "connect_s",
    "cpu",
    "cpu_s_per_gb",
    "cpu_us_per_call",
    "duplicated",
    "elapsed_s",
    "flags",
    "from",
    "initiator",
    "lateness_s",
    "lost",
    "lost_share",
    "main",
    "marks",
    "measurement",
    "network",
    "normalised_sd",
    "part",
    "rate_per_s",
    "reordered",
    "replicas",
    "reply_bytes",
    "responder",
    "response_run_s",
    "response_s",
    "run_values",
    "runs",
    "stack",
    "text",
    "throughput_bit_s",
    "to",
    "transaction_s",
    "transactions_per_s",
    "unit_bytes",
    "units",
    "variables",
    "world",
];
const STATISTICS: &[&str] = &[
    "ci95", "max", "mean", "median", "min", "n", "p90", "p99", "p999", "sd",
];

/// Fields are added, never renamed or removed.
fn has(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no `{key}` in {value}");
    }
}

fn statistics(value: &Value) {
    has(value, STATISTICS);
    let at = |name: &str| number(value, &format!("/{name}"));
    let ordered = [
        at("min"),
        at("median"),
        at("p90"),
        at("p99"),
        at("p999"),
        at("max"),
    ];
    assert!(ordered.is_sorted(), "{value}");
    assert!(
        at("min") <= at("mean") && at("mean") <= at("max") && at("min") > 0.0,
        "{value}"
    );
}

#[test]
fn the_schema() {
    let json = Place::new().json(
        "3 warmup 2 rr 32, 64*100; 2 bulk_put 1 KiB*100 over unix; 2 connect_disconnect 0*20",
    );
    has(&json, RUN);
    assert_eq!(
        (&json["complete"], &json["reason"]),
        (&Value::Bool(true), &Value::Null)
    );
    assert_eq!((&json["world"], &json["seed"]), (&"live".into(), &1.into()));
    let measured = json["measurements"].as_array().unwrap();
    assert_eq!(measured.len(), 3);
    measured.iter().for_each(|m| has(m, MEASUREMENT));
    let [rr, put, connect] = [&measured[0], &measured[1], &measured[2]];

    assert_eq!(
        (number(rr, "/runs"), number(rr, "/units")),
        (3.0, 100.0),
        "the warm-up is left out"
    );
    assert_eq!(
        (number(rr, "/unit_bytes"), number(rr, "/reply_bytes")),
        (32.0, 64.0)
    );
    statistics(&rr["response_s"]);
    assert_eq!(number(rr, "/response_s/n"), 300.0);
    assert_eq!(number(rr, "/response_run_s/n"), 3.0);
    assert!(number(rr, "/response_s/max") <= number(rr, "/elapsed_s/max"));
    assert_eq!(rr["main"], "response");

    statistics(&put["throughput_bit_s"]);
    assert_eq!(number(put, "/throughput_bit_s/n"), 2.0);
    assert_eq!(
        (&put["stack"], &put["response_s"]),
        (&"unix".into(), &Value::Null)
    );
    assert_eq!(
        number(put, "/responder/received_bytes"),
        2.0 * 100.0 * 1024.0
    );
    assert_eq!(number(put, "/initiator/sent_bytes"), 2.0 * 100.0 * 1024.0);
    let rates = put["run_values"]["throughput_bit_s"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_f64().unwrap());
    let longest = rates.fold(0.0_f64, |longest, rate| {
        longest.max(100.0 * 1024.0 * 8.0 / rate)
    });
    assert!(
        (number(put, "/elapsed_s/max") / longest - 1.0).abs() < 1e-6,
        "throughput is bytes by time"
    );
    assert!(put["network"].is_null(), "no network is modelled here");
    assert!(
        put["absent"]["transport"].is_string(),
        "what was not measured has its reason"
    );

    statistics(&connect["connect_s"]);
    assert_eq!(number(connect, "/connect_s/n"), 40.0);
}

#[test]
fn a_failed_run_says_so_in_its_json_too() {
    let place = Place::new();
    let failing = "1 bulk_get 1000*10 < file in";
    let output = place.stackline(&["run", "--json", "-e", &format!("1 rr 32*10; {failing}")]);
    output.fails(3, &["FILE in"]);
    let json: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(json["complete"], false);
    assert!(json["reason"].as_str().unwrap().contains("FILE in"));
    assert_eq!(json["measurements"].as_array().unwrap().len(), 1);
    let output = Place::new().stackline(&["run", "--json", "-e", failing]);
    output.fails(3, &["FILE in"]);
    let json: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(json["ok"], false);
    assert!(json["error"].as_str().unwrap().contains("FILE in"));
}

#[test]
fn one_seed_gives_one_sequence_of_sizes() {
    let sent = |seed: &str, stack: &str| {
        let place = Place::new();
        let text = format!("3 bulk_put uniform(10, 5000)*50 over {stack}");
        let json = place
            .stackline(&["run", "--json", "--seed", seed, "-e", &text])
            .json();
        let m = &json["measurements"][0];
        assert_eq!(
            number(m, "/initiator/sent_bytes"),
            number(m, "/responder/received_bytes")
        );
        number(m, "/initiator/sent_bytes")
    };
    assert_eq!(sent("7", "tcp"), sent("7", "tcp"));
    assert_eq!(sent("7", "tcp"), sent("7", "unix"));
    assert_ne!(sent("7", "tcp"), sent("8", "tcp"));
}

/// One packet in ten is lost, so nothing has to be known of the generators.
const LOSSY: &str =
    "network lossy { host khons, udjat; link khons - udjat 10 Mbit/s 1 ms loss every 10; }
    2 from khons to udjat bulk_put 1000*100 over udp in simulated across lossy";

#[test]
fn a_modelled_network_says_what_it_dropped() {
    let json = Place::new().json(LOSSY);
    let network = &json["measurements"][0]["network"];
    assert_eq!(
        (&network["name"], &network["emulation"]),
        (&"lossy".into(), &Value::Null)
    );
    let ports = network["ports"].as_array().unwrap();
    let port = ports
        .iter()
        .find(|port| port["name"] == "khons>udjat")
        .unwrap();
    let at = |name: &str| port[name].as_u64().unwrap();
    assert_eq!(
        at("packets"),
        at("offered"),
        "what is lost on the link has left: {port}"
    );
    assert_eq!(at("dropped"), 2 * (at("packets") / 2 / 10), "{port}");
    assert_eq!(port["drops"]["lost on the link"], port["dropped"]);
    assert!(
        (number(port, "/drop_share") - number(port, "/dropped") / number(port, "/offered")).abs()
            < 1e-12
    );
}

/// The journal of a kept run, with what an emulator that could not keep up would have said in every line.
fn overload(run: &Path) {
    let journal = run.join("runs.jsonl");
    let lines = std::fs::read_to_string(&journal).unwrap();
    let overloaded = lines.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["network"]["emulation"] = serde_json::json!({
            "departures": 10, "lateness_p50_ns": 1, "lateness_p99_ns": 2, "lateness_max_ns": 3,
            "lost": 4, "cpu_share": 1.0, "round_trip_ns": null, "overload": "too slow",
        });
        format!("{record}\n")
    });
    std::fs::write(&journal, overloaded.collect::<String>()).unwrap();
    std::fs::remove_file(run.join("results.parquet")).unwrap();
}

#[test]
fn an_overloaded_run_is_no_honest_comparison() {
    let place = Place::new();
    place.run(LOSSY).succeeds();
    place.run(LOSSY).succeeds();
    let runs = place.runs();
    let [before, after] = [&runs[0], &runs[1]].map(|run| run.to_str().unwrap());
    let compare = || place.stackline(&["compare", "--json", before, after]);
    assert!(!compare().err.contains("warning"), "{}", compare().err);
    overload(&runs[1]);
    let output = compare();
    let warned: Vec<&str> = output.err.lines().collect();
    assert!(
        warned.len() == 1 && warned[0].contains(after),
        "{}",
        output.err
    );
    assert!(
        warned[0].contains("in 2 of 2 runs") && warned[0].contains("the emulator was overloaded"),
        "{}",
        output.err
    );
    let caveat = "in the second set of runs, the emulator was overloaded in 2 of 2, so those figures reflect the machine, not the network";
    assert_eq!(output.json()["comparisons"][0]["caveats"][0], caveat);
}
