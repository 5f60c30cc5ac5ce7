//! `stackline runs again`: makes a kept run, or an archive's, once more, and compares the results to the last bit.

use crate::archive::added_line;
use crate::checked_plan::SpecSource;
use crate::exit::{Error, Exit, Result};
use crate::flags::{RunsAgain, StacklineCommand, StacklineFlags};
use crate::output;
use crate::run::run_specification;
use clap::Parser as _;
use stackline_analyze::compared_runs::compare_runs;
use stackline_core::plan::{Plan, World};
use stackline_runs::archive::{add_archive, is_archive};
use stackline_runs::kept_runs::kept_run;
use stackline_runs::{
    RunFileAccess, RunInputs, RunStatus, StoredRun, located, results_digest, runs_root,
    short_digest,
};
use std::ffi::OsString;
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
    may_be_made(flags, &before)?;
    let inputs = RunInputs::read(&path)?.unwrap_or_else(|| inputs_of_plan(&before.plan));
    let words = command_line(flags, &before, &inputs);
    let parsed = StacklineFlags::try_parse_from(words).map_err(|error| {
        let what = error.kind();
        Error::input(format!(
            "{} cannot be read: a flag in it is wrong ({what})",
            path.join("inputs.json").display()
        ))
        .hint("run its specification with `stackline run`")
    })?;
    let StacklineCommand::Run(run) = parsed.command else {
        return Err(Error::input("the run's flags are not those of `run`"));
    };
    let source = SpecSource::from_run(&before.title(), before.specification.clone(), inputs.files);
    let mut kept = None;
    let exit = run_specification(&run, &source, &mut kept)?;
    match kept {
        Some(after) if exit == Exit::Done => compared(&before, &after),
        _ => Ok(exit),
    }
}

/// Refuses what cannot be made again, or may do harm: somebody else's specification may name programs to start.
fn may_be_made(flags: &RunsAgain, run: &StoredRun) -> Result<()> {
    let name = run.title();
    if run.specification.is_empty() {
        return Err(Error::input(format!("{name} has no specification"))
            .hint("imports and traces cannot be made again"));
    }
    let is_elsewhere = kept_run(&run.path).is_some_and(|kept| kept.facts.from_archive);
    let mut worlds = run
        .plan
        .measurements
        .iter()
        .map(|measurement| measurement.world);
    let real = worlds.find(|world| *world != World::Simulated);
    match real.filter(|_| is_elsewhere && !flags.trust) {
        None => Ok(()),
        Some(world) => Err(Error::input(format!(
            "{name} came in an archive, and its measurements are {world}: they may start programs and reach other hosts"
        ))
        .hint(format!(
            "read {}, then add --trust",
            run.path.join("specification.stackline").display()
        ))),
    }
}

/// What a run of an earlier version was given, as far as its plan shows it.
fn inputs_of_plan(plan: &Plan) -> RunInputs {
    let first = plan
        .measurements
        .first()
        .map(|measurement| measurement.world);
    let mut others = plan
        .measurements
        .iter()
        .map(|measurement| measurement.world);
    RunInputs {
        world: first.filter(|first| others.all(|world| world == *first)),
        seed: Some(plan.seed),
        ..RunInputs::default()
    }
}

/// The command line that makes the run.
fn command_line(flags: &RunsAgain, run: &StoredRun, inputs: &RunInputs) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["stackline".into(), "run".into()];
    let mut add = |flag: &str, value: String| words.push(format!("--{flag}={value}").into());
    add("expression", run.specification.clone());
    add("name", given_name(run));
    inputs
        .over
        .iter()
        .for_each(|over| add("over", over.clone()));
    inputs
        .world
        .iter()
        .for_each(|world| add("in", world.to_string()));
    inputs
        .hosts
        .iter()
        .for_each(|host| add("host", host.clone()));
    inputs
        .capture
        .iter()
        .for_each(|place| add("capture", place.clone()));
    match inputs.seeds {
        Some((first, last)) => add("seeds", format!("{first}..{last}")),
        // The seed of the plan is that of the specification too, where none was given.
        None => add("seed", run.plan.seed.to_string()),
    }
    if !inputs.cpu.is_empty() {
        let cores: Vec<String> = inputs.cpu.iter().map(ToString::to_string).collect();
        add("cpu", cores.join(","));
    }
    if let Some(interval_ns) = inputs.interval_ns {
        // A time without a unit is in seconds.
        add("interval", (interval_ns as f64 * 1e-9).to_string());
    }
    if inputs.trace {
        words.push("--trace".into());
    }
    if let Some(files) = &flags.files {
        words.extend(["--files".into(), files.into()]);
    }
    words
}

/// The name that the run was given: its directory's without the time.
fn given_name(run: &StoredRun) -> String {
    const STAMP: usize = 16;
    let title = run.title();
    title
        .get(STAMP..)
        .filter(|name| !name.is_empty())
        .unwrap_or(&title)
        .to_owned()
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
