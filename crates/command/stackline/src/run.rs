//! `stackline run`: checks a specification, starts agents, makes the runs, stores them and shows the results.

use crate::checked_plan::{SpecSource, Specification as _, is_over_all, overrides, source_of};
use crate::clean;
use crate::closed_run::{ClosedRun, RunFindings};
use crate::exit::{Blame, Error, Result, already_shown};
use crate::flags;
use crate::flags::Seeds;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use crate::progress::Bar;
use crate::show::{note_of_order, present};
use crate::verdicts::{GateBase, RunVerdicts};
use stackline_analyze::all_runs_equal;
use stackline_analyze::time_series::interval_table::interval_tables;
use stackline_core::plan::{Plan, World, describe_swept_values};
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::RunOrder;
use stackline_live::launch::Launcher;
use stackline_report::{Note, ReportHeader, Weight, interval_lines};
use stackline_runner::{
    AfterFailure, RunContext, RunWriter, RunsBefore, Traces, make_runs, make_runs_of_seeds,
};
use stackline_runs::run_index::index_ended_run;
use stackline_runs::{RunDirectory, RunInputs, runs_root};
use stackline_whatif::traced_answers::diagnose_traced;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// Makes the runs of a specification.
pub(crate) fn run(flags: &flags::RunFlags) -> Result {
    run_specification(flags, &source_of(&flags.text)?, &mut None)
}

/// What ends the runs of a command early.
pub(crate) struct RunSignals {
    /// Worlds may raise it themselves to end a run.
    interrupted: Arc<AtomicBool>,
    /// Only a signal raises it.
    signalled: Arc<AtomicBool>,
}

impl RunSignals {
    /// Listens for signals. It begins before the run's directory is created or changed: from then on a signal ends the runs
    /// properly, instead of killing the program.
    pub(crate) fn listen() -> Result<Self> {
        let [interrupted, signalled] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        listen_for_ctrl_c([&interrupted, &signalled])?;
        Ok(Self {
            interrupted,
            signalled,
        })
    }
}

/// Runs that are to be made, and how they are judged.
pub(crate) struct RunMaking<'m> {
    pub(crate) flags: &'m flags::RunFlags,
    pub(crate) plan: &'m Plan,
    /// The name of the specification.
    pub(crate) name: String,
    /// What they are judged by.
    pub(crate) base: Option<GateBase>,
    /// What is known beforehand.
    pub(crate) notes: Vec<Note>,
    pub(crate) signals: RunSignals,
    /// What an earlier process made of them.
    pub(crate) before: Option<RunsBefore>,
}

/// Makes the runs of a specification that was read already. `kept` becomes the path of their directory.
pub(crate) fn run_specification(
    flags: &flags::RunFlags,
    source: &SpecSource,
    kept: &mut Option<PathBuf>,
) -> Result {
    let (mut plan, assumed) = source.work(&flags.text)?;
    ask_for_intervals(flags, &mut plan);
    only_simulated(flags, &plan)?;
    traced_once(flags)?;
    let base = GateBase::find(flags.against.as_deref(), &flags.rule, &flags.scope)?;
    if flags.trace {
        // Diagnosis needs the memory that sorting events returns to the system.
        stackline_live::keep_large_blocks_apart();
    }
    let signals = RunSignals::listen()?;
    let directory = open(flags, source, &plan)?;
    *kept = Some(directory.path().to_owned());
    let assumed = assumed.into_iter();
    let making = RunMaking {
        flags,
        plan: &plan,
        name: source.name.clone(),
        base,
        notes: assumed
            .map(|text| Note::new(Weight::Always, text))
            .collect(),
        signals,
        before: None,
    };
    make_and_show(making, directory)
}

