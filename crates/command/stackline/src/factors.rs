//! `stackline factors`: a designed experiment over a specification. Each combination of levels is a specification of its own, checked
//! and run as any; what the responses say is `stackline_factors`'s.

mod budget;
mod experiment;
mod experiment_runs;
mod infinite_factor;
mod level_conflicts;
mod prices;
mod program_runs;
mod response_figures;

use crate::exit::{Blame, Error, Exit, Result, already_shown};
use crate::flags::{Factors as Flags, ResponseFlag};
use crate::output;
use crate::run::listen_for_ctrl_c;
use crate::spec_source::SpecSource;
pub(crate) use budget::RunBudget;
use experiment::SpecExperiment;
use experiment_runs::{FactorsProgress, FactorsStopSignal, Order};
pub(crate) use level_conflicts::{are_apart, in_order, with_levels};
use stackline_factors::{
    Design, DesignKind, EffectScale, FactorObservation, Wish, analyse, purchase,
};
use stackline_report::factors::{FactorOutcome, FactorWords, ImprovementOffer, Response};
use std::path::Path;
use std::time::Instant;

/// Combinations where nothing else is asked for.
pub(crate) const MOST: usize = 64;
/// Runs of each where the specification has fewer, live and emulated, and simulated.
const RUNS: (u32, u32) = (2, 5);

/// A price for each level of each factor, where there is one.
pub(crate) type Prices = Vec<Vec<Option<f64>>>;

/// The main job.
pub(crate) fn factors(flags: &Flags) -> Result {
    let source = match &flags.on {
        Some(network) => SpecSource::read(network)?,
        None if flags.words.is_empty() => SpecSource::of(&flags.text)?,
        None => {
            let message = "programs need a network to run on";
            return Err(Error::input(message)
                .hint("name it, as in `stackline factors --on wan.stackline -f 'delay x 0.1' a -- curl ...`"));
        }
    };
    let factors = parse_factors(&flags.factors, &source)?;
    let levels: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
    let mut experiment = SpecExperiment::new(flags, source, factors)?;
    if let Some(cost) = &flags.experiment.cost {
        prices(cost, flags.experiment.spend, &experiment.factors)?;
    }
    let stop = FactorsStopSignal::default();
    let begun = Instant::now();
    let wish = flags.experiment.design.unwrap_or(Wish::Best(MOST));
    let mut replicates = flags
        .replicates
        .unwrap_or_else(|| experiment.runs_written().max(experiment.least_runs(RUNS)));
    let mut notes = Vec::new();
    if let Some(number) = flags.combination {
        experiment.lay_out(&levels, wish)?;
        return output::print_for_programs(&experiment.text(number)?).map(|()| Exit::Done);
    }
    listen_for_ctrl_c([&stop.signalled])?;
    match flags.experiment.budget {
        None => experiment.lay_out(&levels, wish)?,
        Some(within) => {
            let each = experiment_runs::one_run(&experiment, &stop)?;
            let budget = RunBudget {
                within,
                each,
                at_once: experiment.at_once(),
            };
            let runs = budget.runs();
            let fits = (runs / replicates.min(RUNS.0) as usize).max(levels.len() + 1);
            experiment.lay_out(&levels, Wish::Best(fits.min(MOST)))?;
            replicates = u32::try_from(runs / experiment.design.rows.len())
                .unwrap_or(u32::MAX)
                .clamp(1, 100);
            notes.push(budget.given_up(&experiment.design, replicates));
        }
    }
    experiment.check_all()?;
    if flags.centre > 0 {
        experiment.look_at_centre()?;
    }
    let order = Order::new(&experiment, replicates, flags.centre);
    let mut kept = FactorsProgress::open(
        (flags.resume.as_deref(), flags.sharing.access()),
        &experiment,
        &order,
    )?;
    experiment_runs::make_experiment_runs(&experiment, &order, &mut kept, &stop)?;
    let took_s = begun.elapsed().as_secs_f64();
    if stop.is_asked() {
        output::say(&format_args!(
            "interrupted: {} of {} runs are done\nhint: the same command with `--resume {}` makes the others",
            kept.done.len(),
            order.runs.len(),
            kept.directory.display()
        ));
        return Err(already_shown(Blame::Interrupted));
    }
    let outcome = answered(
        flags,
        &experiment,
        &kept,
        &mut notes,
        (replicates, took_s),
        &stop,
    )?;
    if let Some(directory) = &flags.experiment.pictures {
        draw(&outcome, directory)?;
    }
    kept.keep(
        "answer.json",
        &stackline_report::factors::factors_json(&outcome),
    )?;
    if flags.text.json {
        output::json(&stackline_report::factors::factors_json(&outcome), false)?;
    } else {
        output::print(&stackline_report::factors::factors(&outcome))?;
    }
    Ok(Exit::Done)
}

