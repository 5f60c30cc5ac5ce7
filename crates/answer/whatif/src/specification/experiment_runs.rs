//! Makes the runs of an experiment in random order, and stores the figures of each as soon as it is done, so that an interrupted
//! experiment can be resumed.

use super::program_runs;
use super::response_figures::{ResponseFigures, RunResponse, figures};
use super::subject::SpecExperiment;
use crate::unattended_runs::{self, UnattendedOptions};
use rand_core::Rng as _;
use serde_json::{Value, json};
use stackline_core::error::{Blame, Error, Result};
use stackline_core::named::NamedValue as _;
use stackline_core::plan::{Plan, Warmup, World};
use stackline_core::random::Seed;
use stackline_core::run_record::RunRecord;
use stackline_factors::FactorObservation;
use stackline_guard::directory::Directory;
use stackline_guard::scratch::{self, ScratchDirectory};
use stackline_runner::simulate;
use stackline_runs::{RunDirectory, RunFileAccess, new_directory, runs_root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

/// File in an experiment's directory that identifies the experiment, to check it on resuming.
const EXPERIMENT: &str = "experiment.txt";
/// File in an experiment's directory with one JSON line for each run.
const RUNS: &str = "runs.jsonl";
/// Directory of experiments, in the directory of runs.
const EXPERIMENTS: &str = "experiments";

/// Shows how many runs of an experiment are done.
pub trait ExperimentProgress {
    /// Called before the first run, with the number of runs.
    fn begin(&self, runs: usize);
    /// Called after each run.
    fn advance(&self);
    /// Called when all runs are done, or no more will be made.
    fn end(&self);
}

/// How a user stops a running experiment, and where its warnings go.
#[derive(Clone, Debug)]
pub struct FactorsStopSignal {
    /// Set when the user asks to stop.
    pub signalled: Arc<AtomicBool>,
    /// Prints a warning.
    pub warn: fn(&str),
}

impl FactorsStopSignal {
    /// Whether the user has asked to stop.
    pub fn is_asked(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
    }

    /// Calls `work` with a flag that is set when the user asks to stop, and that worlds may set too without stopping the experiment.
    fn while_nobody_asks<T>(&self, work: impl FnOnce(&Arc<AtomicBool>) -> T) -> T {
        let (ended, over) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if self.is_asked() {
                        ended.store(true, Ordering::Relaxed);
                    }
                    std::thread::sleep(LOOK);
                }
            });
            let done = work(&ended);
            over.store(true, Ordering::Relaxed);
            done
        })
    }
}

/// How often `while_nobody_asks` checks whether the user has asked to stop.
const LOOK: Duration = Duration::from_millis(20);

/// A run of an experiment that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactorsRun {
    /// The row of the design; the number after the last row stands for the centre point.
    pub row: usize,
    /// Which run of the row, from 0.
    pub replicate: u32,
    /// Its seed.
    pub seed: u64,
}

/// All runs in the order in which they are made: each replicate is a block with all combinations in random order.
pub struct RunOrder {
    /// The runs.
    pub runs: Vec<FactorsRun>,
}

impl RunOrder {
    /// An order with `replicates` runs of each combination, and `centre` runs of the centre point spread among them. It depends only on
    /// the seed, so that a resumed experiment has the same order.
    #[must_use]
    pub fn new(experiment: &SpecExperiment, replicates: u32, centre: u32) -> Self {
        let rows = experiment.laid_out.design.rows.len();
        let mut draw = Seed::root(experiment.laid_out.base.seed)
            .child("order")
            .generator();
        let mut runs = Vec::new();
        for replicate in 0..replicates {
            let mut block: Vec<usize> = (0..rows).collect();
            for at in (1..rows).rev() {
                block.swap(at, (draw.next_u64() % (at as u64 + 1)) as usize);
            }
            let seed = |row: usize| {
                experiment
                    .laid_out
                    .base
                    .seed
                    .saturating_add(u64::from(replicate) * rows as u64 + row as u64)
            };
            runs.extend(block.into_iter().map(|row| FactorsRun {
                row,
                replicate,
                seed: seed(row),
            }));
        }
        // Runs of the centre point are spread over the whole series, so that they show a drift.
        let (step, all) = (runs.len() / (centre as usize + 1) + 1, runs.len() as u64);
        for number in 0..centre {
            let seed = experiment
                .laid_out
                .base
                .seed
                .saturating_add(all + u64::from(number));
            let at = (step * (number as usize + 1)).min(runs.len());
            runs.insert(
                at,
                FactorsRun {
                    row: rows,
                    replicate: number,
                    seed,
                },
            );
        }
        Self { runs }
    }
}

