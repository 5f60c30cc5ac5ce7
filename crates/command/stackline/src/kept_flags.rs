//! The flags with which a kept run was made, for one who makes it again or goes on with it.

use crate::exit::{Error, Result};
use crate::flags::{RunFlags, StacklineCommand, StacklineFlags};
use clap::Parser as _;
use stackline_core::plan::{Plan, World};
use stackline_core::run_schedule::RunOrder;
use stackline_runs::kept_runs::kept_run;
use stackline_runs::{RunInputs, StoredRun};
use std::ffi::OsString;
use std::path::Path;

/// A kept run as it was asked for.
pub(crate) struct KeptFlags {
    /// What `run` was given.
    pub(crate) flags: RunFlags,
    /// What the specification was given beside its text.
    pub(crate) inputs: RunInputs,
}

impl KeptFlags {
    /// Reads them. `files` is the directory of the files of `< file` and `> file` on this machine.
    pub(crate) fn read(run: &StoredRun, files: Option<&Path>) -> Result<Self> {
        let inputs = RunInputs::read(&run.path)?.unwrap_or_else(|| inputs_of_plan(&run.plan));
        let words = command_line(run, &inputs, files);
        let parsed = StacklineFlags::try_parse_from(words).map_err(|error| {
            let what = error.kind();
            Error::input(format!(
                "{} cannot be read: a flag in it is wrong ({what})",
                run.path.join("inputs.json").display()
            ))
            .hint("run its specification with `stackline run`")
        })?;
        let StacklineCommand::Run(flags) = parsed.command else {
            return Err(Error::input("the run's flags are not those of `run`"));
        };
        Ok(Self { flags, inputs })
    }
}

/// Refuses what cannot be made again, or may do harm: somebody else's specification may name programs to start.
pub(crate) fn may_be_made(run: &StoredRun, trusted: bool) -> Result<()> {
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
    match real.filter(|_| is_elsewhere && !trusted) {
        None => Ok(()),
        Some(world) => Err(Error::input(format!(
            "{name} came in an archive, and its measurements are {world}: they may start programs and reach other hosts"
        ))
        .hint(format!(
            "read {}, then use `stackline runs again --trust`",
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
fn command_line(run: &StoredRun, inputs: &RunInputs, files: Option<&Path>) -> Vec<OsString> {
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
        None => {
            add("seed", run.plan.seed.to_string());
            add(
                "order",
                inputs.order.unwrap_or(RunOrder::Declared).to_string(),
            );
        }
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
    if inputs.check_determinism {
        words.push("--check-determinism".into());
    }
    if let Some(files) = files {
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
