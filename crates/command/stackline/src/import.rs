//! `stackline import`: makes a run of other programs' logs, or adds them to a run.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use stackline_exchange::import::{ImportEnding, ImportRequest, import_logs};
use stackline_runs::{RunDirectory, StoredRun, runs_root};
use stackline_whatif::traced_answers::diagnose_traced;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// Imports logs into a run.
pub(crate) fn import(flags: &flags::ImportFlags) -> Result {
    let request = ImportRequest {
        logs: flags.logs.clone(),
        hosts: flags.host.clone(),
        clocks: flags.clock.clone(),
        form: flags.form.clone(),
        server_logs: flags.log.clone(),
        keys: flags.keys.clone(),
        keep_contents: flags.keep_contents,
    };
    request.check()?;
    // Installed before the directory is created: from then on a signal ends the import properly, instead of killing
    // the program.
    let signalled = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&signalled])?;
    let ending = ImportEnding::by(&signalled);
    let started = SystemTime::now();
    let (run, made) = match &flags.into {
        Some(run) => (StoredRun::open_events(run)?.path, None),
        None => {
            let name = flags.name.clone().unwrap_or_else(|| request.run_name());
            let access = flags.sharing.access();
            let made = RunDirectory::create(&runs_root(), &name, started, access)?;
            (made.path().to_owned(), Some(made))
        }
    };
    let done = {
        let (run, ending) = (run.clone(), ending.clone());
        ending
            .clone()
            .carry_out(move || import_logs(&run, &request, started, &ending))
    };
    let outcome = match (done, made) {
        (Ok(outcome), None) => outcome,
        (Ok(outcome), Some(made)) => {
            made.finish(&[], true, None)?;
            outcome
        }
        (Err(error), made) => {
            // A run directory without contents is removed.
            if made.is_some() {
                let _ = fs::remove_dir_all(&run);
            }
            return Err(error);
        }
    };
    outcome.lines().iter().for_each(output::say);
    match flags.json {
        true => output::json(&outcome.json(&run), false)?,
        false => {
            output::print(&outcome.text(&run))?;
            let answers = diagnose_traced(&run)?;
            // The table below is of those events alone.
            if let Some(note) = &answers.note {
                output::say(&format_args!("note: {note}"));
            }
            if !answers.requests.is_empty() {
                answers.lines(&run).iter().for_each(output::say);
            }
        }
    }
    Ok(Exit::Done)
}
