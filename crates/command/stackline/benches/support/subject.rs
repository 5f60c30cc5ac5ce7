//! stackline as a user runs it: the command, a specification in a file, JSON on its standard output.

use super::figure::Figure;
use super::memory::Peak;
use super::process::{self, Ended, Running};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The program to measure.
fn program() -> String {
    std::env::var("STACKLINE_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_stackline").to_owned())
}

/// A directory for a specification and the runs, removed afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn with(spec: &str) -> Result<Self, String> {
        let scratch = Self(process::scratch("spec"));
        let made = fs::create_dir_all(scratch.0.join("runs"));
        made.and_then(|()| fs::write(scratch.spec(), spec))
            .map_err(|error| error.to_string())?;
        Ok(scratch)
    }

    fn spec(&self) -> PathBuf {
        self.0.join("spec")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        command
            .arg("run")
            .arg(self.spec())
            .arg("--json")
            .env("STACKLINE_RUNS", self.0.join("runs"));
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a specification; its first measurement.
fn first(spec: &str) -> Result<Value, String> {
    let scratch = Scratch::with(spec)?;
    measurement(&process::run(&mut scratch.command(), None)?)
}

fn measurement(ended: &Ended) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(ended.output()?).map_err(|error| format!("its JSON: {error}"))?;
    value
        .pointer("/measurements/0")
        .cloned()
        .ok_or_else(|| "its JSON has no measurements".to_owned())
}

/// CPU seconds of both ends, when both are known.
fn cpu_s(measurement: &Value) -> Option<f64> {
    let part = |end: &str, name: &str| {
        measurement
            .pointer(&format!("/cpu/{end}/{name}"))
            .and_then(Value::as_f64)
    };
    let end = |end: &str| Some(part(end, "user_s")? + part(end, "system_s")?);
    Some(end("initiator")? + end("responder")?)
}

/// A number of a statistic.
fn statistic(measurement: &Value, name: &str, which: &str) -> Result<f64, String> {
    let number = measurement
        .pointer(&format!("/{name}/{which}"))
        .and_then(Value::as_f64);
    number.ok_or_else(|| format!("its JSON has no {name}.{which}"))
}

fn flags(measurement: &Value) -> String {
    let flags = measurement.get("flags").and_then(Value::as_array);
    let flags = flags.into_iter().flatten().map(|flag| {
        flag.as_str()
            .map_or_else(|| flag.to_string(), str::to_owned)
    });
    flags.collect::<Vec<_>>().join(", ")
}

/// A transfer of `count` units; CPU time is by what was received.
pub(crate) fn throughput(spec: &str, unit: u64, count: u64) -> Result<Figure, String> {
    let measurement = first(spec)?;
    let lost = measurement.get("lost").and_then(Value::as_u64);
    let received = unit * count.saturating_sub(lost.unwrap_or(0));
    let lost = lost.map_or(String::new(), |lost| {
        format!("{:.2} % lost, ", lost as f64 / count as f64 * 100.0)
    });
    let cpu = cpu_s(&measurement).map(|cpu_s| cpu_s / (received as f64 / 1e9));
    Ok(Figure {
        value: statistic(&measurement, "throughput_bit_s", "median")?,
        cpu,
        note: lost + &flags(&measurement),
    })
}

/// So many calls or connects; `name` is the statistic.
pub(crate) fn times(spec: &str, name: &str, count: u64) -> Result<Figure, String> {
    let measurement = first(spec)?;
    let other = |which| statistic(&measurement, name, which).unwrap_or(f64::NAN) * 1e6;
    let note = format!(
        "mean {:.2}, p99 {:.2} us {}",
        other("mean"),
        other("p99"),
        flags(&measurement)
    );
    let cpu = cpu_s(&measurement).map(|cpu_s| cpu_s / count as f64);
    Ok(Figure {
        value: statistic(&measurement, name, "median")?,
        cpu,
        note,
    })
}

/// The time from one call to the next.
pub(crate) fn cycles(spec: &str, count: u64) -> Result<Figure, String> {
    let measurement = first(spec)?;
    let cpu = cpu_s(&measurement).map(|cpu_s| cpu_s / count as f64);
    Ok(Figure {
        value: 1.0 / statistic(&measurement, "rate_per_s", "median")?,
        cpu,
        note: flags(&measurement),
    })
}

/// The wall time of the whole command.
pub(crate) fn command(spec: &str) -> Result<Figure, String> {
    let scratch = Scratch::with(spec)?;
    let ended = process::run(&mut scratch.command(), None)?;
    measurement(&ended)?;
    Ok(Figure {
        value: ended.wall_s,
        cpu: Some(ended.cpu_s),
        note: String::new(),
    })
}

/// The wall time of the whole command, with the memory of all its processes.
pub(crate) fn crowd(spec: &str, limit_bytes: u64) -> Result<Figure, String> {
    let scratch = Scratch::with(spec)?;
    let running = Running::start(&mut scratch.command(), None)?;
    let mut peak = Peak::default();
    while running.runs() {
        peak.sample(running.pid());
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = running.end();
    let measurement = measurement(&ended)?;
    let note = format!("{} {}", memory(peak, limit_bytes), flags(&measurement));
    Ok(Figure {
        value: ended.wall_s,
        cpu: Some(ended.cpu_s),
        note,
    })
}

fn memory(peak: Peak, limit_bytes: u64) -> String {
    let verdict = if peak.anonymous < limit_bytes {
        "below"
    } else {
        "ABOVE"
    };
    format!(
        "peak {:.1} MB anonymous ({verdict} {:.0} MB), {:.1} MB resident, {} processes",
        peak.anonymous as f64 / 1e6,
        limit_bytes as f64 / 1e6,
        peak.resident as f64 / 1e6,
        peak.processes
    )
}
