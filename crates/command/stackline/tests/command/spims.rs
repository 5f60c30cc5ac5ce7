//! Every specification printed in the SPIMS report (Nordmark and Gunningberg, SICS R88006, 1988), as printed.

use crate::support::{Place, number};
use serde_json::Value;

const HOSTS: &str = "host khons via local; host udjat via local;\n";
const EXAMPLE: &str = "100 from khons to udjat bulk_get bytes 1024*1000 < memory > memory;";

#[test]
fn all_of_them_check() {
    let place = Place::new();
    for (text, measurements) in [
        (EXAMPLE, 1),
        ("100 bulk_get 1024*1000", 1),
        ("100 request_response 32*1000", 1),
        ("100 connect_disconnect 0*1000", 1),
        (
            "10 background: request-response 32 * 1000 | <N> bulk_get 1024 * 3000; N = 0...5",
            6,
        ),
        (
            "10 priority background: request-response 32 * 1000 | <N> bulk_get 1024 * 3000; N = 0...5",
            6,
        ),
        ("10 parallel : <N> bulk_get 1024*1000; N = 1...10", 10),
        ("10 bulk_get <N>*1000; N = 1024, 2048...16348", 5),
        ("10 request-response <N>*1000; N = 1, 8, 32...4096", 7),
    ] {
        let text = format!("{HOSTS}{text}");
        for (text, times) in [
            (text.clone(), 1),
            (
                text.to_lowercase()
                    .replace("<n>", "<N>")
                    .replace("n =", "N =")
                    .replace("bulk_get", "BULK-Get"),
                1,
            ),
            (
                format!("{}, 100 bulk_get 1024*1000,", text.trim_end_matches(';')),
                2,
            ),
        ] {
            let output = place.stackline(&["check", "--json", "-e", &text]);
            assert_eq!(output.status.code(), Some(0), "{text}: {}", output.err);
            let json: Value = serde_json::from_str(&output.out).unwrap();
            assert_eq!(json["measurements"], measurements + times - 1, "{text}");
        }
    }
}

#[test]
fn the_example_files_check() {
    let place = Place::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    let texts = std::fs::read_dir(examples)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for text in texts.filter(|path| path.extension().is_some_and(|e| e == "stackline")) {
        let output = place.stackline(&["check", text.to_str().unwrap()]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}: {}",
            text.display(),
            output.err
        );
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn terminators_and_case_are_as_in_print() {
    let place = Place::new();
    let text =
        "2 BULK_GET BYTES 1024*10 < MEMORY > MEMORY, 3 Request-Response 32 * 10, 1 conn_disc 0*10";
    let measured = place.measure(text);
    let names: Vec<&str> = measured
        .iter()
        .map(|m| m["application"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["bulk_get", "request_response", "connect_disconnect"]
    );
    let runs: Vec<f64> = measured.iter().map(|m| number(m, "/runs")).collect();
    assert_eq!(runs, [2.0, 3.0, 1.0]);
}

#[test]
fn the_worked_example_runs_as_printed() {
    let measured = Place::new().measure(&format!("{HOSTS}{EXAMPLE}"));
    let m = &measured[0];
    assert_eq!((&m["from"], &m["to"]), (&"khons".into(), &"udjat".into()));
    assert_eq!(
        (
            number(m, "/runs"),
            number(m, "/units"),
            number(m, "/unit_bytes")
        ),
        (100.0, 1000.0, 1024.0)
    );
    assert_eq!(number(m, "/throughput_bit_s/n"), 100.0);
}

#[test]
fn the_tables_run_as_printed() {
    let measured = Place::new().measure(
        "100 bulk_get 1024*1000; 100 request_response 32*1000; 100 connect_disconnect 0*100",
    );
    assert_eq!(number(&measured[0], "/throughput_bit_s/n"), 100.0);
    assert_eq!(number(&measured[1], "/response_s/n"), 100_000.0);
    assert_eq!(number(&measured[2], "/connect_s/n"), 10_000.0);
}

#[test]
fn the_diagrams_run_as_printed() {
    let measured = Place::new().measure(
        "10 parallel : <N> bulk_get 1024*1000; N = 1...10\n\
         10 bulk_get <N>*1000; N = 1024, 2048...16348\n\
         10 request-response <N>*1000; N = 1, 8, 32...4096\n",
    );
    let of = |text: &str| {
        measured
            .iter()
            .filter(|m| m["text"].as_str().unwrap().contains(text))
            .collect::<Vec<_>>()
    };
    assert!(of("parallel").len() >= 10);
    assert_eq!(of("request").len(), 7);
    assert!(measured.iter().all(|m| number(m, "/runs") == 10.0));
}

#[test]
fn response_time_under_load() {
    let measured = Place::new()
        .measure("2 background: request-response 32 * 1000 | <N> bulk_get 1024 * 3000; N = 0...2");
    let loads: Vec<f64> = measured
        .iter()
        .filter(|m| m["background"] == true)
        .map(|m| number(m, "/replicas"))
        .collect();
    assert_eq!(loads, [1.0, 2.0]);
    let calls = measured
        .iter()
        .filter(|m| m["background"] == false)
        .map(|m| number(m, "/response_s/n"));
    assert_eq!(calls.collect::<Vec<f64>>(), [2000.0; 3]);
}
