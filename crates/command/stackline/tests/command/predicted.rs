//! What no closed form covers: open with its reason, or simulated at once.

use crate::support::Place;
use serde_json::Value;

/// A window that is far too large for its queue, which no form covers; and calls, which one does.
const TEXT: &str =
    "network wan { host a, b; router r; link a - r 100 Mbit/s 1 ms; link r - b 10 Mbit/s 20 ms queue 8 kB; }
    3 from a to b bulk_put 16 KiB*100 over tcp across wan in emulated;
    3 from a to b rr 32*100 over tcp across wan in emulated;";

fn predictions(place: &Place, more: &[&str]) -> Vec<Value> {
    let output = place.stackline(&[&["predict", "--json", "-e", TEXT], more].concat());
    output.succeeds();
    let all: Value = serde_json::from_str(&output.out).unwrap();
    all["predictions"].as_array().unwrap().clone()
}

#[test]
fn what_no_form_covers_is_simulated() {
    let place = Place::new();
    let said = place.stackline(&["predict", "--forms", "-e", TEXT]);
    said.succeeds().hints("predict --simulate");
    assert!(
        said.out.contains("overruns the queue of 8000 B at r -> b"),
        "{}",
        said.out
    );

    let [open, calls] = &predictions(&place, &["--forms"])[..] else {
        panic!("two measurements")
    };
    assert!(
        open["predicted"].is_null() && open["interval"].is_null(),
        "{open}"
    );
    let [simulated, same] = &predictions(&place, &[])[..] else {
        panic!("two measurements")
    };
    assert_eq!(same, calls, "what a form covers is not simulated");
    assert_eq!(simulated["limit"], "simulated");
    assert!(
        simulated["assumptions"][0]
            .as_str()
            .unwrap()
            .contains("overruns the queue"),
        "{simulated}"
    );

    // As `run` has it, whose runs have other seeds.
    let run = place.stackline(&["run", "--json", "--in", "simulated", "-e", TEXT]);
    let run: Value = serde_json::from_str(&run.out).unwrap();
    let measured = run["measurements"][0]["throughput_bit_s"]["mean"]
        .as_f64()
        .unwrap();
    let predicted = simulated["predicted"].as_f64().unwrap();
    assert!(
        (predicted / measured - 1.0).abs() < 0.1,
        "{predicted} {measured}"
    );
    assert!(place.runs().len() == 1, "a prediction keeps nothing");
}

#[test]
fn what_cannot_be_simulated_stays_open() {
    let place = Place::new();
    let network = "network wan { host a, b; link a - b 10 Mbit/s 1 ms loss 100%; }";
    for (what, why) in [
        (
            "rr 32*10 over tcp across wan in simulated",
            "simulated: seed",
        ),
        (
            "bulk_put 1 KiB*10 over tcp(congestion = vegas) across wan in emulated",
            "simulated: ",
        ),
    ] {
        let output =
            place.stackline(&["predict", "-e", &format!("{network} 1 from a to b {what};")]);
        output.succeeds();
        assert!(
            output.out.contains("not covered") && output.out.contains(why),
            "{}",
            output.out
        );
    }
}

/// What is predicted of the only part, and what its simulated runs come to.
fn predicted_and_simulated(place: &Place, text: &str) -> (Value, f64) {
    let output = place.stackline(&["predict", "--simulate", "--json", "-e", text]);
    let all: Value = serde_json::from_str(&output.succeeds().out).unwrap();
    let one = all["predictions"][0].clone();
    let run = place.stackline(&["run", "--json", "--seed", "77", "-e", text]);
    let run: Value = serde_json::from_str(&run.succeeds().out).unwrap();
    let m = &run["measurements"][0];
    let gauge = match one["metric"].as_str() {
        Some("response") => "response_s",
        _ => "throughput_bit_s",
    };
    let values: Vec<f64> = m["run_values"][gauge]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    (one, values.iter().sum::<f64>() / values.len() as f64)
}

#[test]
fn what_forms_missed_is_predicted() {
    let place = Place::new();
    let across = |link: &str, work: &str| {
        format!(
            "network n {{ host a, b; link a - b {link}; }} 3 from a to b {work} across n in simulated;"
        )
    };
    let buffer = |size: &str| {
        let stack = format!("tcp(send_buffer = {size}, receive_buffer = 8 MiB)");
        across(
            "100 Mbit/s 40 ms",
            &format!("bulk_put 16 KiB 2 MB over {stack}"),
        )
    };
    let jitter = "20 Mbit/s 5 ms jitter exponential(10 ms) reordering";
    let delays = "10 Mbit/s schedule(0 s 20 ms, 10 s 250 ms) every 20 s";
    for text in [
        buffer("2 KiB"),
        buffer("8 KiB"),
        buffer("128 KiB"),
        across(jitter, "rr 150, 20 kB*50 over tcp"),
        across(delays, "rr 100, 6 kB*100 over tcp"),
    ] {
        let (one, simulated) = predicted_and_simulated(&place, &text);
        assert_eq!(one["limit"], "simulated", "{text}: {one}");
        let [least, most] = [0, 1].map(|end| one["interval"][end].as_f64().unwrap());
        assert!(
            (least..=most).contains(&simulated),
            "{text}: {simulated}: {one}"
        );
    }
}

#[test]
fn calls_at_random_wait_by_how_their_services_vary() {
    let place = Place::new();
    for (service, theory_s) in [
        ("constant(5 ms)", 7.5e-3),
        ("exponential(5 ms)", 10e-3),
        ("uniform(0 ms, 10 ms)", 8.333e-3),
        ("bivalue(1 ms, 41 ms, 0.9)", 21.9e-3),
    ] {
        let text = format!(
            "network n {{ host a, b; link a - b unlimited 0 us; }}
            3 from a to b rr 1*20000 exponential(10 ms) {service} over tcp across n in simulated;"
        );
        let (one, simulated) = predicted_and_simulated(&place, &text);
        let predicted = one["predicted"].as_f64().unwrap();
        assert!(
            (predicted / theory_s - 1.0).abs() < 1e-3,
            "{service}: {one}"
        );
        let [least, most] = [0, 1].map(|end| one["interval"][end].as_f64().unwrap());
        assert!(
            (least..=most).contains(&simulated) && most < 1.35 * least,
            "{service}: {simulated} s: {one}"
        );
    }
}
