//! `stackline reproduce`: what it lists, prints, draws and refuses.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn stackline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stackline"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn done(arguments: &[&str]) -> String {
    let output = stackline(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn without_a_paper_it_lists_them() {
    assert!(done(&["reproduce"]).starts_with("blast    Zwaenepoel 1985"));
    let json: Value = serde_json::from_str(&done(&["reproduce", "--json"])).unwrap();
    assert_eq!(json["papers"][0]["paper"], "blast");
}

#[test]
fn an_unknown_paper_is_wrong_input() {
    let output = stackline(&["reproduce", "blasts"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error: unknown paper blasts\nhint: the papers are blast"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn the_profiles_are_networks_of_the_language() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sun.stackline");
    std::fs::write(&file, done(&["reproduce", "blast", "--profile"])).unwrap();
    let file = file.to_str().unwrap();
    assert!(done(&["net", "show", file]).contains("network sun_kernel: 2 hosts, 1 link"));
    assert_eq!(
        stackline(&["reproduce", "--profile"]).status.code(),
        Some(2)
    );
}

#[test]
fn only_what_is_asked_for_is_made() {
    let formulas = done(&["reproduce", "magic", "--only", "formulas"]);
    assert!(
        formulas.contains("streams served by 624 KiB") && !formulas.contains("Table 2"),
        "{formulas}"
    );
    let json: Value = serde_json::from_str(&done(&[
        "reproduce",
        "magic",
        "--only",
        "figure 3",
        "--json",
        "--seed",
        "2",
    ]))
    .unwrap();
    let [figure] = json["exhibits"].as_array().unwrap().as_slice() else {
        panic!("{json}")
    };
    let rows = figure["rows"].as_array().unwrap();
    // The wide area is 6 ms each way further for the list and for the block, and the master is with the client.
    let of = |row: usize, key: &str| rows[row][key].as_f64().unwrap();
    assert!(
        (of(0, "server_in_ms") - of(2, "server_in_ms") - 5.9).abs() < 0.3,
        "{figure}"
    );
    assert!(
        of(1, "app_receive_ms") < of(3, "app_receive_ms"),
        "the Alpha copies faster: {figure}"
    );
    let output = stackline(&["reproduce", "magic", "--only", "figure 99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr)
            .contains("hint: choose one of: Formulas; 4.2.3; 4.2.3, loaded; Figure 3; Table 2")
    );
}

#[test]
fn a_paper_without_sessions_is_not_emulated() {
    let output = stackline(&["reproduce", "blast", "--in", "emulated"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("hint: try `stackline reproduce magic --in emulated`"));
}

fn exhibit<'a>(paper: &'a Value, name: &str) -> &'a Value {
    paper["exhibits"]
        .as_array()
        .unwrap()
        .iter()
        .find(|exhibit| exhibit["name"] == name)
        .unwrap()
}

fn rows<'a>(paper: &'a Value, name: &str) -> &'a [Value] {
    exhibit(paper, name)["rows"].as_array().unwrap()
}

fn row<'a>(paper: &'a Value, name: &str, subject: &str, packets: u32) -> &'a Value {
    rows(paper, name)
        .iter()
        .find(|row| row["subject"] == subject && row["packets"] == packets)
        .unwrap()
}

fn ms(value: &Value) -> String {
    format!("{:.2}", 1e3 * value.as_f64().unwrap())
}

#[test]
fn the_paper_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let pictures = directory.path().join("made/here");
    let little = ["--precision", "20%", "--transfers", "1000", "--runs", "20"];
    let command = [
        "reproduce",
        "blast",
        "--json",
        "--pictures",
        pictures.to_str().unwrap(),
    ];
    let paper: Value = serde_json::from_str(&done(&[&command[..], &little].concat())).unwrap();
    assert_eq!(paper["paper"], "blast");
    printed_and_formulas(&paper);
    simulated(&paper);
    measured(&paper);
    drawn(&paper, &pictures);
}