/// Makes the runs, which are kept in the directory, and shows their results.
pub(crate) fn make_and_show(mut making: RunMaking<'_>, directory: RunDirectory) -> Result {
    let RunMaking {
        flags,
        plan,
        ref signals,
        ..
    } = making;
    let seeds = flags.seeds.as_ref().map_or(1, |Seeds(seeds)| {
        (seeds.end() - seeds.start()).saturating_add(1)
    });
    let mut writer = RunWriter::new(
        plan,
        directory,
        Box::new(Bar::new(plan, seeds)),
        stackline_analyze::interval_reached,
    );
    let is_new = making.before.is_none();
    if let Some(before) = making.before.take() {
        writer = writer.going_on(before);
    }
    let (failed, mut known) = carry_out(
        flags,
        plan,
        &signals.interrupted,
        &signals.signalled,
        &mut writer,
    );
    if failed.is_some() || !known.given_up.is_empty() {
        // A killed agent leaves its settings in the kernel.
        clean::sweep();
    }
    // If the plan was refused before any run, there is nothing to keep.
    let of_sweep = known.given_up.first().filter(|_| !is_over_all(&flags.text));
    let first = failed.as_ref().or(of_sweep);
    let refused = first.filter(|fault| matches!(fault.blame, Blame::Input | Blame::Environment));
    if let Some(fault) = refused.filter(|_| is_new && writer.is_empty()) {
        let fault = fault.clone();
        writer.remove();
        return Err(fault);
    }
    known.notes.splice(0..0, std::mem::take(&mut making.notes));
    finish(writer, failed, known, &making)
}

/// Closes the run's directory, shows the results and then diagnoses a traced run. Returns the error of the runs, if
/// there was one.
fn finish(
    writer: RunWriter<'_>,
    failed: Option<Error>,
    known: RunFindings,
    making: &RunMaking<'_>,
) -> Result {
    let RunMaking {
        flags,
        plan,
        signals,
        ..
    } = making;
    let ClosedRun {
        header,
        records,
        failed,
        unkept,
    } = ClosedRun::new(plan, writer, failed, &known);
    let RunFindings {
        mut notes,
        given_up,
        ..
    } = known;
    let has_failed = failed.is_some() || !given_up.is_empty();
    notes.extend(notes_of_records(flags, &header, has_failed, &records));
    // Diagnosis may take long, or need too much memory, so it follows the results.
    let verdict = show(making, &records, &header, || {
        if !records.is_empty() {
            notes.extend(diagnosed(flags, plan, &header.run, &signals.signalled));
        }
        notes
    })?;
    // The results were shown, and a signal prevented the diagnosis.
    let undiagnosed = || {
        (flags.trace && signals.signalled.load(Ordering::Relaxed))
            .then(|| already_shown(Blame::Interrupted))
    };
    // The rows that are missing were named below the results. Of all stacks there are, some may fail.
    let in_part = || {
        (!given_up.is_empty() && !is_over_all(&flags.text))
            .then(|| already_shown(Blame::Measurement))
    };
    failed
        .or(unkept)
        .or_else(undiagnosed)
        .or_else(in_part)
        .map_or(Ok(verdict), Err)
}

/// Notes about the records: that some are missing, or that all are equal.
fn notes_of_records(
    flags: &flags::RunFlags,
    header: &ReportHeader,
    has_failed: bool,
    records: &[RunRecord],
) -> Vec<Note> {
    let mut notes = Vec::new();
    let incomplete = match has_failed {
        true if records.is_empty() => "no run was completed",
        true => "only the runs above were completed",
        false => "some of the runs above could not be kept",
    };
    if !header.complete {
        let how = how_to_go_on(flags, header);
        let text = format!("INCOMPLETE: {incomplete}{how}");
        notes.push(Note::new(Weight::Always, text));
    }
    if flags.seeds.is_some() && header.complete && all_runs_equal(records) {
        let text =
            "all runs gave equal results: the measurement is deterministic, so one run is enough";
        notes.push(Note::new(Weight::Always, text));
    }
    notes
}

