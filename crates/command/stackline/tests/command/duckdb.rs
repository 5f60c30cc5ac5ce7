//! What another engine computes from our Parquet: DuckDB from PyPI, which `.ci/run` keeps under `target/venv`.

#[path = "../../../../record/runs/benches/ingest/blocks.rs"]
mod blocks;

use crate::support::{Place, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

const BLOCKS: u64 = 3000;

const SCRIPT: &str = r#"
import json, sys
import duckdb
files = f"'{sys.argv[1]}/events/*.parquet'"
rows = lambda query: [list(row) for row in duckdb.sql(query).fetchall()]
json.dump({
    "counts": rows(f"SELECT keyword, count(*) FROM {files} GROUP BY keyword"),
    "sums": rows(f"SELECT sum(at_ns)::VARCHAR, sum(n1)::BIGINT, sum(n3)::BIGINT, count(t7), count(DISTINCT t7) FROM {files}")[0],
    "sorted": rows(f"""SELECT bool_and(later) FROM (SELECT at_ns >= lag(at_ns, 1, 0) OVER (PARTITION BY filename ORDER BY file_row_number)
                       AS later FROM read_parquet({files}, filename = true, file_row_number = true))""")[0][0],
    "segments": rows(f"""
        WITH points AS (SELECT n1, at_ns, host || ' ' || keyword AS point FROM {files} WHERE n1 IS NOT NULL),
             steps AS (SELECT lag(point) OVER unit AS before, point, at_ns - lag(at_ns) OVER unit AS ns
                       FROM points WINDOW unit AS (PARTITION BY n1 ORDER BY at_ns))
        SELECT before, point, count(*), min(ns), quantile_cont(ns, 0.5), quantile_cont(ns, 0.9), quantile_cont(ns, 0.99), max(ns)
        FROM steps WHERE before IS NOT NULL GROUP BY ALL"""),
}, sys.stdout)
"#;

/// A Python that has DuckDB.
fn python() -> Option<PathBuf> {
    let kept = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/venv/bin/python");
    let python = env::var_os("STACKLINE_PYTHON").map_or_else(kept, PathBuf::from);
    let has = Command::new(&python)
        .args(["-c", "import duckdb"])
        .output()
        .is_ok_and(|done| done.status.success());
    has.then_some(python)
}

#[test]
fn duckdb_counts_sums_and_percentiles_are_ours() {
    let Some(python) = python() else {
        return skip(
            "no DuckDB under target/venv (`.ci/run` puts it there where PyPI can be reached) nor in STACKLINE_PYTHON",
        );
    };
    let place = Place::new();
    let lines = blocks::write(
        BLOCKS,
        7,
        &mut BufWriter::new(File::create(place.path("blocks.log")).unwrap()),
    )
    .unwrap();
    let json = place.stackline(&["import", "blocks.log", "--json"]).json();
    let run = json["run"].as_str().unwrap();
    let ours = place.stackline(&["lifelines", run, "--json"]).json();
    let done = Command::new(python)
        .args(["-c", SCRIPT, run])
        .current_dir(place.path("."))
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let theirs: Value = serde_json::from_slice(&done.stdout).unwrap();

    let table = stackline_runs::events::read_run(Path::new(run)).unwrap();
    assert_eq!(table.len() as u64, lines);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    (0..table.len()).for_each(|row| *counts.entry(table.keyword(row)).or_default() += 1);
    let counted = theirs["counts"].as_array().unwrap();
    assert_eq!(counted.len(), counts.len());
    assert!(
        counted
            .iter()
            .all(|row| counts[row[0].as_str().unwrap()] == row[1].as_u64().unwrap()),
        "{counted:?}"
    );
    assert_eq!(counts["APP_RECEIVE"], BLOCKS);

    let times: u128 = table.at_ns.iter().map(|at| u128::from(*at)).sum();
    let sum = |field| {
        (0..table.len())
            .filter_map(|row| table.number(row, field))
            .sum::<i64>()
    };
    let texts = (0..table.len())
        .filter(|row| table.value(*row, 6).text().is_some())
        .count();
    assert_eq!(
        theirs["sums"],
        serde_json::json!([times.to_string(), sum(0), sum(2), texts, 5])
    );
    assert_eq!(theirs["sorted"], true);

    let point = |number: &Value| {
        let point = &ours["points"][number.as_u64().unwrap() as usize];
        format!(
            "{} {}",
            point["host"].as_str().unwrap(),
            point["keyword"].as_str().unwrap()
        )
    };
    let segments = ours["segments"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|segment| segment["group"].is_null());
    let mine: BTreeMap<(String, String), &Value> = segments
        .map(|segment| {
            (
                (point(&segment["from"]), point(&segment["to"])),
                &segment["ns"],
            )
        })
        .collect();
    let rows = theirs["segments"].as_array().unwrap();
    assert_eq!(rows.len(), mine.len());
    assert!(rows.len() > 20);
    for row in rows {
        let key = (
            row[0].as_str().unwrap().to_owned(),
            row[1].as_str().unwrap().to_owned(),
        );
        for (index, name) in ["n", "min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns"]
            .iter()
            .enumerate()
        {
            let (theirs, ours) = (
                row[2 + index].as_f64().unwrap(),
                mine[&key][name].as_f64().unwrap(),
            );
            // Between two ranks both go along the line, in floating point.
            assert!(
                (theirs - ours).abs() <= 1e-9 * ours.max(1.0),
                "{key:?}, {name}: {theirs} there, {ours} here"
            );
        }
    }
}

#[test]
fn the_documented_curve_over_a_swept_variable() {
    let Some(python) = python() else {
        return skip("no DuckDB, as above");
    };
    let place = Place::new();
    let json = place
        .stackline(&[
            "run",
            "--json",
            "-e",
            "2 warmup 1 rr N*20 over unix; N = 1, 64, 512",
        ])
        .json();
    let page = include_str!("../../../../../docs/JSON.md");
    let query = page
        .split_once("```sql\n")
        .and_then(|(_, rest)| rest.split_once("```"))
        .unwrap()
        .0;
    let script = format!(
        "import duckdb\nfor row in duckdb.sql(\"\"\"{query}\"\"\").fetchall(): print(row[0], row[1] > 0)"
    );
    let run = json["run"].as_str().unwrap();
    let done = Command::new(python)
        .args(["-c", &script])
        .current_dir(place.path(run))
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        "1.0 True\n64.0 True\n512.0 True\n"
    );
}
