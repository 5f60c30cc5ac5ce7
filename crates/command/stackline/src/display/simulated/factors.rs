//! `display factors`: which factors matter for a display in virtual time. Its report is that of `stackline factors`.

use super::combinations::{Combination, Combinations};
use super::next_steps::DisplayRateSearch;
use crate::exit::{Error, Exit, Result};
use crate::factors::{
    MOST, RunBudget, describe_factor, draw, offers, parse_factors, prices, with_levels,
};
use crate::flags::{DisplayFactors, SpecTextFlags};
use crate::output;
use crate::spec_source::SpecSource;
use stackline_core::plan::World;
use stackline_displayserver::bench;
use stackline_displayserver::send_level::DisplayPicture;
use stackline_factors::fit::ratio;
use stackline_factors::{Design, DesignKind, EffectScale, FactorObservation, Wish, analyse};
use stackline_report::factors::{
    FactorLimit, FactorOutcome, ImprovementStep, Response, ResponseUnit,
};
use stackline_spec::FactorLevel;
use std::time::{Duration, Instant};

/// Runs of each combination: two show whether anything is drawn by chance, and where it is there are more.
const RUNS: (u32, u32) = (2, 5);

/// Simulates every combination, and reports what each factor brings.
pub(crate) fn factors(flags: &DisplayFactors) -> Result {
    let begun = Instant::now();
    let combinations = read(flags)?;
    let picture = picture(flags)?;
    let base = combinations.at(&[])?;
    let prices = flags
        .experiment
        .cost
        .as_ref()
        .map(|cost| prices(cost, flags.experiment.spend, &combinations.factors))
        .transpose()?;
    let levels: Vec<usize> = combinations
        .factors
        .iter()
        .map(|factor| factor.levels.len())
        .collect();
    let budget = flags
        .experiment
        .budget
        .map(|within| one_run(flags, &picture, &base, within))
        .transpose()?;
    let design = laid_out(flags, &levels, budget.as_ref())?;
    let experiment = DisplayExperiment {
        flags,
        picture: &picture,
        combinations: &combinations,
        design: &design,
        budget,
    };
    let rows = design
        .rows
        .iter()
        .map(|row| combinations.of(row))
        .collect::<Result<Vec<Combination>>>()?;
    let (replicates, observed) = experiment.carry_out(&rows)?;
    let mut notes = notes(&design, &rows);
    notes.extend(budget.map(|budget| budget.given_up(&design, replicates)));
    let (steps, limits) = experiment.beyond(&base, replicates, &mut notes)?;
    let runs = observed.len();
    let response = response(flags, &picture, &design, observed)?;
    let offers = prices.map(|prices| {
        offers(
            (&design, &combinations.factors),
            &response,
            &prices,
            flags.experiment.spend,
        )
    });
    let outcome = FactorOutcome {
        measurement: base.words(&picture)?,
        world: World::Simulated,
        factors: combinations.factors.iter().map(describe_factor).collect(),
        replicates,
        runs,
        failed: 0,
        took_s: begun.elapsed().as_secs_f64(),
        directory: None,
        responses: vec![response],
        steps,
        limits,
        offers: offers.transpose()?.unwrap_or_default(),
        spend: flags.experiment.spend,
        notes,
        design: design.clone(),
    };
    shown(flags, &outcome)
}

/// What the runs say.
fn response(
    flags: &DisplayFactors,
    picture: &DisplayPicture,
    design: &Design,
    observed: Vec<FactorObservation>,
) -> Result<Response> {
    let answer = analyse(
        design,
        &observed,
        flags.experiment.model.map(EffectScale::from),
    );
    if let Err(error) = &answer {
        return Err(Error::measurement(error.clone()).hint("another `--model` or `--design`"));
    }
    let (name, unit, centre) = (
        "rate".to_owned(),
        ResponseUnit::PerSecond(picture.unit),
        Vec::new(),
    );
    Ok(Response {
        name,
        unit,
        more_is_better: true,
        answer,
        observed,
        centre,
    })
}

/// What a run takes, of a time that is given.
fn one_run(
    flags: &DisplayFactors,
    picture: &DisplayPicture,
    base: &Combination,
    within: Duration,
) -> Result<RunBudget> {
    let begun = Instant::now();
    base.rate(picture, usize::from(flags.trials), 1)?;
    Ok(RunBudget {
        within,
        each: begun.elapsed(),
        at_once: 1,
    })
}

/// The combinations: those that are wanted, or that fit.
fn laid_out(
    flags: &DisplayFactors,
    levels: &[usize],
    budget: Option<&RunBudget>,
) -> Result<Design> {
    let fits = budget.map(|budget| (budget.runs() / RUNS.0 as usize).clamp(levels.len() + 1, MOST));
    let wish = flags
        .experiment
        .design
        .unwrap_or(Wish::Best(fits.unwrap_or(MOST)));
    Design::new(levels, wish)
        .map_err(|error| Error::input(error).hint("leave `--design` out for the best that fits"))
}

/// The specification, and what is varied.
fn read(flags: &DisplayFactors) -> Result<Combinations<'_>> {
    let source = SpecSource::read(&flags.across)?;
    // Its mistakes are shown where they stand.
    source.declarations(&SpecTextFlags::default())?;
    let declared = stackline_spec::factors(&source.text).unwrap_or_default();
    if flags.factors.is_empty() && declared.is_empty() {
        return Err(Error::input("there is no factor to vary").hint(
            "name some, as in `--factor 'cpu of vax x 2' --factor 'level = pipelined, batched'`",
        ));
    }
    let factors = parse_factors(&flags.factors, &source)?;
    Combinations::new(flags, source, factors)
}