/// How what is missing of a run is made; empty where nobody can go on with it.
fn how_to_go_on(flags: &flags::RunFlags, header: &ReportHeader) -> String {
    let name = Path::new(&header.run).file_name();
    match name.filter(|_| !flags.trace) {
        None => String::new(),
        Some(name) => format!(
            "; `stackline run --resume {}` makes what is missing",
            name.to_string_lossy()
        ),
    }
}

/// Diagnoses a traced run and stores the findings in its directory. Returns the first finding as a note. Errors are
/// printed, and an interruption ends it at once.
pub(crate) fn diagnosed(
    flags: &flags::RunFlags,
    plan: &Plan,
    run: &str,
    signalled: &AtomicBool,
) -> Vec<Note> {
    if !flags.trace {
        return Vec::new();
    }
    // After an interruption no diagnosis is begun.
    let diagnosing = (!signalled.load(Ordering::Relaxed)).then(|| {
        let path = PathBuf::from(run);
        thread::spawn(move || diagnose_traced(&path))
    });
    while diagnosing
        .as_ref()
        .is_some_and(|thread| !thread.is_finished())
        && !signalled.load(Ordering::Relaxed)
    {
        thread::sleep(Duration::from_millis(10));
    }
    let Some(diagnosing) = diagnosing.filter(|thread| thread.is_finished()) else {
        let text = format!("interrupted before the diagnosis; run `stackline diagnose {run}`");
        return vec![Note::new(Weight::Always, text)];
    };
    let findings = diagnosing
        .join()
        .unwrap_or_else(|panic| resume_unwind(panic));
    match findings {
        Ok(answers) => {
            let first = stackline_report::first_finding(plan, &answers.findings)
                .map(|text| Note::new(Weight::Finding, text));
            first
                .into_iter()
                .chain(answers.note.map(|text| Note::new(Weight::Always, text)))
                .collect()
        }
        Err(error) => {
            output::say(&error);
            Vec::new()
        }
    }
}

/// Refuses `--trace` with flags that make each run several times: events are kept of one only.
fn traced_once(flags: &flags::RunFlags) -> Result<()> {
    let what = match (flags.trace, &flags.seeds, flags.check_determinism) {
        (true, Some(Seeds(seeds)), _) => {
            let message =
                "--seeds runs many seeds in parallel and keeps no events, but --trace needs them";
            Error::input(message).hint(format!(
                "`--seed {} --trace` traces the runs of one seed",
                seeds.start()
            ))
        }
        (true, None, true) => {
            let message = "--check-determinism performs every run twice, but --trace keeps the events of each run only once";
            Error::input(message).hint("omit one of them")
        }
        _ => return Ok(()),
    };
    Err(what)
}

/// Refuses flags that only the simulated world supports, and captures without a network.
fn only_simulated(flags: &flags::RunFlags, plan: &Plan) -> Result<()> {
    let other = plan
        .measurements
        .iter()
        .find(|measurement| measurement.world != World::Simulated);
    let asked = [
        (flags.seeds.is_some(), "--seeds"),
        (flags.check_determinism, "--check-determinism"),
    ];
    if let (Some(measurement), Some((_, flag))) = (other, asked.iter().find(|(asked, _)| *asked)) {
        let what = format!(
            "line {}: {flag} requires the simulated world, but this measurement is {}",
            measurement.line, measurement.world
        );
        return Err(Error::input(what).hint("add --in simulated"));
    }
    let until = plan
        .measurements
        .iter()
        .find(|measurement| measurement.until.is_some());
    if let (Some(measurement), Some(_)) = (until, &flags.seeds) {
        let what = format!(
            "line {}: `until` and --seeds both set the number of runs",
            measurement.line
        );
        return Err(Error::input(what).hint("omit one of them"));
    }
    let without = plan
        .measurements
        .iter()
        .find(|measurement| measurement.across.is_none());
    if let (Some(measurement), true) = (without, !flags.capture.is_empty()) {
        let (line, world) = (measurement.line, measurement.world);
        let what = format!("line {line}: the {world} world has no modelled network to capture");
        return Err(Error::input(what).hint("use `--in simulated` or `--in emulated`"));
    }
    Ok(())
}