/// The factors of the text, then those of the flags.
pub(crate) fn parse_factors(
    flags: &[String],
    source: &SpecSource,
) -> Result<Vec<stackline_spec::Factor>> {
    // Mistakes of the text are reported when it is checked.
    let mut factors = stackline_spec::factors(source.named().1).unwrap_or_default();
    for text in flags {
        match stackline_spec::factor(text) {
            Ok(factor) => factors.push(factor),
            Err(mistakes) => {
                crate::diagnostics::print(&mistakes, ("--factor", text), None);
                return Err(already_shown(Blame::Input));
            }
        }
    }
    if factors.is_empty() {
        return Err(Error::input("there is no factor to vary")
            .hint("name some, as in `--factor 'bandwidth of a - b x 10' --factor 'receive_buffer = 64 KiB, 1 MiB'`"));
    }
    if let Some(twice) = (1..factors.len()).find(|at| {
        factors[..*at]
            .iter()
            .any(|one| one.name == factors[*at].name)
    }) {
        let name = &factors[twice].name;
        let mut given = flags
            .iter()
            .map(|text| text.trim())
            .filter(|text| text.starts_with(name.as_str()));
        let (first, again) = (given.next().unwrap_or(name), given.next().unwrap_or("x 10"));
        let levels = again
            .strip_prefix(name.as_str())
            .unwrap_or(again)
            .trim()
            .trim_start_matches('=')
            .trim();
        return Err(
            Error::input(format!("the factor `{name}` is given twice")).hint(format!(
                "give all its levels at once, `--factor '{first}, {levels}'`"
            )),
        );
    }
    Ok(factors)
}

/// What all runs say, response by response.
fn answered(
    flags: &Flags,
    experiment: &SpecExperiment,
    kept: &FactorsProgress,
    notes: &mut Vec<String>,
    (replicates, took_s): (u32, f64),
    stop: &FactorsStopSignal,
) -> Result<FactorOutcome> {
    let names = kept.responses();
    let main = experiment.main_response(&names);
    let mut order: Vec<ResponseFlag> = main.into_iter().collect();
    order.extend(names.iter().copied().filter(|name| Some(*name) != main));
    if !flags.responses.is_empty() {
        if let Some(missing) = flags
            .responses
            .iter()
            .find(|wanted| !names.contains(wanted))
        {
            let known: Vec<&str> = names
                .iter()
                .map(|name| response_figures::name(*name))
                .collect();
            let message = format!("the runs have no {}", response_figures::name(*missing));
            return Err(Error::input(message).hint(format!("they have {}", known.join(", "))));
        }
        order.clone_from(&flags.responses);
    }
    let mut responses = Vec::new();
    for name in order {
        let observed: Vec<FactorObservation> =
            kept.observed(name, experiment.design.rows.len(), experiment.has_blocks());
        let scale = flags.experiment.model.map(EffectScale::from);
        let answer = analyse(&experiment.design, &observed, scale);
        if let (true, Err(error)) = (responses.is_empty(), &answer) {
            return Err(
                Error::measurement(error.clone()).hint("more `--replicates` or another `--model`")
            );
        }
        responses.push(Response {
            name: response_figures::name(name).to_owned(),
            unit: response_figures::unit(name),
            more_is_better: response_figures::more_is_better(name),
            answer,
            observed,
            centre: kept.at_centre(name, experiment.design.rows.len()),
        });
    }
    notes.extend(experiment.notes());
    notes.extend(kept.notes());
    let limits = match flags.no_limits {
        true => Vec::new(),
        false => infinite_factor::limits(experiment, responses.first(), replicates, stop, notes),
    };
    let offers = match (&flags.experiment.cost, responses.first()) {
        (Some(cost), Some(first)) => {
            let prices = prices(cost, flags.experiment.spend, &experiment.factors)?;
            offers(
                (&experiment.design, &experiment.factors),
                first,
                &prices,
                flags.experiment.spend,
            )?
        }
        _ => Vec::new(),
    };
    Ok(FactorOutcome {
        measurement: experiment.measurement(),
        world: experiment.world(),
        factors: experiment.factors.iter().map(describe_factor).collect(),
        design: experiment.design.clone(),
        replicates,
        runs: kept.done.len(),
        failed: kept.failed(),
        took_s,
        directory: Some(kept.directory.display().to_string()),
        responses,
        steps: Vec::new(),
        limits,
        offers,
        spend: flags.experiment.spend,
        notes: notes.clone(),
    })
}

