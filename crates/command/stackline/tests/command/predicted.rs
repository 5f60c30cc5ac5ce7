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
