//! What each request of a session does, and its answer.

use super::made_runs::{SessionResult, in_memory, made, percentiles};
use super::prepared::{PreparedPlan, PreparedSpec, SessionRefusal};
use super::progress_lines::SessionProgress;
use super::requests::{
    RequestedComparison, RequestedPrediction, RequestedRun, RequestedText, SessionWork,
};
use super::study::studied;
use super::waiting::CancelFlags;
use crate::exit::Error;
use crate::flags::{RunFlags, TableFlags};
use crate::predict::{PredictionQuestion, predictions};
use crate::run;
use crate::spec_commands::summary_json;
use serde_json::{Value, json};
use stackline_analyze::compared_runs::{compare_runs, compare_stacks_of};
use stackline_analyze::loaded_run::incomplete;
use stackline_runner::RunWriter;
use stackline_runs::StoredRun;

/// Carries a request out. Returns the line that answers it.
pub(super) fn carried_out(id: u64, work: &SessionWork, cancel: &CancelFlags) -> Value {
    let done = match work {
        SessionWork::Run(asked) => run(id, asked, cancel),
        SessionWork::Simulate(asked) => studied(id, asked, cancel),
        SessionWork::Check(asked) => check(asked),
        SessionWork::Predict(asked) => predict(asked),
        SessionWork::Compare(asked) => compare(asked),
    };
    match done {
        Ok(SessionResult { result, notes }) => json!({"id": id, "result": result, "notes": notes}),
        Err(refusal) => {
            let mut line = json!({"id": id, "error": refusal.json()});
            if let Some(so_far) = refusal.so_far {
                line["result"] = so_far;
            }
            line
        }
    }
}

fn check(asked: &RequestedText) -> Result<SessionResult, SessionRefusal> {
    let spec = PreparedSpec::read(asked)?;
    let checked = spec.checked()?;
    let mistakes = spec.mistakes(&checked);
    let result = match &checked.plan {
        None => mistakes,
        Some(plan) => {
            let mut summary = summary_json(plan);
            // Those of a valid text are warnings.
            summary["diagnostics"] = mistakes["diagnostics"].clone();
            summary
        }
    };
    Ok(SessionResult {
        result,
        notes: checked.notes,
    })
}

fn predict(asked: &RequestedPrediction) -> Result<SessionResult, SessionRefusal> {
    let spec = PreparedSpec::read(&asked.text)?;
    let PreparedPlan { plan, mut notes } = spec.plan()?;
    if asked.simulate && asked.forms {
        return Err(Error::input("`simulate` and `forms` exclude each other")
            .hint("omit one of them")
            .into());
    }
    let run = asked.run.as_deref().map(StoredRun::open).transpose()?;
    notes.extend(run.iter().flat_map(|run| incomplete(run, "shown")));
    let predicted = predictions(&PredictionQuestion {
        source: &spec.source,
        text: &spec.flags,
        plan: &plan,
        run: run.as_ref(),
        simulate: asked.simulate,
        forms: asked.forms,
    })?;
    Ok(SessionResult {
        result: stackline_report::prediction_json(&predicted),
        notes,
    })
}

fn compare(asked: &RequestedComparison) -> Result<SessionResult, SessionRefusal> {
    let mut notes = Vec::new();
    let mut warn = |words: String| notes.push(words);
    let compared = match &asked.after {
        Some(after) => compare_runs(&asked.before, after, &mut warn)?,
        None => compare_stacks_of(&asked.before, &mut warn)?,
    };
    if compared.is_empty() {
        return Err(Error::input("nothing to compare")
            .hint("compare runs that have measurements or events in common, or a run with several stacks")
            .into());
    }
    Ok(SessionResult {
        result: stackline_report::compared_runs_json(&compared, None),
        notes,
    })
}

fn run(
    id: u64,
    asked: &RequestedRun,
    cancel: &CancelFlags,
) -> Result<SessionResult, SessionRefusal> {
    if asked.trace && !asked.keep {
        let message = "`trace` keeps events in the run's directory, and `keep: false` makes none";
        return Err(Error::input(message).hint("omit one of them").into());
    }
    let spec = PreparedSpec::read(&asked.text)?;
    let PreparedPlan { plan, notes } = spec.plan()?;
    if asked.trace {
        // Diagnosis needs the memory that sorting events returns to the system.
        stackline_live::keep_large_blocks_apart();
    }
    let PreparedSpec { source, flags } = spec;
    let flags = RunFlags {
        text: flags,
        shown: TableFlags {
            percentiles: percentiles(&asked.percentiles)?,
            ..TableFlags::default()
        },
        files: asked.files.clone(),
        name: asked.name.clone(),
        trace: asked.trace,
        ..RunFlags::default()
    };
    let progress = Box::new(SessionProgress::of_runs(id, &plan));
    let directory = match asked.keep {
        true => Some(run::open(&flags, &source, &plan)?),
        false => None,
    };
    let writer = match directory {
        Some(directory) => RunWriter::new(
            &plan,
            directory,
            progress,
            stackline_analyze::interval_reached,
        ),
        None => in_memory(&plan, progress),
    };
    made(&flags, &plan, writer, cancel, notes)
}