/// The result of a run: its figures or why it failed, and its flags.
#[derive(Clone, Debug)]
pub struct FactorsRunResult {
    row: usize,
    replicate: u32,
    order: u32,
    outcome: std::result::Result<ResponseFigures, String>,
    flags: Vec<String>,
}

/// The results so far, and the directory where they are stored.
pub struct FactorsProgress {
    /// The directory of the experiment.
    pub directory: PathBuf,
    file: File,
    /// The runs that are done.
    pub done: Vec<FactorsRunResult>,
}

impl FactorsProgress {
    /// Creates a new directory, or opens that of an experiment to resume. Fails if the latter belongs to a different experiment.
    pub fn open(
        resume: Option<&Path>,
        access: RunFileAccess,
        experiment: &SpecExperiment,
        order: &RunOrder,
    ) -> Result<Self> {
        let identity = format!("{} runs\n{}", order.runs.len(), experiment.identity()?);
        let (directory, done) = match resume {
            Some(directory) => (directory.to_path_buf(), read(directory, &identity)?),
            None => {
                let root = runs_root().join(EXPERIMENTS);
                let directory = new_directory(&root, experiment.name(), SystemTime::now(), access)?;
                let path = directory.join(EXPERIMENT);
                let written = Directory::open(&directory)
                    .and_then(|kept| kept.replace(Path::new(EXPERIMENT), identity.as_bytes()));
                written.map_err(|error| stackline_runs::unwritten(path.display(), &error))?;
                (directory, Vec::new())
            }
        };
        let path = directory.join(RUNS);
        let file = Directory::open(&directory).and_then(|kept| kept.append(Path::new(RUNS)));
        let file = file.map_err(|error| stackline_runs::unwritten(path.display(), &error))?;
        Ok(Self {
            directory,
            file,
            done,
        })
    }

    fn add(&mut self, done: FactorsRunResult) -> Result<()> {
        let figures = done.outcome.as_ref().ok().map(|figures| {
            figures
                .iter()
                .map(|(response, value)| (response.name().to_owned(), json!(value)))
                .collect::<serde_json::Map<_, _>>()
        });
        let line = json!({ "row": done.row, "replicate": done.replicate, "order": done.order, "figures": figures, "failed": done.outcome.as_ref().err(), "flags": done.flags, });
        let path = self.directory.join(RUNS);
        writeln!(self.file, "{line}")
            .map_err(|error| stackline_runs::unwritten(path.display(), &error))?;
        self.done.push(done);
        Ok(())
    }

    /// Stores a JSON document in the experiment's directory.
    pub fn keep(&self, name: &str, value: &Value) -> Result<()> {
        let path = self.directory.join(name);
        let text = format!("{value:#}\n");
        let written = Directory::open(&self.directory)
            .and_then(|kept| kept.replace(Path::new(name), text.as_bytes()));
        written.map_err(|error| stackline_runs::unwritten(path.display(), &error))
    }

    /// The responses that all successful runs have.
    pub fn responses(&self) -> BTreeSet<RunResponse> {
        let mut all: Option<BTreeSet<RunResponse>> = None;
        for figures in self
            .done
            .iter()
            .filter_map(|done| done.outcome.as_ref().ok())
        {
            let own: BTreeSet<RunResponse> = figures.keys().copied().collect();
            all = Some(all.map_or(own.clone(), |all| all.intersection(&own).copied().collect()));
        }
        all.unwrap_or_default()
    }

