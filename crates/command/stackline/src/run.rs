//! `stackline run`: checks a specification, starts agents, makes the runs, stores them and shows the results.

use crate::checked_plan::{SpecSource, Specification as _, is_over_all, overrides, source_of};
use crate::clean;
use crate::exit::{Blame, Error, Exit, Result, already_shown};
use crate::flags;
use crate::flags::Seeds;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use crate::progress::Bar;
use crate::show::present;
use crate::verdicts::{GateBase, RunVerdicts};
use stackline_analyze::all_runs_equal;
use stackline_analyze::time_series::interval_table::interval_tables;
use stackline_core::plan::{Plan, World};
use stackline_core::run_record::{RunRecord, WakeUp};
use stackline_live::launch::Launcher;
use stackline_report::{Note, ReportHeader, Weight, interval_lines};
use stackline_runner::{RunContext, RunWriter, Traces, make_runs, make_runs_of_seeds};
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
    // Installed before the directory is created: from then on a signal ends the runs properly, instead of killing the
    // program.
    let interrupted = Arc::new(AtomicBool::new(false));
    // Worlds may raise the first flag themselves to end a run; only a signal raises the second.
    let signalled = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted, &signalled])?;
    let directory = open(flags, source, &plan)?;
    *kept = Some(directory.path().to_owned());
    let seeds = flags.seeds.as_ref().map_or(1, |Seeds(seeds)| {
        (seeds.end() - seeds.start()).saturating_add(1)
    });
    let mut writer = RunWriter::new(
        &plan,
        directory,
        Box::new(Bar::new(&plan, seeds)),
        stackline_analyze::interval_reached,
    );
    let (failed, mut known) = carry_out(flags, &plan, &interrupted, &signalled, &mut writer);
    if failed.is_some() || !known.given_up.is_empty() {
        // A killed agent leaves its settings in the kernel.
        clean::sweep();
    }
    // If the plan was refused before any run, there is nothing to keep.
    let refused = |fault: &Error| matches!(fault.blame, Blame::Input | Blame::Environment);
    if writer.is_empty() && failed.as_ref().is_some_and(refused) {
        writer.remove();
        return failed.map_or(Ok(Exit::Done), Err);
    }
    let assumed = assumed.into_iter();
    known
        .notes
        .splice(0..0, assumed.map(|text| Note::new(Weight::Always, text)));
    let judging = RunJudging {
        base,
        name: source.name.clone(),
    };
    finish(flags, &plan, writer, (failed, known), &judging, &signalled)
}

/// What is needed to judge a run after it was made.
struct RunJudging {
    base: Option<GateBase>,
    /// The name of the specification.
    name: String,
}

/// Closes the run's directory, shows the results and then diagnoses a traced run. Returns the error of the runs, if
/// there was one.
fn finish(
    flags: &flags::RunFlags,
    plan: &Plan,
    writer: RunWriter<'_>,
    outcome: (Option<Error>, RunFindings),
    judging: &RunJudging,
    signalled: &AtomicBool,
) -> Result {
    let (failed, known) = outcome;
    let path = writer.path().display().to_string();
    let failures = known.given_up.iter().chain(&failed);
    let reasons: Vec<&str> = failures.map(|fault| fault.message.as_str()).collect();
    let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    // Nothing at all was measured: then the first failure is that of the whole.
    let first = known.given_up.first().cloned();
    let failed = failed.or(first.filter(|_| writer.is_empty()));
    let (records, unkept) = writer.finish(reason.is_none(), reason.as_deref());
    let header = ReportHeader {
        stackline: env!("CARGO_PKG_VERSION").into(),
        run: path,
        seed: plan.seed,
        world: plan
            .measurements
            .first()
            .map_or(World::Live, |measurement| measurement.world),
        wake_up: known.wake_up,
        complete: reason.is_none() && unkept.is_none(),
        running: false,
        reason: reason.or(unkept.as_ref().map(|error| error.message.clone())),
    };
    let mut notes = known.notes;
    let has_failed = failed.is_some() || !known.given_up.is_empty();
    notes.extend(notes_of_records(flags, &header, has_failed, &records));
    // Diagnosis may take long, or need too much memory, so it follows the results.
    let verdict = show(flags, plan, &records, (&header, judging), || {
        if !records.is_empty() {
            notes.extend(diagnosed(flags, plan, &header.run, signalled));
        }
        notes
    })?;
    // The results were shown, and a signal prevented the diagnosis.
    let undiagnosed = || {
        (flags.trace && signalled.load(Ordering::Relaxed))
            .then(|| already_shown(Blame::Interrupted))
    };
    failed
        .or(unkept.map(Error::from))
        .or_else(undiagnosed)
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
        notes.push(Note::new(
            Weight::Always,
            format!("INCOMPLETE: {incomplete}"),
        ));
    }
    if flags.seeds.is_some() && header.complete && all_runs_equal(records) {
        let text =
            "all runs gave equal results: the measurement is deterministic, so one run is enough";
        notes.push(Note::new(Weight::Always, text));
    }
    notes
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
    directory.write_inputs(&inputs(flags, source)?)?;
    directory.write_plan(plan)?;
    Ok(directory)
}

