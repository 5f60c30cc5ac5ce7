//! Runs a paper's sessions in both worlds: for each session, this program is started once simulated and once emulated.

use crate::exit::{Error, Result};
use serde_json::Value;
use stackline_guard::scratch;
use stackline_papers::{Compared, PaperComparison, PaperSession};
use stackline_report::sheet::Sheet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Carries out each session `runs` times in both worlds and makes the table. `done` gets the number of completed runs
/// and the number of all.
pub(super) fn compare(
    comparison: &PaperComparison,
    seed: u64,
    runs: u32,
    done: &dyn Fn(usize, usize),
) -> Result<Sheet> {
    let failed = |error: std::io::Error| {
        Error::environment(format!("cannot create a file for a specification: {error}"))
    };
    let directory = scratch::create_directory("reproduce").map_err(failed)?;
    let sessions = (comparison.sessions)();
    let all = sessions.len() * runs as usize;
    let mut compared = Vec::new();
    for (index, session) in sessions.into_iter().enumerate() {
        let path = directory.path().join(format!("{index}.stackline"));
        std::fs::write(&path, &session.specification).map_err(failed)?;
        let mut outcome = Compared::default();
        for run in 0..runs {
            done(index * runs as usize + run as usize, all);
            let seed = seed + u64::from(run);
            outcome
                .simulated
                .push(carried_out(&session, &path, "simulated", seed).map_err(Error::measurement)?);
            outcome
                .emulated
                .push(carried_out(&session, &path, "emulated", seed));
        }
        compared.push((session, outcome));
    }
    Ok((comparison.sheet)(&compared))
}

/// The JSON that the started program printed, or the first line of its error.
fn carried_out(
    session: &PaperSession,
    across: &Path,
    world: &str,
    seed: u64,
) -> std::result::Result<Value, String> {
    let started = |error: std::io::Error| format!("cannot start the session: {error}");
    let program = std::env::current_exe().map_err(started)?;
    let mut command = Command::new(program);
    command
        .args(&session.words)
        .arg("--across")
        .arg(across)
        .args(["--in", world, "--seed", &seed.to_string()]);
    let output = command.stdin(Stdio::null()).output().map_err(started)?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(words
            .lines()
            .next()
            .unwrap_or("the session failed without a message")
            .to_owned());
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cannot read the session's output: {error}"))
}