pub(crate) fn open(
    flags: &flags::RunFlags,
    source: &SpecSource,
    plan: &Plan,
) -> Result<RunDirectory> {
    let name = flags.name.clone().unwrap_or_else(|| source.stem());
    let mut directory = RunDirectory::create(
        &runs_root(),
        &name,
        SystemTime::now(),
        flags.sharing.access(),
    )?;
    directory.write_specification(&source.own_text())?;
    directory.write_inputs(&inputs(flags, source, plan)?)?;
    directory.write_plan(plan)?;
    Ok(directory)
}

/// What the specification is given beside its text.
fn inputs(flags: &flags::RunFlags, source: &SpecSource, plan: &Plan) -> Result<RunInputs> {
    let text = &flags.text;
    Ok(RunInputs {
        over: text.over.clone(),
        world: text.world,
        hosts: text.hosts.clone(),
        seed: text.seed,
        cpu: text.cpu.clone(),
        seeds: flags
            .seeds
            .as_ref()
            .map(|Seeds(seeds)| (*seeds.start(), *seeds.end())),
        order: Some(order_of(flags, plan)).filter(|order| order.mixes(plan)),
        check_determinism: flags.check_determinism,
        trace: flags.trace,
        interval_ns: interval(flags).map(|every| every.0),
        capture: flags.capture.clone(),
        files: source.named_files(&overrides(text)?),
    })
}

/// Has every measurement keep sums of intervals, if the flags ask for them.
pub(crate) fn ask_for_intervals(flags: &flags::RunFlags, plan: &mut Plan) {
    let every = interval(flags);
    let measurements = plan.measurements.iter_mut();
    measurements.for_each(|measurement| measurement.interval = every);
}

fn interval(flags: &flags::RunFlags) -> Option<stackline_core::time::Duration> {
    let seconds = flags.interval?.as_secs_f64();
    Some(stackline_core::time::Duration::from_seconds(seconds))
}

/// The order in which the runs are made. With many seeds it is that of the text.
fn order_of(flags: &flags::RunFlags, plan: &Plan) -> RunOrder {
    match flags.seeds {
        Some(_) => RunOrder::Declared,
        None => flags.order.unwrap_or_else(|| RunOrder::usual(plan)),
    }
}

/// Makes all runs. Returns the error, if there was one, and what is known.
pub(crate) fn carry_out(
    flags: &flags::RunFlags,
    plan: &Plan,
    interrupted: &Arc<AtomicBool>,
    signalled: &Arc<AtomicBool>,
    writer: &mut RunWriter<'_>,
) -> (Option<Error>, RunFindings) {
    if let Some(Seeds(seeds)) = &flags.seeds {
        let note = format!(
            "separate runs for each seed from {} to {}",
            seeds.start(),
            seeds.end()
        );
        let failed = make_runs_of_seeds(plan, seeds.clone(), interrupted, writer).err();
        return (
            failed,
            RunFindings {
                notes: vec![Note::new(Weight::Always, note)],
                ..RunFindings::default()
            },
        );
    }
    let outcome = match context(flags, plan, interrupted, signalled, writer.path()) {
        Ok(context) => make_runs(&context, writer),
        Err(fault) => return (Some(fault), RunFindings::default()),
    };
    let mut notes: Vec<Note> = note_of_order(order_of(flags, plan), plan)
        .into_iter()
        .collect();
    let cost = outcome
        .tracing_cost
        .map(|text| Note::new(Weight::Detail, text));
    notes.extend(cost);
    notes.extend(
        outcome
            .notes
            .into_iter()
            .map(|text| Note::new(Weight::Always, text)),
    );
    let given_up = outcome.given_up.iter();
    notes.extend(given_up.map(|(index, error)| note_of_failure(plan, *index, error)));
    let given_up: Vec<Error> = outcome
        .given_up
        .into_iter()
        .map(|(_, error)| error)
        .collect();
    if let Some((runs, digest)) = outcome
        .digest
        .filter(|_| flags.check_determinism && outcome.failed.is_none())
    {
        let which = if runs == 1 {
            "1 run was".to_owned()
        } else {
            format!("{runs} runs were")
        };
        let text = format!("{which} performed twice with equal results: digest {digest:016x}");
        notes.push(Note::new(Weight::Always, text));
    }
    (
        outcome.failed,
        RunFindings {
            wake_up: outcome.wake_up,
            given_up,
            notes,
        },
    )
}

