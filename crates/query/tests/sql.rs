//! The command on run directories made here: tables, formats, what is refused.

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

/// A run with one file of events for each host; columns differ as those of hosts do.
fn run(root: &Path, name: &str, hosts: &[(&str, &[(&str, i64)])]) {
    let directory = root.join(name).join("events");
    fs::create_dir_all(&directory).unwrap();
    fs::write(root.join(name).join("status.json"), "{}").unwrap();
    for (number, (host, events)) in hosts.iter().enumerate() {
        let text = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
        let times = Arc::new(Int64Array::from_iter_values(
            events.iter().map(|(_, at)| *at),
        )) as ArrayRef;
        let mut columns = vec![
            ("at_ns", times.clone()),
            (
                "keyword",
                text(events.iter().map(|(keyword, _)| *keyword).collect()),
            ),
            ("host", text(vec![host; events.len()])),
        ];
        if number == 0 {
            columns.push(("n1", times));
        }
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = File::create(directory.join(format!("{host}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
}

fn query(root: &Path, words: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_stackline-query"))
        .args(words)
        .env("STACKLINE_RUNS", root)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

fn two_runs() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    run(
        root.path(),
        "before",
        &[
            ("khons", &[("APP_CALL", 1), ("APP_RESPONSE", 9)]),
            ("udjat", &[("APP_REPLY", 5)]),
        ],
    );
    run(root.path(), "after", &[("khons", &[("APP_CALL", 100)])]);
    root
}

#[test]
fn runs_and_hosts_are_one_table() {
    let root = two_runs();
    let sql = "SELECT run_name, count(*) AS n, count(n1) AS numbers FROM events GROUP BY run_name ORDER BY n";
    let (_, text) = query(root.path(), &["before", "after", sql, "--format", "csv"]);
    assert_eq!(text, "run_name,n,numbers\nafter,1,1\nbefore,3,2\n");
    let (_, text) = query(
        root.path(),
        &[
            "before",
            "SELECT median(at_ns) AS m FROM events",
            "--format",
            "json",
        ],
    );
    assert_eq!(text, "{\"m\":5.0}\n");
    let (_, text) = query(
        root.path(),
        &["before", "SELECT keyword FROM events WHERE at_ns > 10"],
    );
    assert!(
        text.contains("keyword"),
        "no rows still have a header: {text}"
    );
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_hint() {
    let root = two_runs();
    for (words, code) in [
        (vec!["before", "SELECT nonsense FROM events"], 2),
        (vec!["before", "SELECT 1 FROM results"], 2),
        (vec!["before", "DROP TABLE events"], 2),
        (vec!["before", "COPY events TO 'x.csv'"], 2),
        (vec!["nothing", "SELECT 1"], 2),
    ] {
        let (output, _) = query(root.path(), &words);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {errors}");
        assert!(
            errors.starts_with("error: ") && errors.contains("\nhint: "),
            "{errors}"
        );
    }
    fs::write(root.path().join("after/events/khons.parquet"), "damaged").unwrap();
    assert_eq!(
        query(root.path(), &["after", "SELECT 1 FROM events"])
            .0
            .status
            .code(),
        Some(1)
    );
}
