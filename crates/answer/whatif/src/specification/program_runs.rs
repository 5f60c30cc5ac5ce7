//! Runs unmodified programs on an emulated network with `stackline trace`; the figures are the times of their requests.

use super::experiment_runs::FactorsStopSignal;
use super::response_figures::{ResponseFigures, RunResponse};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS};
use stackline_analyze::segments::measure_total_times;
use stackline_core::error::{Error, Result};
use stackline_guard::scratch;
use std::ffi::OsString;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// How often to check whether a run has ended, or the user asks to stop.
const LOOK: Duration = Duration::from_millis(5);

/// Runs the programs once on the network of `text`, stored under `root`. Only packets are recorded, which disturbs the programs least.
pub(crate) fn run(
    text: &str,
    programs: &[OsString],
    root: &Path,
    name: &str,
    stop: &FactorsStopSignal,
) -> Result<ResponseFigures> {
    std::fs::create_dir_all(root)
        .map_err(|error| stackline_runs::unwritten(root.display(), &error))?;
    let file = root.join(format!("{name}.stackline"));
    std::fs::write(&file, text)
        .map_err(|error| stackline_runs::unwritten(file.display(), &error))?;
    let own = std::env::current_exe();
    let own = own.map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })?;
    let mut command = Command::new(own);
    command
        .args([
            "trace", "--json", "--see", "packets", "--name", name, "--on",
        ])
        .arg(&file)
        .args(programs)
        .env("STACKLINE_RUNS", root)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let (status, said) = until_over(&mut command, stop)
        .map_err(|error| Error::environment(format!("cannot start `stackline trace`: {error}")))?;
    if !status.success() {
        let last = said
            .lines()
            .rfind(|line| line.starts_with("error: "))
            .or_else(|| said.lines().last());
        let cause = last.map_or_else(
            || status.to_string(),
            |line| line.trim_start_matches("error: ").to_owned(),
        );
        // Exit codes 3 (environment) and 2 (input) hold for every run, so they end the experiment.
        return Err(match status.code() {
            Some(3) => Error::environment(cause),
            Some(2) => Error::input(cause),
            _ => Error::measurement(format!("the programs failed: {cause}")),
        });
    }
    figures(&kept(root, name)?)
}

/// Runs a command to its end, and sends it SIGTERM if the user asks to stop. Returns its status and what it wrote to stderr.
fn until_over(command: &mut Command, stop: &FactorsStopSignal) -> io::Result<(ExitStatus, String)> {
    let mut said = scratch::create_file()?;
    let stderr = said.try_clone()?;
    let mut child = command.stderr(stderr).spawn()?;
    let mut is_asked = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop.is_asked() && !std::mem::replace(&mut is_asked, true) {
            // Its pid is still its own until it is waited for; an error only says that it has ended already.
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        }
        std::thread::sleep(LOOK);
    };
    said.rewind()?;
    let mut bytes = Vec::new();
    said.read_to_end(&mut bytes)?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

/// The directory of the latest run with this name.
fn kept(root: &Path, name: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let named = |path: &PathBuf| {
        let file = path
            .file_name()
            .and_then(|file| file.to_str())
            .unwrap_or("");
        path.is_dir() && file.ends_with(&format!("-{name}"))
    };
    entries
        .filter(named)
        .max()
        .ok_or_else(|| Error::measurement("nothing was traced"))
}

/// Mean, median and 99th percentile of the requests' times, and the time from the first event to the last, all in seconds.
fn figures(run: &Path) -> Result<ResponseFigures> {
    let loaded = LoadedRun::whatever(run, MOST_EVENTS)?;
    let lines = &loaded.lifelines;
    let mut figures = ResponseFigures::new();
    if let Some(spread) = measure_total_times(lines, None) {
        figures.insert(RunResponse::Response, spread.mean_ns / 1e9);
        figures.insert(RunResponse::Median, spread.median_ns / 1e9);
        figures.insert(RunResponse::P99, spread.p99_ns / 1e9);
    }
    let moments = || lines.passages.iter().map(|passage| passage.at_ns);
    if let (Some(first), Some(last)) = (moments().min(), moments().max()) {
        figures.insert(RunResponse::Elapsed, (last - first) as f64 / 1e9);
    }
    if figures.is_empty() {
        return Err(Error::measurement(
            "no request was seen in the programs' packets",
        ));
    }
    Ok(figures)
}