/// Says which row of a sweep is missing, and why.
fn note_of_failure(plan: &Plan, index: usize, error: &Error) -> Note {
    let measurement = plan.measurements.get(index);
    let swept = measurement.map_or_else(String::new, |measurement| {
        describe_swept_values(&measurement.variables, &measurement.variable_units)
    });
    let colon = if swept.is_empty() { "" } else { ": " };
    let hint = error.hint.as_ref();
    let hint = hint.map_or(String::new(), |hint| format!(" (hint: {hint})"));
    let text = format!("failed: {swept}{colon}{}{hint}", error.message);
    Note::new(Weight::Always, text)
}

pub(crate) fn context<'p>(
    flags: &flags::RunFlags,
    plan: &'p Plan,
    interrupted: &'p Arc<AtomicBool>,
    signalled: &'p Arc<AtomicBool>,
    directory: &Path,
) -> std::result::Result<RunContext<'p>, Error> {
    let program = std::env::current_exe()
        .map_err(|e| Error::environment(format!("cannot find the path of this program: {e}")))?;
    Ok(RunContext {
        plan,
        launcher: Launcher {
            say: |text| output::say(&text),
            ..Launcher::new(program, flags.files.clone())
        },
        interrupted,
        signalled,
        traces: Traces {
            directory: directory.to_path_buf(),
            trace: flags.trace,
            capture: flags.capture.clone(),
        },
        after_failure: if is_over_all(&flags.text) {
            AfterFailure::GoOn
        } else {
            AfterFailure::GoOnInSweep
        },
        order: order_of(flags, plan),
        twice: flags.check_determinism,
    })
}

/// Shows the results, then the verdicts on them, and writes their reports. Returns the exit code of the verdicts.
fn show(
    making: &RunMaking<'_>,
    records: &[RunRecord],
    header: &ReportHeader,
    notes: impl FnOnce() -> Vec<Note>,
) -> Result {
    let RunMaking {
        flags, plan, base, ..
    } = making;
    let mut summaries = stackline_analyze::summarise(plan, records);
    // A measurement that was not begun has no result.
    summaries.retain(|summary| header.complete || summary.runs > 0);
    // A run without a single record has nothing that could be judged by a baseline.
    let base = base.as_ref().filter(|_| !records.is_empty());
    let judged = || RunVerdicts::judge(plan, &summaries, Path::new(&header.run), base);
    let verdicts = if flags.text.json {
        let verdicts = judged()?;
        let mut json = stackline_report::json(header, &summaries, &flags.shown.percentiles);
        verdicts.add_to(&mut json);
        if flags.interval.is_some() {
            let tables = serde_json::to_value(interval_tables(plan, records));
            json["intervals"] = tables.map_err(|error| Error::measurement(error.to_string()))?;
        }
        output::json(&json, false)?;
        // The notes are not printed, but making them stores the findings in the run's directory.
        notes();
        verdicts
    } else {
        if !flags.shown.csv {
            output::print(&interval_lines(&interval_tables(plan, records)))?;
        }
        present(&flags.shown, header, &summaries, notes)?;
        let verdicts = judged()?;
        verdicts.print(flags.shown.csv)?;
        verdicts
    };
    let file = flags.text.spec.as_deref();
    let file = file.filter(|file| *file != Path::new("-"));
    verdicts.report(&flags.reports, &making.name, file, plan)?;
    let figure = stackline_report::headline_of(&summaries);
    index_ended_run(Path::new(&header.run), figure);
    Ok(verdicts.exit())
}
