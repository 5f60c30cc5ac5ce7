//! Labelled runs: what is written, and that it is true.

use crate::support::Place;
use serde_json::Value;
use std::fs;

fn labels(place: &Place, directory: &str) -> Vec<Value> {
    place
        .stackline(&[
            "truth",
            "generate",
            directory,
            "--from",
            "3",
            "--count",
            "3",
            "--capture",
        ])
        .succeeds();
    let mut runs: Vec<_> = fs::read_dir(place.path(directory))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    runs.sort();
    for run in &runs {
        let run = run.to_str().unwrap();
        place.stackline(&["diagnose", run]).succeeds();
        assert!(fs::read_dir(format!("{run}/captures")).unwrap().count() > 0);
    }
    runs.iter()
        .map(|run| serde_json::from_slice(&fs::read(run.join("truth.json")).unwrap()).unwrap())
        .collect()
}

#[test]
fn labelled_runs_are_runs_and_their_labels_are_true() {
    let place = Place::new();
    let first = labels(&place, "labelled");
    assert_eq!(first, labels(&place, "again"), "a seed is a run");
    for label in &first {
        let number = |value: &Value| value.as_f64().unwrap();
        let took = number(&label["took_s"]);
        for (change, saves) in label["saves"].as_object().unwrap() {
            let without = number(&label["without_s"][change]);
            assert!(
                (number(saves) - (1.0 - without / took)).abs() < 1e-9,
                "{change}"
            );
            let is_cause = label["causes"]
                .as_array()
                .unwrap()
                .iter()
                .any(|cause| cause == change);
            assert_eq!(
                is_cause,
                number(saves) >= number(&label["cause_from"]),
                "{change}"
            );
        }
    }
}