/// What the specification is given beside its text.
fn inputs(flags: &flags::RunFlags, source: &SpecSource) -> Result<RunInputs> {
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
        trace: flags.trace,
        interval_ns: interval(flags).map(|every| every.0),
        capture: flags.capture.clone(),
        files: source.named_files(&overrides(text)?),
    })
}

/// Has every measurement keep sums of intervals, if the flags ask for them.
fn ask_for_intervals(flags: &flags::RunFlags, plan: &mut Plan) {
    let every = interval(flags);
    let measurements = plan.measurements.iter_mut();
    measurements.for_each(|measurement| measurement.interval = every);
}

fn interval(flags: &flags::RunFlags) -> Option<stackline_core::time::Duration> {
    let seconds = flags.interval?.as_secs_f64();
    Some(stackline_core::time::Duration::from_seconds(seconds))
}

/// What is known besides the records.
#[derive(Default)]
pub(crate) struct RunFindings {
    /// The cost of waking a thread, if it was measured.
    pub(crate) wake_up: Option<WakeUp>,
    /// Why measurements were given up, in the order of the plan.
    pub(crate) given_up: Vec<Error>,
    pub(crate) notes: Vec<Note>,
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
    let mut notes: Vec<Note> = outcome
        .tracing_cost
        .map(|text| Note::new(Weight::Detail, text))
        .into_iter()
        .collect();
    notes.extend(
        outcome
            .notes
            .into_iter()
            .map(|text| Note::new(Weight::Always, text)),
    );
    let given_up: Vec<Error> = outcome
        .given_up
        .into_iter()
        .map(|(_, error)| error)
        .collect();
    notes.extend(given_up.iter().map(|error| {
        let hint = error.hint.as_ref();
        let hint = hint.map_or(String::new(), |hint| format!(" (hint: {hint})"));
        Note::new(Weight::Always, format!("failed: {}{hint}", error.message))
    }));
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
        keeps_going: is_over_all(&flags.text),
        twice: flags.check_determinism,
    })
}

/// Shows the results, then the verdicts on them, and writes their reports. Returns the exit code of the verdicts.
fn show(
    flags: &flags::RunFlags,
    plan: &Plan,
    records: &[RunRecord],
    run: (&ReportHeader, &RunJudging),
    notes: impl FnOnce() -> Vec<Note>,
) -> Result {
    let (header, judging) = run;
    let mut summaries = stackline_analyze::summarise(plan, records);
    // A measurement that was not begun has no result.
    summaries.retain(|summary| header.complete || summary.runs > 0);
    // A run without a single record has nothing that could be judged by a baseline.
    let base = judging.base.as_ref().filter(|_| !records.is_empty());
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
    verdicts.report(&flags.reports, &judging.name, file)?;
    Ok(verdicts.exit())
}
