//! `stackline runs again`: makes a kept run, or an archive's, once more, and compares the results to the last bit.

use crate::archive::added_line;
use crate::checked_plan::SpecSource;
use crate::exit::{Error, Exit, Result};
use crate::flags::RunsAgain;
use crate::kept_flags::{KeptFlags, may_be_made};
use crate::output;
use crate::run::run_specification;
use stackline_analyze::compared_runs::compare_runs;
use stackline_core::plan::{Plan, World};
use stackline_runs::archive::{add_archive, is_archive};
use stackline_runs::{
    RunFileAccess, RunStatus, StoredRun, located, results_digest, runs_root, short_digest,
};
use std::path::Path;

/// Makes the run again. Exits with 1 if simulated results differ, which they should not.
pub(crate) fn again(flags: &RunsAgain) -> Result {
    let path = match is_archive(&flags.run) {
        true => {
            let added = add_archive(&runs_root(), &flags.run, RunFileAccess::Private)?;
            output::say(&added_line(&added));
            added.path
        }
        false => located(&flags.run)?,
    };
    let before = StoredRun::open(&path)?;
    may_be_made(&before, flags.trust)?;
    let KeptFlags { flags: run, inputs } = KeptFlags::read(&before, flags.files.as_deref())?;
    let source = SpecSource::from_run(&before.title(), before.specification.clone(), inputs.files);
    let mut kept = None;
    let exit = run_specification(&run, &source, &mut kept)?;
    match kept {
        Some(after) if exit == Exit::Done => compared(&before, &after),
        _ => Ok(exit),
    }
}

/// Says whether both runs have the same results; if not, compares them.
fn compared(before: &StoredRun, path: &Path) -> Result {
    let after = StoredRun::open(path)?;
    let digests = [
        results_digest(&before.records)?,
        results_digest(&after.records)?,
    ];
    let (name, digest) = (before.title(), short_digest(&digests[1]));
    if digests[0] == digests[1] {
        let what = match same_events(&before.path, path) {
            true => "results and events are",
            false => "the results are",
        };
        output::print(&format!(
            "{what} the same to the last bit as those of {name} (digest {digest})\n"
        ))?;
        return Ok(Exit::Done);
    }
    let mut plans = [before.plan.clone(), after.plan.clone()];
    // A specification that stood in a document has other lines now.
    let measurements = plans.iter_mut().flat_map(|plan| &mut plan.measurements);
    measurements.for_each(|measurement| measurement.line = 0);
    let is_simulated = |plan: &Plan| {
        plan.measurements
            .iter()
            .all(|one| one.world == World::Simulated)
    };
    let compared = compare_runs(&before.path, path, &mut |words| output::say(&words))?;
    output::print(&format!("\n{}", stackline_report::compared_runs(&compared)))?;
    let versions = [&before.path, path].map(|run| {
        RunStatus::read(run)
            .map(|status| status.stackline)
            .unwrap_or_default()
    });
    let by = format!("made by stackline {}, now by {}", versions[0], versions[1]);
    let has_other_plan = plans[0] != plans[1];
    if !is_simulated(&plans[0]) {
        if has_other_plan {
            output::say(&format_args!(
                "note: the plan differs from that of {name} ({by})"
            ));
        }
        output::say(&"note: only simulated runs give the same results to the last bit");
        return Ok(Exit::Done);
    }
    let (and, hint) = match has_other_plan {
        true => (
            ", and so does the plan",
            "the table above shows by how much; compare the two files plan.json",
        ),
        false => (
            "",
            "the table above shows by how much; with the same version this is a bug in stackline",
        ),
    };
    let what = format!("the simulated results differ from those of {name}{and} ({by})");
    Err(Error::measurement(what).hint(hint))
}

/// Whether both runs have events, and the checksums of all their files are equal.
fn same_events(before: &Path, after: &Path) -> bool {
    let events = [before, after].map(|run| RunStatus::read(run).map(|status| status.events));
    match events {
        [Ok(before), Ok(after)] => !before.is_empty() && before == after,
        _ => false,
    }
}