/// A factor as a report has it.
pub(crate) fn describe_factor(factor: &stackline_spec::Factor) -> FactorWords {
    FactorWords {
        name: factor.name.clone(),
        levels: factor.levels.iter().map(ToString::to_string).collect(),
        times: (0..factor.levels.len())
            .map(|level| factor.times(level))
            .collect(),
    }
}

/// What levels cost, of what is to be spent: judged before anything is run.
pub(crate) fn prices(
    cost: &str,
    spend: Option<f64>,
    factors: &[stackline_spec::Factor],
) -> Result<Prices> {
    if let Some(amount) = spend.filter(|amount| !(amount.is_finite() && *amount >= 0.0)) {
        return Err(
            Error::input(format!("`{amount}` is nothing that can be spent"))
                .hint("as in `--spend 320`"),
        );
    }
    prices::read(cost, factors)
}

/// What could be bought, of a design of factors with those prices.
pub(crate) fn offers(
    (design, factors): (&Design, &[stackline_spec::Factor]),
    first: &Response,
    prices: &[Vec<Option<f64>>],
    spend: Option<f64>,
) -> Result<Vec<ImprovementOffer>> {
    let Ok(answer) = &first.answer else {
        return Ok(Vec::new());
    };
    let front = purchase::front(design, answer, prices, first.more_is_better);
    let front = front.map_err(|error| Error::input(error).hint("give prices to fewer levels"))?;
    // What was never run together has no price together.
    let single = design.kind == DesignKind::OneAtATime;
    let front: Vec<purchase::PricedCombination> = front
        .into_iter()
        .filter(|offer| !single || offer.levels.iter().filter(|level| **level > 0).count() < 2)
        .collect();
    let best = front
        .iter()
        .rposition(|offer| spend.is_none_or(|most| offer.cost <= most));
    let of = |(at, offer): (usize, &purchase::PricedCombination)| {
        let (times, interval) = first.gain_of(answer, design, &offer.levels);
        let bought = offer
            .levels
            .iter()
            .zip(factors)
            .filter(|(level, _)| **level > 0);
        let bought =
            bought.map(|(level, factor)| format!("{} {}", factor.name, factor.levels[*level]));
        ImprovementOffer {
            bought: bought.collect(),
            cost: offer.cost,
            times,
            interval,
            is_best: spend.is_some() && best == Some(at),
        }
    };
    Ok(front.iter().enumerate().map(of).collect())
}

/// Writes the pictures of an experiment, and their page.
pub(crate) fn draw(outcome: &FactorOutcome, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|error| output::unwritten(directory.display(), &error))?;
    let keep = |name: String, bytes: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).map_err(|error| output::unwritten(path.display(), &error))
    };
    for picture in stackline_report::factors::pictures(outcome) {
        keep(format!("{}.svg", picture.name), picture.svg.as_bytes())?;
        keep(
            format!("{}.png", picture.name),
            &picture.png().map_err(Error::measurement)?,
        )?;
    }
    keep(
        "index.html".into(),
        stackline_report::factors::factors_page(outcome).as_bytes(),
    )
}
