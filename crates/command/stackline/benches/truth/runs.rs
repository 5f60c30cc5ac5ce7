//! Runs a scenario with the command itself, and asks it for the diagnosis.

use serde_json::Value;
use stackline_truth::Scenario;
use stackline_verdicts::{Question, ReportedFinding};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that measures, and where it keeps its runs.
pub(crate) struct Place(tempfile::TempDir);

/// So far from the seeds of its runs are those of a prediction.
const OTHER_SEEDS: u64 = 1_000_000_007;

/// What was predicted, and what came of it.
pub(crate) struct Asked {
    pub(crate) predicted: Option<f64>,
    pub(crate) interval: Vec<f64>,
    /// Whether it comes from simulated runs instead of a form.
    pub(crate) is_simulated: bool,
    /// One a run.
    pub(crate) figures: Vec<f64>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for temporary files"))
    }

    pub(crate) fn stackline(&self, words: &[&str]) -> Result<Vec<u8>, String> {
        let program = std::env::var_os("STACKLINE_BIN")
            .unwrap_or_else(|| env!("CARGO_BIN_EXE_stackline").into());
        let output = Command::new(program)
            .args(words)
            .env("STACKLINE_RUNS", self.0.path())
            .output()
            .map_err(|error| error.to_string())?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(words)
        }
    }

    /// Seconds that the measured part takes.
    pub(crate) fn takes_s(&self, scenario: &Scenario) -> Result<f64, String> {
        let run = self.run(scenario, false)?;
        let seconds = elapsed_s(&run);
        let _ = fs::remove_dir_all(run);
        seconds
    }

    /// The same, and what is said to limit it.
    pub(crate) fn diagnosed(
        &self,
        scenario: &Scenario,
    ) -> Result<(f64, Vec<ReportedFinding>), String> {
        let run = self.run(scenario, true)?;
        let path = run.to_string_lossy().into_owned();
        let output = self.stackline(&["diagnose", "--json", &path])?;
        let json: Value = serde_json::from_slice(&output).map_err(|error| error.to_string())?;
        let said = |finding: &Value| ReportedFinding {
            kind: finding["kind"].as_str().unwrap_or_default().to_owned(),
            sentence: finding["sentence"].as_str().unwrap_or_default().to_owned(),
            confidence: finding["confidence"].as_f64().unwrap_or(0.0),
            gains: finding["expected"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(mean_gain)
                .collect(),
        };
        let findings = json["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .map(said)
            .collect();
        let seconds = elapsed_s(&run);
        let _ = fs::remove_dir_all(run);
        Ok((seconds?, findings))
    }

    /// What is predicted of a question, and the figures of its runs.
    pub(crate) fn predicted(&self, question: &Question, simulate: bool) -> Result<Asked, String> {
        let output = self.stackline(&["run", "--json", "-e", &question.text])?;
        let run: Value = serde_json::from_slice(&output).map_err(|error| error.to_string())?;
        let more: &[&str] = if simulate { &[] } else { &["--forms"] };
        // What it simulates are other runs than those it is judged by.
        let seed = (question.seed + OTHER_SEEDS).to_string();
        let words = ["predict", "--json", "--seed", &seed, "-e", &question.text];
        let output = self.stackline(&[&words, more].concat())?;
        let predicted: Value =
            serde_json::from_slice(&output).map_err(|error| error.to_string())?;
        let _ = run["run"].as_str().map(fs::remove_dir_all);
        let (summary, prediction) = (&run["measurements"][0], &predicted["predictions"][0]);
        let figures = match prediction["metric"].as_str() {
            Some("response") => &summary["run_values"]["response_s"],
            Some("connect") => &summary["run_values"]["connect_s"],
            _ => &summary["run_values"]["throughput_bit_s"],
        };
        let numbers = |value: &Value| {
            value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_f64)
                .collect()
        };
        Ok(Asked {
            predicted: prediction["predicted"].as_f64(),
            interval: numbers(&prediction["interval"]),
            is_simulated: prediction["limit"] == "simulated",
            figures: numbers(figures),
        })
    }

    fn run(&self, scenario: &Scenario, trace: bool) -> Result<PathBuf, String> {
        let text = scenario.to_string();
        let mut words = vec!["run", "--json", "-e", text.as_str()];
        if trace {
            words.push("--trace");
        }
        let output = self.stackline(&words)?;
        let json: Value = serde_json::from_slice(&output).map_err(|error| error.to_string())?;
        json["run"]
            .as_str()
            .map(PathBuf::from)
            .ok_or_else(|| "the result does not say where it is".to_owned())
    }
}

fn mean_gain(expected: &Value) -> Option<f64> {
    expected["times_as_fast"][0].as_f64()
}

/// Seconds on the initiator's clock.
fn elapsed_s(run: &Path) -> Result<f64, String> {
    let journal = fs::read_to_string(run.join("runs.jsonl")).map_err(|error| error.to_string())?;
    let lines = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let measured = lines.filter(|record| record["part"].as_u64().unwrap_or(0) == 0);
    let ns = measured
        .filter_map(|record| record["elapsed_ns"].as_f64())
        .next();
    ns.map(|ns| ns / 1e9)
        .ok_or_else(|| "nothing was measured".to_owned())
}
