//! `stackline factors`: a designed experiment that varies a specification.

use crate::checked_plan::{Specification as _, mistakes_shown, overrides, source_of};
use crate::exit::{Blame, Error, Exit, Result, already_shown};
use crate::flags::{FactorExperiment, Factors as FactorsFlags};
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use stackline_factors::Wish;
use stackline_report::factors::FactorOutcome;
use stackline_runner::spec_source::SpecSource;
use stackline_spec::Factor;
use stackline_whatif::experiment::{MOST_COMBINATIONS, Prices, RunBudget, parse_prices};
use stackline_whatif::specification::experiment_runs::{
    ExperimentProgress, FactorsProgress, FactorsStopSignal, RunOrder, make_experiment_runs,
    time_one_run,
};
use stackline_whatif::specification::subject::{SpecExperiment, SpecSubject};
use stackline_whatif::specification::{ExperimentExtent, ExperimentQuestions, outcome};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Least runs of each combination, where the specification has fewer: (live and emulated, simulated).
const RUNS: (u32, u32) = (2, 5);

/// Carries out the experiment and prints the effects.
pub(crate) fn factors(flags: &FactorsFlags) -> Result {
    let subject = subject(flags)?;
    let factors = parse_factors(&flags.factors, &subject.source)?;
    // Checked first, so that mistakes and warnings are printed with their places.
    match subject.programs.is_empty() {
        true => drop(subject.source.work(&flags.text)?),
        false => drop(subject.source.declarations(&flags.text)?),
    }
    let mut experiment = SpecExperiment::new(subject, factors)?;
    let prices = prices(&flags.experiment, &experiment.laid_out.factors)?;
    let stop = FactorsStopSignal {
        signalled: Arc::new(AtomicBool::new(false)),
        warn: |words| output::say(&words),
    };
    let begun = Instant::now();
    if let Some(number) = flags.combination {
        experiment.lay_out(wish(flags))?;
        return output::print_for_programs(&experiment.text(number)?).map(|()| Exit::Done);
    }
    listen_for_ctrl_c([&stop.signalled])?;
    let (replicates, note) = lay_out(flags, &mut experiment, &stop)?;
    experiment.check_all()?;
    if experiment.has_until() {
        output::say(&"note: `until` is ignored in favour of the number of replicates");
    }
    if flags.centre > 0 {
        experiment.look_at_centre()?;
    }
    let order = RunOrder::new(&experiment, replicates, flags.centre);
    let access = flags.sharing.access();
    let mut kept = FactorsProgress::open(flags.resume.as_deref(), access, &experiment, &order)?;
    make_experiment_runs(&experiment, &order, &mut kept, &stop, &Bar::new())?;
    let took_s = begun.elapsed().as_secs_f64();
    if stop.is_asked() {
        output::say(&format_args!(
            "interrupted: {} of {} runs done\nhint: repeat the command with `--resume {}` to complete the rest",
            kept.done.len(),
            order.runs.len(),
            kept.directory.display()
        ));
        return Err(already_shown(Blame::Interrupted));
    }
    let questions = ExperimentQuestions {
        responses: flags.responses.clone(),
        scale: flags.experiment.model,
        limits: !flags.no_limits,
        prices,
        spend: flags.experiment.spend,
    };
    let extent = ExperimentExtent { replicates, took_s };
    let notes = note.into_iter().collect();
    let outcome = outcome(&experiment, &kept, &questions, extent, &stop, notes)?;
    let json = stackline_report::factors::factors_json(&outcome);
    if let Some(directory) = &flags.experiment.pictures {
        draw(&outcome, directory)?;
    }
    kept.keep("answer.json", &json)?;
    show(&outcome, flags.text.json)
}