    /// The values of a response in the runs of the design, in the order of the runs.
    #[must_use]
    pub fn observed(
        &self,
        response: RunResponse,
        rows: usize,
        has_blocks: bool,
    ) -> Vec<FactorObservation> {
        let of = |done: &FactorsRunResult| {
            let value = *done.outcome.as_ref().ok()?.get(&response)?;
            let block = if has_blocks { done.replicate } else { 0 };
            Some(FactorObservation {
                row: done.row,
                block,
                order: done.order,
                value,
            })
        };
        let of_rows = self.done.iter().filter(|done| done.row < rows);
        let mut all: Vec<FactorObservation> = of_rows.filter_map(of).collect();
        all.sort_by_key(|one| one.order);
        all
    }

    /// The values of a response in the runs of the centre point.
    pub fn at_centre(&self, response: RunResponse, rows: usize) -> Vec<f64> {
        let centre = self.done.iter().filter(|done| done.row == rows);
        centre
            .filter_map(|done| done.outcome.as_ref().ok()?.get(&response).copied())
            .collect()
    }

    /// How many runs failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.done
            .iter()
            .filter(|done| done.outcome.is_err())
            .count()
    }

    /// Notes on the runs: how many failed and why, and the three most frequent flags.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let causes: BTreeSet<&String> = self
            .done
            .iter()
            .filter_map(|done| done.outcome.as_ref().err())
            .collect();
        for cause in causes {
            let count = self
                .done
                .iter()
                .filter(|done| done.outcome.as_ref().err() == Some(cause))
                .count();
            notes.push(format!(
                "{count} of {} runs failed (omitted): {cause}",
                self.done.len()
            ));
        }
        let mut flags: BTreeMap<&String, usize> = BTreeMap::new();
        self.done
            .iter()
            .flat_map(|done| &done.flags)
            .for_each(|flag| *flags.entry(flag).or_default() += 1);
        let mut flags: Vec<_> = flags.into_iter().collect();
        flags.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (flag, count) in flags.into_iter().take(3) {
            notes.push(format!("{count} of {} runs: {flag}", self.done.len()));
        }
        notes
    }
}

/// The largest file of an experiment's directory that is read, bytes.
const LARGEST: u64 = 1 << 30;

/// The results of an interrupted experiment; an error if the directory belongs to a different one.
fn read(directory: &Path, identity: &str) -> Result<Vec<FactorsRunResult>> {
    let hint = "specify the directory that the interrupted experiment printed, with the same specification and flags";
    let unread = |path: &Path, error: &dyn std::fmt::Display| {
        Error::input(format!("cannot read {}: {error}", path.display())).hint(hint)
    };
    let path = directory.join(EXPERIMENT);
    let kept = Directory::open(directory).map_err(|error| unread(directory, &error))?;
    let before = kept
        .read_text(Path::new(EXPERIMENT), LARGEST)
        .map_err(|error| unread(&path, &error))?;
    if before != identity {
        return Err(Error::input(format!(
            "{} belongs to a different experiment",
            directory.display()
        ))
        .hint(hint));
    }
    let path = directory.join(RUNS);
    let text = kept
        .read_text(Path::new(RUNS), LARGEST)
        .map_err(|error| unread(&path, &error))?;
    // Lines that cannot be parsed are skipped: an interruption may have cut off the last one.
    Ok(text
        .lines()
        .filter_map(|line| made(&serde_json::from_str(line).ok()?))
        .collect())
}

