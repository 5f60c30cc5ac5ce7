//! A cell carried out by the built command in one world, and what its JSON says.

use super::cells::{Cell, Kind};
use super::support::process;
use serde_json::Value;
use std::process::Command;

/// A figure of one world.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// In base units: bit/s, s, data units of all runs together.
    pub(crate) mean: f64,
    /// 95 % interval of the mean over runs, from two runs on.
    pub(crate) interval: Option<(f64, f64)>,
    /// One value a run where they are counted.
    pub(crate) values: Vec<f64>,
    /// Runs whose figure is the machine's, and why.
    pub(crate) overload: Option<String>,
    /// What the bottleneck dropped, in words.
    pub(crate) drops: String,
    /// What a round trip through the emulator takes when nothing is emulated, in s.
    pub(crate) bare_round_trip: Option<f64>,
}

/// Carries a cell out. `Err` says why there is no figure.
pub(crate) fn carry_out(cell: &Cell, world: &str, seed: u64) -> Result<Figure, String> {
    let runs = process::scratch("agreement");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackline"));
    command.args([
        "run",
        "--json",
        "--in",
        world,
        "--seed",
        &seed.to_string(),
        "-e",
        &cell.spec,
    ]);
    let ended = process::run(command.env("STACKLINE_RUNS", &runs), None);
    let said = ended
        .and_then(|ended| serde_json::from_str(output(&ended)?).map_err(|error| error.to_string()));
    let figure = said.and_then(|said: Value| {
        let losses = lost_by_run(&said);
        let measured = said
            .pointer("/measurements/0")
            .ok_or("its JSON has no measurements")?;
        figure(cell.kind, measured, losses)
    });
    // What cannot be removed lies in the directory for temporary files.
    let _ = std::fs::remove_dir_all(&runs);
    figure
}

/// What a command that succeeded said, else its error without the hint.
fn output(ended: &process::Ended) -> Result<&str, String> {
    let complaint = ended
        .stderr
        .lines()
        .find_map(|line| line.trim().strip_prefix("error: "));
    ended
        .output()
        .map_err(|last| complaint.map_or(last, str::to_owned))
}

fn figure(kind: Kind, measured: &Value, losses: Vec<f64>) -> Result<Figure, String> {
    let number = |place: &str| measured.pointer(place).and_then(Value::as_f64);
    let statistic = |name: &str| {
        let mean =
            number(&format!("/{name}/mean")).ok_or_else(|| format!("its JSON has no {name}"))?;
        let interval = number(&format!("/{name}/ci95/0")).zip(number(&format!("/{name}/ci95/1")));
        Ok::<_, String>((
            mean,
            interval.filter(|_| measured["runs"].as_u64() > Some(1)),
        ))
    };
    let (mean, interval) = match kind {
        Kind::Throughput | Kind::LossyThroughput => statistic("throughput_bit_s")?,
        Kind::Response => statistic("response_s")?,
        Kind::PageTime => statistic("elapsed_s")?,
        Kind::Losses => (number("/lost").ok_or("its JSON has no lost")?, None),
    };
    let values = if kind == Kind::Losses {
        losses
    } else {
        Vec::new()
    };
    let bare_round_trip = number("/network/emulation/round_trip_s");
    Ok(Figure {
        mean,
        interval,
        values,
        overload: overload(measured),
        drops: drops(measured),
        bare_round_trip,
    })
}

/// Why a figure is the machine's, if it is.
fn overload(measured: &Value) -> Option<String> {
    let flagged = measured["flags"]
        .as_array()?
        .iter()
        .any(|flag| flag == "overload");
    let emulation = &measured["network"]["emulation"];
    let (runs, all) = (&emulation["overloaded"], &measured["runs"]);
    let late = emulation["lateness_p99_s"]
        .as_f64()
        .map_or(f64::NAN, |seconds| seconds * 1e3);
    flagged.then(|| format!("overload in {runs} of {all} runs (p99 {late:.2} ms late)"))
}

/// What the bottleneck dropped, by reason.
fn drops(measured: &Value) -> String {
    let ports = measured["network"]["ports"].as_array();
    let port = ports
        .into_iter()
        .flatten()
        .find(|port| port["name"] == "x>b");
    let reasons = port
        .and_then(|port| port["drops"].as_object())
        .into_iter()
        .flatten();
    reasons
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Data units lost in each run, from the run directory's journal.
fn lost_by_run(said: &Value) -> Vec<f64> {
    let journal = said["run"]
        .as_str()
        .map(|run| std::path::Path::new(run).join("runs.jsonl"));
    let text = journal
        .and_then(|journal| std::fs::read_to_string(journal).ok())
        .unwrap_or_default();
    let lost = |line: &str| {
        let record: Value = serde_json::from_str(line).ok()?;
        let side = |side: &str| record[side]["lost"].as_f64();
        Some(side("initiator").unwrap_or(0.0) + side("responder").unwrap_or(0.0))
    };
    text.lines().filter_map(lost).collect()
}
