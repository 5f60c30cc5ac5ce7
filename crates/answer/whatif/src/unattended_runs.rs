//! Runs of a plan into a run directory that nobody watches: no bar. What is done with them is the caller's.

use stackline_analyze::interval_reached;
use stackline_core::error::{Error, Result};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::ScheduledRun;
use stackline_live::launch::Launcher;
use stackline_runner::{RunContext, RunProgress, RunWriter, Traces, make_runs};
use stackline_runs::RunDirectory;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is recorded of runs beside their results, what ends them, and who is warned.
#[derive(Clone, Debug)]
pub struct UnattendedOptions<'o> {
    /// Events are kept.
    pub trace: bool,
    /// Where packets are captured.
    pub capture: Vec<String>,
    /// Worlds end a run by this flag.
    pub ended: &'o Arc<AtomicBool>,
    /// A user raises this one.
    pub signalled: &'o Arc<AtomicBool>,
    /// Takes warnings.
    pub warn: fn(&str),
}

/// Makes all runs of a plan.
///
/// # Errors
/// When a run cannot be made, or not be kept.
pub fn make_unattended_runs(
    plan: &Plan,
    mut directory: RunDirectory,
    options: UnattendedOptions<'_>,
) -> Result<Vec<RunRecord>> {
    directory.write_plan(plan)?;
    let program = std::env::current_exe()
        .map_err(|e| Error::environment(format!("cannot find the path of this program: {e}")))?;
    let context = RunContext {
        plan,
        launcher: Launcher::new(program, None),
        interrupted: options.ended,
        signalled: options.signalled,
        traces: Traces {
            directory: directory.path().to_path_buf(),
            trace: options.trace,
            capture: options.capture,
        },
        twice: false,
    };
    let mut writer = RunWriter::new(
        plan,
        directory,
        Box::new(Quiet(options.warn)),
        interval_reached,
    );
    let failed = make_runs(&context, &mut writer).failed;
    let (records, unkept) = writer.finish(
        failed.is_none(),
        failed.as_ref().map(|fault| fault.message.as_str()),
    );
    failed.or(unkept.map(Error::from)).map_or(Ok(records), Err)
}

struct Quiet(fn(&str));

impl RunProgress for Quiet {
    fn begin(&mut self, _scheduled: &ScheduledRun<'_>) {}

    fn advance(&mut self) {}

    fn warn(&mut self, words: &str) {
        (self.0)(words);
    }

    fn finish(&mut self) {}
}
