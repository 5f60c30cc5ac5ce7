//! Runs of a request, made and summarised.

use super::prepared::SessionRefusal;
use super::waiting::CancelFlags;
use crate::clean;
use crate::closed_run::ClosedRun;
use crate::exit::{Blame, Error};
use crate::flags::{RunFlags, percentile};
use crate::run;
use serde_json::Value;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_report::{Percentile, ReportHeader};
use stackline_runner::{RunProgress, RunWriter};
use stackline_runs::run_index::index_ended_run;
use std::path::Path;

/// What came of a request: its result, as `--json` prints it, and notes.
#[derive(Debug)]
pub(super) struct SessionResult {
    pub(super) result: Value,
    pub(super) notes: Vec<String>,
}

/// A writer that keeps nothing.
pub(super) fn in_memory(plan: &Plan, progress: Box<dyn RunProgress>) -> RunWriter<'_> {
    RunWriter::in_memory(plan, progress, stackline_analyze::interval_reached)
}

/// The percentiles that are wanted besides the fixed ones.
pub(super) fn percentiles(texts: &[String]) -> Result<Vec<Percentile>, Error> {
    let parsed = texts.iter().map(|text| percentile(text));
    parsed
        .collect::<Result<_, String>>()
        .map_err(|message| Error::input(format!("`percentiles`: {message}")))
}

/// Makes the runs of a plan, closes the writer and summarises what was made.
pub(super) fn made(
    flags: &RunFlags,
    plan: &Plan,
    mut writer: RunWriter<'_>,
    cancel: &CancelFlags,
    mut notes: Vec<String>,
) -> Result<SessionResult, SessionRefusal> {
    let (failed, known) = run::carry_out(
        flags,
        plan,
        &cancel.interrupted,
        &cancel.signalled,
        &mut writer,
    );
    if failed.is_some() || !known.given_up.is_empty() {
        // A killed agent leaves its settings in the kernel.
        clean::sweep();
    }
    let is_kept = !writer.path().as_os_str().is_empty();
    let is_over = |fault: &Error| fault.blame != Blame::Measurement;
    if writer.is_empty() && failed.as_ref().is_some_and(is_over) {
        // Nothing was measured: nothing stays.
        writer.remove();
        return Err(failed.unwrap_or_else(Error::interrupted).into());
    }
    let ClosedRun {
        header,
        records,
        failed,
        unkept,
    } = ClosedRun::new(plan, writer, failed, &known);
    notes.extend(known.notes.into_iter().map(|note| note.text));
    if is_kept && !records.is_empty() {
        let found = run::diagnosed(flags, plan, &header.run, &cancel.signalled);
        notes.extend(found.into_iter().map(|note| note.text));
    }
    let result = summarised(flags, plan, &records, &header);
    match failed.or(unkept) {
        None => Ok(SessionResult { result, notes }),
        Some(error) => {
            let mut refusal = SessionRefusal::from(error);
            refusal.so_far = (!records.is_empty()).then_some(result);
            Err(refusal)
        }
    }
}

/// The object that `run --json` prints; `run` is null where no directory was made.
fn summarised(
    flags: &RunFlags,
    plan: &Plan,
    records: &[RunRecord],
    header: &ReportHeader,
) -> Value {
    let mut summaries = stackline_analyze::summarise(plan, records);
    // A measurement that was not begun has no result.
    summaries.retain(|summary| header.complete || summary.runs > 0);
    let mut json = stackline_report::json(header, &summaries, &flags.shown.percentiles);
    if header.run.is_empty() {
        json["run"] = Value::Null;
    } else {
        let figure = stackline_report::headline_of(&summaries);
        index_ended_run(Path::new(&header.run), figure);
    }
    json
}
