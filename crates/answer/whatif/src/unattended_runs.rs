//! Makes the runs of a plan in a run directory without a progress display.

use stackline_analyze::interval_reached;
use stackline_core::error::{Error, Result};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::{RunOrder, ScheduledRun};
use stackline_live::launch::Launcher;
use stackline_runner::{AfterFailure, RunContext, RunProgress, RunWriter, Traces, make_runs};
use stackline_runs::RunDirectory;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is recorded besides the results, what ends the runs, and where warnings go.
#[derive(Clone, Debug)]
pub struct UnattendedOptions<'o> {
    /// Whether events are recorded.
    pub trace: bool,
    /// Where packets are captured: ports (such as `khons>edge`), hosts, or `all`.
    pub capture: Vec<String>,
    /// Set to end the current run; worlds may set it too.
    pub ended: &'o Arc<AtomicBool>,
    /// Set when the user asks to stop.
    pub signalled: &'o Arc<AtomicBool>,
    /// Prints a warning.
    pub warn: fn(&str),
}

/// The runs of a plan some of whose measurements may have failed.
#[derive(Debug)]
pub struct UnattendedOutcome {
    /// The runs that were made.
    pub records: Vec<RunRecord>,
    /// The measurements that failed, by index, and why.
    pub given_up: Vec<(usize, Error)>,
}

/// Makes all runs of a plan and returns their records.
///
/// # Errors
/// If a run fails or cannot be stored.
pub fn make_unattended_runs(
    plan: &Plan,
    directory: RunDirectory,
    options: UnattendedOptions<'_>,
) -> Result<Vec<RunRecord>> {
    make_runs_quietly(plan, directory, options, AfterFailure::Stop).map(|outcome| outcome.records)
}

/// Makes all runs of a plan; a measurement whose run fails is given up, and the others are made.
///
/// # Errors
/// If nothing can be measured, a run cannot be stored, or the user asked to stop.
pub fn make_runs_that_succeed(
    plan: &Plan,
    directory: RunDirectory,
    options: UnattendedOptions<'_>,
) -> Result<UnattendedOutcome> {
    make_runs_quietly(plan, directory, options, AfterFailure::GoOn)
}

/// Makes all runs of a plan without a run directory.
///
/// # Errors
/// If a run fails.
pub fn make_runs_in_memory(plan: &Plan, options: UnattendedOptions<'_>) -> Result<Vec<RunRecord>> {
    let progress = Box::new(QuietProgress(options.warn));
    let writer = RunWriter::in_memory(plan, progress, interval_reached);
    carry_out(plan, writer, options, AfterFailure::Stop).map(|outcome| outcome.records)
}

fn make_runs_quietly(
    plan: &Plan,
    mut directory: RunDirectory,
    options: UnattendedOptions<'_>,
    after_failure: AfterFailure,
) -> Result<UnattendedOutcome> {
    directory.write_plan(plan)?;
    let progress = Box::new(QuietProgress(options.warn));
    let writer = RunWriter::new(plan, directory, progress, interval_reached);
    carry_out(plan, writer, options, after_failure)
}

fn carry_out(
    plan: &Plan,
    mut writer: RunWriter<'_>,
    options: UnattendedOptions<'_>,
    after_failure: AfterFailure,
) -> Result<UnattendedOutcome> {
    let program = std::env::current_exe()
        .map_err(|e| Error::environment(format!("cannot find the path of this program: {e}")))?;
    let context = RunContext {
        plan,
        launcher: Launcher::new(program, None),
        interrupted: options.ended,
        signalled: options.signalled,
        traces: Traces {
            directory: writer.path().to_path_buf(),
            trace: options.trace,
            capture: options.capture,
        },
        after_failure,
        order: RunOrder::Declared,
        twice: false,
    };
    let outcome = make_runs(&context, &mut writer);
    let (failed, given_up) = (outcome.failed, outcome.given_up);
    let reason = failed.as_ref().or(given_up.first().map(|(_, error)| error));
    let (records, unkept) =
        writer.finish(reason.is_none(), reason.map(|fault| fault.message.as_str()));
    let outcome = UnattendedOutcome { records, given_up };
    failed.or(unkept.map(Error::from)).map_or(Ok(outcome), Err)
}

/// A progress display that passes only warnings on.
#[derive(Clone, Copy, Debug)]
pub struct QuietProgress(pub fn(&str));

impl RunProgress for QuietProgress {
    fn begin(&mut self, _scheduled: &ScheduledRun<'_>) {}

    fn advance(&mut self) {}

    fn warn(&mut self, words: &str) {
        (self.0)(words);
    }

    fn finish(&mut self) {}
}