/// A result from its JSON line.
fn made(line: &Value) -> Option<FactorsRunResult> {
    let number = |name: &str| {
        line[name]
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
    };
    let outcome = match (line["figures"].as_object(), line["failed"].as_str()) {
        (Some(figures), None) => Ok(figures
            .iter()
            .filter_map(|(text, value)| Some((RunResponse::named(text)?, value.as_f64()?)))
            .collect()),
        (None, Some(cause)) => Err(cause.to_owned()),
        _ => return None,
    };
    let flags = line["flags"]
        .as_array()?
        .iter()
        .filter_map(|flag| flag.as_str().map(str::to_owned))
        .collect();
    Some(FactorsRunResult {
        row: number("row")? as usize,
        replicate: number("replicate")?,
        order: number("order")?,
        outcome,
        flags,
    })
}

/// Makes all runs that are not done yet, until the user asks to stop. Fails if every run failed.
pub fn make_experiment_runs(
    experiment: &SpecExperiment,
    order: &RunOrder,
    kept: &mut FactorsProgress,
    stop: &FactorsStopSignal,
    progress: &dyn ExperimentProgress,
) -> Result<()> {
    let known: BTreeSet<(usize, u32)> = kept
        .done
        .iter()
        .map(|done| (done.row, done.replicate))
        .collect();
    let left: Vec<(u32, FactorsRun)> = (0_u32..)
        .zip(order.runs.iter().copied())
        .filter(|(_, run)| !known.contains(&(run.row, run.replicate)))
        .collect();
    progress.begin(left.len());
    let result = if experiment.world() == World::Simulated {
        side_by_side(experiment, &left, kept, stop, progress)
    } else {
        one_by_one(experiment, &left, kept, stop, progress)
    };
    progress.end();
    result?;
    if kept.done.iter().all(|done| done.outcome.is_err()) && !stop.is_asked() {
        let cause = kept
            .done
            .first()
            .and_then(|done| done.outcome.clone().err())
            .unwrap_or_default();
        return Err(Error::measurement(format!("every run failed: {cause}")));
    }
    Ok(())
}

/// Makes simulated runs in parallel, one on each core.
fn side_by_side(
    experiment: &SpecExperiment,
    left: &[(u32, FactorsRun)],
    kept: &mut FactorsProgress,
    stop: &FactorsStopSignal,
    progress: &dyn ExperimentProgress,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((at, run)) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let plan = plan_single_run(&experiment.plans[run.row], run.seed);
                    let made = simulated(&plan, stop);
                    if stop.is_asked() || sender.send((*at, *run, made)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (order, run, made) in receiver {
            kept.add(done(&experiment.plans[run.row], order, run, made))?;
            progress.advance();
        }
        Ok(())
    })
}

fn done(
    plan: &Plan,
    order: u32,
    run: FactorsRun,
    made: Result<Vec<RunRecord>>,
) -> FactorsRunResult {
    let (outcome, flags) = match made {
        Ok(records) => {
            let (figures, flags) = figures(&plan_single_run(plan, run.seed), &records);
            (Ok(figures), flags)
        }
        Err(error) => (Err(error.message), Vec::new()),
    };
    FactorsRunResult {
        row: run.row,
        replicate: run.replicate,
        order,
        outcome,
        flags,
    }
}

/// A plan with a single run of its measurement, with the given seed; simulated runs have no warm-up.
pub fn plan_single_run(plan: &Plan, seed: u64) -> Plan {
    let mut once = plan.clone();
    once.seed = seed;
    for measurement in &mut once.measurements {
        (measurement.runs, measurement.until) = (1, None);
        if measurement.world == World::Simulated {
            measurement.warmup = Warmup::Runs(0);
        }
    }
    once
}

/// The records of one simulated run.
pub fn simulated(plan: &Plan, stop: &FactorsStopSignal) -> Result<Vec<RunRecord>> {
    let mut records = Vec::new();
    simulate(plan, plan.seed..=plan.seed, &stop.signalled, |some| {
        records.extend(some)
    })?;
    Ok(records)
}