fn picture(flags: &DisplayFactors) -> Result<DisplayPicture> {
    let found = bench::pictures()
        .into_iter()
        .find(|picture| picture.name == flags.picture.name());
    found.ok_or_else(|| Error::input(format!("there is no picture {}", flags.picture.name())))
}

/// What is run.
struct DisplayExperiment<'e> {
    flags: &'e DisplayFactors,
    picture: &'e DisplayPicture,
    combinations: &'e Combinations<'e>,
    design: &'e Design,
    budget: Option<RunBudget>,
}

impl DisplayExperiment<'_> {
    /// Runs every combination as often as is wanted; else twice, and more where that differs.
    fn carry_out(&self, rows: &[Combination]) -> Result<(u32, Vec<FactorObservation>)> {
        let mut observed = Vec::new();
        let first = self.flags.replicates.unwrap_or(RUNS.0);
        (0..first).try_for_each(|_| self.replicate(rows, &mut observed))?;
        let differs = |observed: &[FactorObservation]| {
            let (one, other) = observed.split_at(rows.len().min(observed.len()));
            one.iter()
                .zip(other)
                .any(|(one, other)| one.value.total_cmp(&other.value).is_ne())
        };
        if self.flags.replicates.is_some() || !differs(&observed) {
            return Ok((first, observed));
        }
        let fit = self
            .budget
            .map_or(RUNS.1 as usize, |budget| budget.runs() / rows.len().max(1));
        let all = (fit as u32).clamp(first, RUNS.1);
        (first..all).try_for_each(|_| self.replicate(rows, &mut observed))?;
        Ok((all, observed))
    }

    /// Runs each combination once, with a seed of its own.
    fn replicate(&self, rows: &[Combination], observed: &mut Vec<FactorObservation>) -> Result<()> {
        for (row, combination) in rows.iter().enumerate() {
            let order = observed.len() as u32;
            let rate = combination.rate(
                self.picture,
                usize::from(self.flags.trials),
                u64::from(order) + 1,
            );
            let value = rate.map_err(|error| {
                with_levels(&self.combinations.levels(&self.design.rows[row]), error)
            })?;
            observed.push(FactorObservation {
                row,
                block: 0,
                order,
                value,
            });
        }
        Ok(())
    }

    /// What to change first and what brings most then, and what factors without end would bring.
    fn beyond(
        &self,
        base: &Combination,
        replicates: u32,
        notes: &mut Vec<String>,
    ) -> Result<(Vec<ImprovementStep>, Vec<FactorLimit>)> {
        if self.flags.no_limits {
            return Ok((Vec::new(), Vec::new()));
        }
        let search = DisplayRateSearch {
            combinations: self.combinations,
            rate: &|made| self.mean(made, replicates),
        };
        Ok((
            search.steps()?,
            self.limits(base, replicates, &search, notes)?,
        ))
    }

    /// What each factor of which more is better would bring without end, with all others at their first level. Where there is none, as of
    /// losses that are not there, a note says so.
    fn limits(
        &self,
        base: &Combination,
        replicates: u32,
        search: &DisplayRateSearch<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Vec<FactorLimit>> {
        // One run alone says nothing of how far runs differ.
        let runs = replicates.max(RUNS.0);
        let now = self.rates(base, runs)?;
        let mut limits = Vec::new();
        for (at, factor) in self.combinations.factors.iter().enumerate() {
            let Some(level) = factor.better().map(FactorLevel::Times) else {
                continue;
            };
            let combination = match self.combinations.at(&[(at, level.clone())]) {
                Ok(combination) => combination,
                Err(error) => {
                    notes.push(format!("no limit of `{}`: {}", factor.name, error.message));
                    continue;
                }
            };
            let then = self.rates(&combination, runs)?;
            let times = ratio(&now, &then)
                .and_then(|ratio| ratio.interval().map(|within| (ratio.value, within)));
            let times = times.map(|(value, (least, most))| (value.exp(), least.exp(), most.exp()));
            limits.push(FactorLimit {
                factor: at,
                times,
                by_account: None,
                next: search.next(at, level)?,
            });
        }
        Ok(limits)
    }

    /// The rate of a combination on average: of one seed where nothing is drawn by chance.
    fn mean(&self, combination: &Combination, replicates: u32) -> Result<f64> {
        let seeds = if replicates <= RUNS.0 { 1 } else { replicates };
        Ok(self.rates(combination, seeds)?.iter().sum::<f64>() / f64::from(seeds))
    }

    /// The rates of a combination, of so many seeds.
    fn rates(&self, combination: &Combination, replicates: u32) -> Result<Vec<f64>> {
        let trials = usize::from(self.flags.trials);
        (1..=u64::from(replicates))
            .map(|seed| combination.rate(self.picture, trials, seed))
            .collect()
    }
}

/// What a reader has to know.
fn notes(design: &Design, rows: &[Combination]) -> Vec<String> {
    let mut notes = Vec::new();
    if rows.iter().any(Combination::is_distributed) && !rows.iter().all(Combination::is_distributed)
    {
        notes.push(
            "at class distributed one item is sent and all are drawn: the others send all of them"
                .into(),
        );
    }
    if design.kind == DesignKind::OneAtATime && design.levels.len() > 1 {
        notes.push(
            "one factor at a time: what factors do together is not seen, and gains do not multiply"
                .into(),
        );
    }
    notes
}

fn shown(flags: &DisplayFactors, outcome: &FactorOutcome) -> Result {
    if let Some(directory) = &flags.experiment.pictures {
        draw(outcome, directory)?;
    }
    match flags.json {
        true => output::json(&stackline_report::factors::factors_json(outcome), false)?,
        false => output::print(&stackline_report::factors::factors(outcome))?,
    }
    Ok(Exit::Done)
}
