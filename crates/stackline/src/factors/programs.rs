//! Runs of programs as they are on an emulated network, by `stackline trace`: their figures are the times of their requests.

use super::response::Figures;
use crate::exit::{Error, Result};
use crate::flags::ResponseFlag;
use crate::loaded::{Loaded, MOST_EVENTS};
use stackline_analyze::segments::whole;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One run of the programs on the network of a text, kept under `root`; packets alone are looked at, which costs them least.
pub(super) fn run(text: &str, programs: &[OsString], root: &Path, name: &str) -> Result<Figures> {
    std::fs::create_dir_all(root).map_err(|error| crate::output::unwritten(root.display(), &error))?;
    let file = root.join(format!("{name}.stackline"));
    std::fs::write(&file, text).map_err(|error| crate::output::unwritten(file.display(), &error))?;
    let own = std::env::current_exe();
    let own = own.map_err(|error| Error::environment(format!("this program cannot find itself: {error}")))?;
    let output = Command::new(own)
        .args(["trace", "--json", "--see", "packets", "--name", name, "--on"])
        .arg(&file)
        .args(programs)
        .env("STACKLINE_RUNS", root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|error| Error::environment(format!("`stackline trace` cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| line.starts_with("error: ")).or_else(|| said.lines().last());
        let cause =
            last.map_or_else(|| output.status.to_string(), |line| line.trim_start_matches("error: ").to_owned());
        // What this machine cannot do is so for every run.
        return Err(match output.status.code() {
            Some(3) => Error::environment(cause),
            Some(2) => Error::input(cause),
            _ => Error::measurement(format!("the programs failed: {cause}")),
        });
    }
    figures(&kept(root, name)?)
}

/// The directory of the run of that name.
fn kept(root: &Path, name: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str()).unwrap_or("");
        path.is_dir() && file.ends_with(&format!("-{name}"))
    };
    entries.filter(named).max().ok_or_else(|| Error::measurement("nothing was traced"))
}

/// Mean, median and 99th percentile of requests, and from the first of them to the last.
fn figures(run: &Path) -> Result<Figures> {
    let loaded = Loaded::whatever(run, MOST_EVENTS)?;
    let lines = &loaded.lifelines;
    let mut figures = Figures::new();
    if let Some(spread) = whole(lines, None) {
        figures.insert(ResponseFlag::Response, spread.mean_ns / 1e9);
        figures.insert(ResponseFlag::Median, spread.median_ns / 1e9);
        figures.insert(ResponseFlag::P99, spread.p99_ns / 1e9);
    }
    let moments = || lines.passages.iter().map(|passage| passage.at_ns);
    if let (Some(first), Some(last)) = (moments().min(), moments().max()) {
        figures.insert(ResponseFlag::Elapsed, (last - first) as f64 / 1e9);
    }
    if figures.is_empty() {
        return Err(Error::measurement("no request was seen in the packets of the programs"));
    }
    Ok(figures)
}