/// Makes runs in real time one after the other, each in a run directory of its own. An error of the environment or the input ends
/// the experiment, as every run would have it.
fn one_by_one(
    experiment: &SpecExperiment,
    left: &[(u32, FactorsRun)],
    kept: &mut FactorsProgress,
    stop: &FactorsStopSignal,
    progress: &dyn ExperimentProgress,
) -> Result<()> {
    for (order, run) in left {
        if stop.is_asked() {
            return Ok(());
        }
        let made = in_real_time(experiment, &kept.directory, *run, stop);
        if stop.is_asked() {
            return Ok(());
        }
        let (outcome, flags) = match made {
            Ok((figures, flags)) => (Ok(figures), flags),
            Err(error) if matches!(error.blame, Blame::Environment | Blame::Input) => {
                return Err(error);
            }
            Err(error) => (Err(error.message), Vec::new()),
        };
        kept.add(FactorsRunResult {
            row: run.row,
            replicate: run.replicate,
            order: *order,
            outcome,
            flags,
        })?;
        progress.advance();
    }
    Ok(())
}

/// Makes one run in real time, stored below the directory of the experiment; returns its figures and flags.
fn in_real_time(
    experiment: &SpecExperiment,
    directory: &Path,
    run: FactorsRun,
    stop: &FactorsStopSignal,
) -> Result<(ResponseFigures, Vec<String>)> {
    let name = format!("{}-{}", run.row + 1, run.replicate + 1);
    let root = directory.join("runs");
    let programs = &experiment.laid_out.subject.programs;
    if !programs.is_empty() {
        let text = experiment.text_of(run.row)?;
        let figures = program_runs::run(&text, programs, &root, &name, stop)?;
        return Ok((figures, Vec::new()));
    }
    let plan = plan_single_run(&experiment.plans[run.row], run.seed);
    let place = RunPlace {
        root: &root,
        access: RunFileAccess::new(directory),
        name: &name,
    };
    let (_, records) = carry_out(&plan, place, stop, false)?;
    Ok(figures(&plan, &records))
}

/// Where a run is stored, under which name and with which file access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPlace<'p> {
    pub(crate) root: &'p Path,
    pub(crate) access: RunFileAccess,
    pub(crate) name: &'p str,
}

/// Makes the runs of a plan in a new run directory; returns its path and the records.
pub(crate) fn carry_out(
    plan: &Plan,
    place: RunPlace<'_>,
    stop: &FactorsStopSignal,
    trace: bool,
) -> Result<(PathBuf, Vec<RunRecord>)> {
    let directory = RunDirectory::create(place.root, place.name, SystemTime::now(), place.access)?;
    let path = directory.path().to_path_buf();
    // The world ends its run when this flag is set; the user's signal is copied to it.
    let made = |ended: &Arc<AtomicBool>| {
        let options = UnattendedOptions {
            trace,
            capture: Vec::new(),
            ended,
            signalled: &stop.signalled,
            warn: stop.warn,
        };
        unattended_runs::make_unattended_runs(plan, directory, options)
    };
    Ok((path, stop.while_nobody_asks(made)?))
}

fn scratch_directory() -> Result<ScratchDirectory> {
    scratch::create_directory("factors")
        .map_err(|error| Error::environment(format!("cannot create a scratch directory: {error}")))
}

/// Measures how long one run takes with all factors at their first level.
///
/// # Errors
/// If the run fails.
pub fn time_one_run(experiment: &SpecExperiment, stop: &FactorsStopSignal) -> Result<Duration> {
    let begun = Instant::now();
    let subject = &experiment.laid_out.subject;
    if !subject.programs.is_empty() {
        let (scratch, text) = (scratch_directory()?, experiment.source_text());
        program_runs::run(text, &subject.programs, scratch.path(), "one", stop)?;
        return Ok(begun.elapsed());
    }
    let base = &experiment.laid_out.base;
    let plan = plan_single_run(base, base.seed);
    if experiment.world() == World::Simulated {
        simulated(&plan, stop)?;
    } else {
        let scratch = scratch_directory()?;
        let place = RunPlace {
            root: scratch.path(),
            access: RunFileAccess::Private,
            name: "one",
        };
        carry_out(&plan, place, stop, false)?;
    }
    Ok(begun.elapsed())
}
