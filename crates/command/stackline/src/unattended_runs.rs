//! Runs of a plan into a run directory that nobody watches: no bar, warnings on stderr. What is done with them is the caller's.

use crate::exit::{Error, Result};
use crate::output;
use stackline_analyze::interval_reached;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::ScheduledRun;
use stackline_live::launch::Launcher;
use stackline_runner::{RunContext, RunProgress, RunWriter, Traces, make_runs};
use stackline_runs::RunDirectory;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Makes all runs of a plan. Worlds end one by the flag `ended`, a user raises `signalled`.
pub(crate) fn make_unattended_runs(
    plan: &Plan,
    mut directory: RunDirectory,
    (trace, capture): (bool, Vec<String>),
    (ended, signalled): (&Arc<AtomicBool>, &Arc<AtomicBool>),
) -> Result<Vec<RunRecord>> {
    directory.write_plan(plan)?;
    let program = std::env::current_exe()
        .map_err(|e| Error::environment(format!("this program cannot find itself: {e}")))?;
    let context = RunContext {
        plan,
        launcher: Launcher::new(program, None),
        interrupted: ended,
        signalled,
        traces: Traces {
            directory: directory.path().to_path_buf(),
            trace,
            capture,
        },
        twice: false,
    };
    let mut writer = RunWriter::new(plan, directory, Box::new(Quiet), interval_reached);
    let failed = make_runs(&context, &mut writer).failed;
    let (records, unkept) = writer.finish(
        failed.is_none(),
        failed.as_ref().map(|fault| fault.message.as_str()),
    );
    failed.or(unkept.map(Error::from)).map_or(Ok(records), Err)
}

struct Quiet;

impl RunProgress for Quiet {
    fn begin(&mut self, _scheduled: &ScheduledRun<'_>) {}

    fn advance(&mut self) {}

    fn warn(&mut self, words: &str) {
        output::say(&words);
    }

    fn finish(&mut self) {}
}
