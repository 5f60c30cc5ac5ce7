//! `stackline run --resume`: makes what is missing of a run that ended early, with the same specification and seeds.

use crate::checked_plan::{SpecSource, Specification as _};
use crate::exit::{Error, Result};
use crate::flags::{RunFlags, Show};
use crate::kept_flags::{KeptFlags, may_be_made};
use crate::output;
use crate::run::{RunMaking, RunSignals, ask_for_intervals, make_and_show};
use crate::show::show;
use crate::verdicts::GateBase;
use stackline_core::plan::Plan;
use stackline_core::units::counted;
use stackline_report::{Note, Weight};
use stackline_runner::RunsBefore;
use stackline_runs::{ClaimedRun, StoredRun, located};
use std::path::Path;

/// Goes on with the run.
pub(crate) fn resume(flags: &RunFlags, run: &Path) -> Result {
    let path = located(run)?;
    let before = StoredRun::open(&path)?;
    if before.complete {
        output::say(&format_args!(
            "{} is complete: nothing is left to make",
            before.title()
        ));
        return show(&Show {
            run: path,
            shown: flags.shown.clone(),
            json: flags.text.json,
        });
    }
    may_be_made(&before, false)?;
    let KeptFlags {
        flags: kept,
        inputs,
    } = KeptFlags::read(&before, flags.files.as_deref())?;
    without_events(&before, kept.trace)?;
    let mut made = RunFlags {
        shown: flags.shown.clone(),
        against: flags.against.clone(),
        rule: flags.rule,
        scope: flags.scope.clone(),
        reports: flags.reports.clone(),
        ..kept
    };
    made.text.json = flags.text.json;
    let source = SpecSource::from_run(&before.title(), before.specification.clone(), inputs.files);
    let (mut plan, assumed) = source.work(&made.text)?;
    ask_for_intervals(&made, &mut plan);
    same_plan(&mut plan, &before)?;
    let base = GateBase::find(made.against.as_deref(), &made.rule, &made.scope)?;
    let signals = RunSignals::listen()?;
    let claimed = ClaimedRun::new(&path)?;
    // Another process may have gone on with it until now.
    let before = StoredRun::open(&path)?;
    let done = match made.seeds {
        Some(_) => RunsBefore::of_seeds(&before),
        None => RunsBefore::new(&before),
    };
    let mut notes = vec![Note::new(Weight::Always, resumed(&before, &done))];
    notes.extend(
        assumed
            .into_iter()
            .map(|text| Note::new(Weight::Always, text)),
    );
    let directory = claimed.go_on(&plan, done.kept())?;
    let making = RunMaking {
        flags: &made,
        plan: &plan,
        name: before.title(),
        base,
        notes,
        signals,
        before: Some(done),
    };
    make_and_show(making, directory)
}

/// Events that two processes recorded cannot be joined: their clocks and their numbers begin anew.
fn without_events(run: &StoredRun, traced: bool) -> Result<()> {
    if !traced {
        return Ok(());
    }
    let name = run.title();
    let what = format!(
        "{name} was made with --trace: events that two processes recorded do not fit together"
    );
    Err(Error::input(what).hint(format!(
        "`stackline runs again {name}` makes all of it anew"
    )))
}

/// Refuses to mix runs of two plans. Lines may differ, as the specification may have stood in a document.
fn same_plan(plan: &mut Plan, run: &StoredRun) -> Result<()> {
    let kept = &run.plan.measurements;
    for (measurement, kept) in plan.measurements.iter_mut().zip(kept) {
        measurement.line = kept.line;
    }
    // As the kept plan was written and read.
    let read_back = serde_json::to_string(&*plan)
        .ok()
        .and_then(|text| serde_json::from_str::<Plan>(&text).ok());
    if read_back.as_ref() == Some(&run.plan) {
        return Ok(());
    }
    let name = run.title();
    let what = format!(
        "this version of stackline makes another plan of the specification of {name} than the one that made its first runs"
    );
    Err(Error::input(what).hint(format!(
        "`stackline runs again {name}` makes all of it anew"
    )))
}

/// The text `12 runs were done before (interrupted)`.
fn resumed(run: &StoredRun, done: &RunsBefore) -> String {
    let runs = done.counted_runs();
    let were = if runs == 1 { "was" } else { "were" };
    let why = run.reason.as_deref().filter(|_| !run.running);
    format!(
        "resumed: {} {were} done before it ended ({})",
        counted(runs as u64, "run"),
        why.unwrap_or("it was killed")
    )
}