/// What is varied: the specification, or programs on a network. Its mistakes are printed with their places.
fn subject(flags: &FactorsFlags) -> Result<SpecSubject> {
    let source = match &flags.on {
        Some(network) => SpecSource::read(network)?,
        None if flags.words.is_empty() => source_of(&flags.text)?,
        None => {
            let message = "the programs need a network to run on";
            return Err(Error::input(message)
                .hint("specify one, as in `stackline factors --on wan.stackline -f 'delay x 0.1' a -- curl ...`"));
        }
    };
    Ok(SpecSubject {
        source,
        overrides: overrides(&flags.text)?,
        line: flags.line,
        programs: flags.programs(),
    })
}

fn wish(flags: &FactorsFlags) -> Wish {
    let wish = flags.experiment.design;
    wish.unwrap_or(Wish::Best(MOST_COMBINATIONS))
}

/// Chooses the combinations, as requested or as many as fit into the time budget. Returns how often each is run, and a
/// note of what was given up.
fn lay_out(
    flags: &FactorsFlags,
    experiment: &mut SpecExperiment,
    stop: &FactorsStopSignal,
) -> Result<(u32, Option<String>)> {
    let least = experiment.least_runs(RUNS.0, RUNS.1);
    let replicates = flags
        .replicates
        .unwrap_or_else(|| experiment.runs_written().max(least));
    let Some(within) = flags.experiment.budget else {
        experiment.lay_out(wish(flags))?;
        return Ok((replicates, None));
    };
    let budget = RunBudget {
        within,
        each: time_one_run(experiment, stop)?,
        at_once: experiment.at_once(),
    };
    let (runs, factors) = (budget.runs(), experiment.laid_out.factors.len());
    let fits = (runs / replicates.min(RUNS.0) as usize).max(factors + 1);
    experiment.lay_out(Wish::Best(fits.min(MOST_COMBINATIONS)))?;
    let design = &experiment.laid_out.design;
    let replicates = u32::try_from(runs / design.rows.len())
        .unwrap_or(u32::MAX)
        .clamp(1, 100);
    Ok((replicates, Some(budget.given_up(design, replicates))))
}

/// The factors of the specification, followed by those of the flags.
pub(crate) fn parse_factors(flags: &[String], source: &SpecSource) -> Result<Vec<Factor>> {
    stackline_whatif::experiment::parse_factors(flags, &source.text, &mut |text, mistakes| {
        mistakes_shown(mistakes, "--factor", text)
    })
}

/// The costs of levels, where they are given.
pub(crate) fn prices(flags: &FactorExperiment, factors: &[Factor]) -> Result<Option<Prices>> {
    let cost = flags.cost.as_deref();
    cost.map(|cost| parse_prices(cost, flags.spend, factors))
        .transpose()
}

/// Prints the results of an experiment.
pub(crate) fn show(outcome: &FactorOutcome, json: bool) -> Result {
    match json {
        true => output::json(&stackline_report::factors::factors_json(outcome), false)?,
        false => output::print(&stackline_report::factors::factors(outcome))?,
    }
    Ok(Exit::Done)
}

/// Writes the pictures of an experiment, and a page with them.
pub(crate) fn draw(outcome: &FactorOutcome, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|error| output::unwritten(directory.display(), &error))?;
    let keep = |name: String, bytes: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).map_err(|error| output::unwritten(path.display(), &error))
    };
    for picture in stackline_report::factors::pictures(outcome) {
        keep(format!("{}.svg", picture.name), picture.svg.as_bytes())?;
        let png = picture.png().map_err(Error::measurement)?;
        keep(format!("{}.png", picture.name), &png)?;
    }
    let page = stackline_report::factors::factors_page(outcome);
    keep("index.html".into(), page.as_bytes())
}

/// The progress bar of the runs; it draws itself on a terminal only.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {pos}/{len} runs, about {eta} left")
        {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl ExperimentProgress for Bar {
    fn begin(&self, runs: usize) {
        self.0.set_length(runs as u64);
        self.0.reset_eta();
    }

    fn advance(&self) {
        self.0.inc(1);
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}
