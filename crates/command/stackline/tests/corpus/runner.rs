//! Makes the runs of the corpus with the command itself, plants what a specification cannot, and asks for the diagnosis.

use super::cases::{Case, Plant};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use stackline_events::EventTable;
use stackline_runs::events::{read_index, read_table, write_index, write_table};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// What became of a case.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// The kind at rank one.
    pub(crate) kind: String,
    /// How many findings there are.
    pub(crate) findings: usize,
    /// The first sentence.
    pub(crate) sentence: String,
    /// Share of the time, and how sure.
    pub(crate) figures: (f64, f64),
    /// Whether the first finding has evidence with events.
    pub(crate) events: bool,
}

/// Runs a case and diagnoses it, in a directory of its own.
///
/// # Errors
/// What went wrong, with what the command said.
pub(crate) fn verdict(program: &Path, directory: &Path, case: &Case) -> Result<Verdict, String> {
    let run = make(program, directory, case)?;
    match case.plant {
        Plant::Blind => blind(&run)?,
        Plant::Lose(percent) => lose(&run, percent)?,
        Plant::Nothing | Plant::Pause(..) | Plant::Crowd(_) => {}
    }
    let output = Command::new(program)
        .args(["diagnose", "--json"])
        .arg(&run)
        .output()
        .map_err(|e| e.to_string())?;
    let json: Value = serde_json::from_slice(&said(output)?).map_err(|e| e.to_string())?;
    let findings = json["findings"]
        .as_array()
        .ok_or("no findings in the JSON")?;
    let first = findings.first().ok_or("no finding at all")?;
    let text = |name: &str| first[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| first[name].as_f64().unwrap_or_default();
    let proofs = first["evidence"].as_array().into_iter().flatten();
    Ok(Verdict {
        kind: text("kind"),
        findings: findings.len(),
        sentence: text("sentence"),
        figures: (number("share"), number("confidence")),
        events: proofs.into_iter().any(|proof| {
            proof["events"]
                .as_array()
                .is_some_and(|events| !events.is_empty())
        }),
    })
}

/// The directory of a run that was made.
fn make(program: &Path, directory: &Path, case: &Case) -> Result<PathBuf, String> {
    fs::create_dir_all(directory).map_err(|e| e.to_string())?;
    let specification = directory.join("case.stackline");
    fs::write(&specification, &case.text).map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    // One of its processes is stopped: see `Place::command` of the command's tests.
    command.process_group(0);
    command
        .args(["run", "--trace", "--json", "--name", "case"])
        .arg(&specification);
    command
        .env("STACKLINE_RUNS", directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let crowd = if let Plant::Crowd(size) = case.plant {
        Crowd::start(size)?
    } else {
        Crowd::default()
    };
    let child = command.spawn().map_err(|e| e.to_string())?;
    if let Plant::Pause(after, lasts) = case.plant {
        pause(
            &child,
            Duration::from_millis(after),
            Duration::from_millis(lasts),
        );
    }
    said(child.wait_with_output().map_err(|e| e.to_string())?)?;
    drop(crowd);
    let mut runs = fs::read_dir(directory)
        .map_err(|e| e.to_string())?
        .flatten()
        .map(|entry| entry.path());
    runs.find(|path| path.join("status.json").is_file())
        .ok_or_else(|| "no run was kept".into())
}

/// Programs that compute on core 0 until they are dropped.
#[derive(Default)]
struct Crowd(Vec<Child>);

impl Crowd {
    fn start(size: u32) -> Result<Self, String> {
        let one = || {
            Command::new("taskset")
                .args(["-c", "0", "sh", "-c", "while :; do :; done"])
                .spawn()
        };
        let mut crowd = Self::default();
        for _ in 0..size {
            crowd.0.push(one().map_err(|e| format!("taskset: {e}"))?);
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for program in &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// What a command printed, or what it said when it failed.
fn said(output: Output) -> Result<Vec<u8>, String> {
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(words)
    }
}

/// Stops an agent's process for a while, some time after there are two.
fn pause(child: &Child, after: Duration, lasts: Duration) {
    let agents = || {
        children(child.id())
            .into_iter()
            .filter(|pid| is_agent(*pid))
            .collect::<Vec<_>>()
    };
    for _ in 0..1000 {
        if agents().len() >= 2 {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(after);
    // The agent that was started last serves the responder.
    if let Some(agent) = agents().into_iter().max() {
        let agent = Pid::from_raw(agent as i32);
        if kill(agent, Signal::SIGSTOP).is_ok() {
            thread::sleep(lasts);
            let _ = kill(agent, Signal::SIGCONT);
        }
    }
}

fn is_agent(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == b"agent")
}

/// All processes below one.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let own = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let own: Vec<u32> = own
        .flat_map(|list| {
            list.split(' ')
                .filter_map(|pid| pid.trim().parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    own.iter()
        .copied()
        .chain(own.iter().flat_map(|pid| children(*pid)))
        .collect()
}

/// Takes away what the network said.
fn blind(run: &Path) -> Result<(), String> {
    let _ = fs::remove_file(run.join("results.parquet"));
    let journal = run.join("runs.jsonl");
    let lines = fs::read_to_string(&journal).map_err(|e| e.to_string())?;
    let mut kept = String::new();
    for line in lines.lines() {
        let mut record: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
        record
            .as_object_mut()
            .ok_or("a record is no object")?
            .remove("network");
        kept += &format!("{record}\n");
    }
    fs::write(&journal, kept).map_err(|e| e.to_string())?;
    let path = run.join("plan.json");
    let mut plan: Value =
        serde_json::from_str(&fs::read_to_string(&path).map_err(|e| e.to_string())?)
            .map_err(|e| e.to_string())?;
    plan["networks"] = Value::Array(Vec::new());
    for measurement in plan["measurements"].as_array_mut().into_iter().flatten() {
        measurement["across"] = Value::Null;
    }
    fs::write(&path, plan.to_string()).map_err(|e| e.to_string())?;
    without_sums(run)?;
    filter(run, |table, row| !table.keyword(row).starts_with("NET_")).map(drop)
}

/// What was changed here has other checksums.
fn without_sums(run: &Path) -> Result<(), String> {
    let path = run.join("status.json");
    let text = fs::read_to_string(&path).map_err(|e| e.to_string())?;
    let mut status: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let object = status.as_object_mut().ok_or("a status is no object")?;
    for sums in ["sums", "events"] {
        object.remove(sums);
    }
    fs::write(&path, status.to_string()).map_err(|e| e.to_string())
}

/// Takes away some events of each host, as if there had been no room for them, and says so.
fn lose(run: &Path, percent: u32) -> Result<(), String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let lost = filter(run, |table, row| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        table.keyword(row).starts_with("RUN_") || (state >> 33) % 100 >= u64::from(percent)
    })?;
    let mut index = read_index(run)
        .map_err(|e| e.to_string())?
        .ok_or("the run has no index")?;
    for (host, count) in lost {
        let host = index.hosts.entry(host).or_default();
        host.recorded = host.recorded.saturating_sub(count);
        host.lost += count;
    }
    write_index(run, &index).map_err(|e| e.to_string())
}

/// Keeps the chosen events of each file; how many of each host were taken away.
fn filter(
    run: &Path,
    mut keep: impl FnMut(&EventTable, usize) -> bool,
) -> Result<Vec<(String, u64)>, String> {
    let files = fs::read_dir(run.join("events"))
        .map_err(|e| e.to_string())?
        .flatten()
        .map(|entry| entry.path());
    let mut taken = Vec::new();
    for path in files.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "parquet")
    }) {
        let table = read_table(&path).map_err(|e| e.to_string())?;
        let mut kept = EventTable::default();
        (0..table.len())
            .filter(|row| keep(&table, *row))
            .for_each(|row| kept.push_event(&table.event(row)));
        let host = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        taken.push((host, (table.len() - kept.len()) as u64));
        write_table(&path, &kept).map_err(|e| e.to_string())?;
    }
    Ok(taken)
}