fn printed_and_formulas(paper: &Value) {
    let first = row(paper, "Table 1", "stop-and-wait", 1);
    assert_eq!(
        (ms(&first["printed_s"]), ms(&first["formula_s"])),
        ("4.08".into(), "3.91".into())
    );
    let window = row(paper, "Table 1", "sliding window", 1);
    assert_eq!(
        (&window["lost"], &window["printed_s"]),
        (&Value::Bool(true), &Value::Null)
    );
    assert_eq!(
        (
            ms(&window["formula_as_printed_s"]),
            ms(&window["formula_s"])
        ),
        ("3.74".into(), "3.91".into())
    );
    let moved = row(paper, "Table 3", "MoveTo", 64);
    assert_eq!(
        (ms(&moved["printed_s"]), ms(&moved["formula_s"])),
        ("173.00".into(), "172.82".into())
    );
    for row in rows(paper, "Section 2.1") {
        assert_eq!(ms(&row["printed_s"]), ms(&row["formula_s"]));
    }
    let total = rows(paper, "Table 2")
        .iter()
        .find(|row| row["subject"] == "Total")
        .unwrap();
    assert_eq!(
        (ms(&total["printed_s"]), ms(&total["formula_s"])),
        ("3.91".into(), "3.91".into())
    );
    // To(64) of the profile with its latency is 172.79 ms.
    let waits = rows(paper, "Figure 6")
        .iter()
        .find(|row| row["interval"] == "10 To(D)")
        .unwrap();
    assert_eq!(ms(&waits["interval_s"]), "1727.90");
}

/// Times of this machine, or why there are none: not every machine lets its users have a network.
fn measured(paper: &Value) {
    for name in ["Table 1", "Table 3"] {
        let reasons = exhibit(paper, name)["notes"].as_array().unwrap();
        let refused = reasons
            .iter()
            .any(|note| note.as_str().unwrap().starts_with("Not measured here: "));
        for row in rows(paper, name) {
            let times = &row["measured"];
            assert_eq!(times.is_null(), refused, "{name} {row}");
            if !refused {
                let [min, median, max] =
                    ["min", "median", "max"].map(|figure| times[figure].as_f64().unwrap());
                assert!(
                    times["n"] == 20 && 0.0 < min && min <= median && median <= max,
                    "{name} {row}"
                );
            }
        }
    }
}

/// Without loss it is the formula to rounding; with loss within five standard errors, none of which is large.
fn simulated(paper: &Value) {
    let number = |row: &Value, field: &str| row[field].as_f64().unwrap();
    for name in ["Table 1", "Table 3", "Figure 4"] {
        for row in rows(paper, name) {
            let apart = (number(row, "simulated_s") - number(row, "profile_s")).abs();
            // A nanosecond for each copy and each packet on the network.
            assert!(apart <= 3e-9 * number(row, "packets"), "{name} {row}");
            assert_eq!(
                (&row["simulated_transfers"], &row["simulated_error_s"]),
                (&1.into(), &Value::Null)
            );
        }
    }
    for name in ["Figure 5", "Figure 6"] {
        for row in rows(paper, name) {
            let apart = (number(row, "simulated_s") - number(row, "profile_s")).abs();
            let error = number(row, "simulated_error_s");
            assert!(apart <= 5.0 * error + 1e-6, "{name} {row}");
            assert!(error <= 0.2 * number(row, "simulated_s"), "{name} {row}");
            assert!(row["simulated_transfers"].as_u64().unwrap() >= 1000);
        }
    }
}

fn drawn(paper: &Value, directory: &Path) {
    let files: Vec<&str> = paper["pictures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    assert_eq!(files.len(), 3);
    for (file, figure) in files
        .into_iter()
        .zip(["figure-4.svg", "figure-5.svg", "figure-6.svg"])
    {
        assert_eq!(Path::new(file), directory.join(figure));
        let picture = std::fs::read_to_string(file).unwrap();
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        // A curve that leaves the frame and comes back is several lines, one that is beyond it none.
        let strokes = picture.matches("stroke-width=\"2\"").count();
        assert!(strokes >= 6, "{strokes}: curves, and four in the legend");
        // Of Figure 5 two lie far above, with long intervals at 1e-2, and one that is drawn lies near the edge.
        let points = picture.matches("<circle ").count();
        let expected = [
            ("figure-4.svg", 24..=24),
            ("figure-5.svg", 13..=14),
            ("figure-6.svg", 16..=16),
        ];
        assert!(
            expected
                .iter()
                .any(|(name, range)| *name == figure && range.contains(&points)),
            "{figure} {points}"
        );
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_said_first() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = stackline(&[
        "reproduce",
        "blast",
        "--pictures",
        file.join("inside").to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(
        said.contains("cannot write") && said.contains("hint: choose a writable directory"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}
