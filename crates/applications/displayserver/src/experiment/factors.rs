//! Which factors matter for a display in virtual time: simulates every combination and computes effects.

use super::combinations::{DisplayCombination, DisplaySubject};
use super::next_steps::DisplayRateSearch;
use crate::send_level::DisplayPicture;
use stackline_core::error::{Error, Result};
use stackline_core::plan::World;
use stackline_factors::fit::ratio;
use stackline_factors::{EffectScale, FactorObservation, Wish, analyse};
use stackline_report::factors::{
    FactorLimit, FactorOutcome, ImprovementStep, Response, ResponseUnit,
};
use stackline_spec::FactorLevel;
use stackline_whatif::experiment::level_conflicts::with_levels;
use stackline_whatif::experiment::offers::{describe_factor, offers};
use stackline_whatif::experiment::{Experiment, MOST_COMBINATIONS, Prices, RunBudget};
use std::time::{Duration, Instant};

/// The runs of each combination: two show whether anything is random; if so, five are made.
const RUNS: (u32, u32) = (2, 5);

/// The options of an analysis of factors.
#[derive(Clone, Debug)]
pub struct DisplayFactorsOptions {
    /// The picture that is sent.
    pub picture: DisplayPicture,
    /// Trials in each run.
    pub trials: usize,
    /// The experimental design; `None`: the best that fits.
    pub design: Option<Wish>,
    /// The time into which all runs have to fit.
    pub within: Option<Duration>,
    /// Runs of each combination; `None`: as many as needed.
    pub replicates: Option<u32>,
    /// The scale on which effects add up.
    pub scale: Option<EffectScale>,
    /// The prices of levels.
    pub prices: Option<Prices>,
    /// The budget.
    pub spend: Option<f64>,
    /// Whether to look for what to change first, and for the limit if a factor were infinite.
    pub limits: bool,
}

/// Simulates every combination, and computes the effect of each factor.
///
/// # Errors
/// If a combination cannot be simulated, or there are too few of them.
pub fn display_factors(
    mut experiment: Experiment<DisplaySubject>,
    options: &DisplayFactorsOptions,
) -> Result<FactorOutcome> {
    let begun = Instant::now();
    let budget = options
        .within
        .map(|within| time_one_run(&experiment.base, options, within))
        .transpose()?;
    lay_out(&mut experiment, options, budget.as_ref())?;
    let runs = DisplayRuns {
        experiment: &experiment,
        options,
        budget,
    };
    let rows = experiment.combinations()?;
    let (replicates, observed) = runs.carry_out(&rows)?;
    let mut notes = notes(&experiment, &rows);
    notes.extend(budget.map(|budget| budget.given_up(&experiment.design, replicates)));
    let (steps, limits) = match options.limits {
        true => runs.beyond(replicates, &mut notes)?,
        false => (Vec::new(), Vec::new()),
    };
    let made = observed.len();
    let response = response(&experiment, options, observed)?;
    let offers = options.prices.as_ref().map(|prices| {
        let (design, factors) = (&experiment.design, &experiment.factors);
        offers(design, factors, &response, prices, options.spend)
    });
    Ok(FactorOutcome {
        measurement: experiment.base.words(&options.picture)?,
        world: World::Simulated,
        factors: experiment.factors.iter().map(describe_factor).collect(),
        replicates,
        runs: made,
        failed: 0,
        took_s: begun.elapsed().as_secs_f64(),
        directory: None,
        offers: offers.transpose()?.unwrap_or_default(),
        responses: vec![response],
        steps,
        limits,
        spend: options.spend,
        notes,
        design: experiment.design,
    })
}

/// The measured quantity and its observations.
fn response(
    experiment: &Experiment<DisplaySubject>,
    options: &DisplayFactorsOptions,
    observed: Vec<FactorObservation>,
) -> Result<Response> {
    let answer = analyse(&experiment.design, &observed, options.scale);
    if let Err(error) = &answer {
        return Err(Error::measurement(error.clone()).hint("try another `--model` or `--design`"));
    }
    Ok(Response {
        name: "rate".to_owned(),
        unit: ResponseUnit::PerSecond(options.picture.unit),
        more_is_better: true,
        answer,
        observed,
        centre: Vec::new(),
    })
}

/// Measures how long a run takes, if a time limit is given.
fn time_one_run(
    base: &DisplayCombination,
    options: &DisplayFactorsOptions,
    within: Duration,
) -> Result<RunBudget> {
    let begun = Instant::now();
    base.rate(&options.picture, options.trials, 1)?;
    Ok(RunBudget {
        within,
        each: begun.elapsed(),
        at_once: 1,
    })
}

/// The combinations to run: those of the wanted design, or of one that fits.
fn lay_out(
    experiment: &mut Experiment<DisplaySubject>,
    options: &DisplayFactorsOptions,
    budget: Option<&RunBudget>,
) -> Result<()> {
    let least = experiment.factors.len() + 1;
    let fits =
        budget.map(|budget| (budget.runs() / RUNS.0 as usize).clamp(least, MOST_COMBINATIONS));
    let best = Wish::Best(fits.unwrap_or(MOST_COMBINATIONS));
    experiment.lay_out(options.design.unwrap_or(best))
}

/// The runs of an experiment.
struct DisplayRuns<'e> {
    experiment: &'e Experiment<DisplaySubject>,
    options: &'e DisplayFactorsOptions,
    budget: Option<RunBudget>,
}

impl DisplayRuns<'_> {
    /// Runs every combination the wanted number of times; by default twice, and more often if the results differ.
    fn carry_out(&self, rows: &[DisplayCombination]) -> Result<(u32, Vec<FactorObservation>)> {
        let mut observed = Vec::new();
        let first = self.options.replicates.unwrap_or(RUNS.0);
        (0..first).try_for_each(|_| self.replicate(rows, &mut observed))?;
        let differs = |observed: &[FactorObservation]| {
            let (one, other) = observed.split_at(rows.len().min(observed.len()));
            one.iter()
                .zip(other)
                .any(|(one, other)| one.value.total_cmp(&other.value).is_ne())
        };
        if self.options.replicates.is_some() || !differs(&observed) {
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
    fn replicate(
        &self,
        rows: &[DisplayCombination],
        observed: &mut Vec<FactorObservation>,
    ) -> Result<()> {
        for (row, combination) in rows.iter().enumerate() {
            let order = observed.len() as u32;
            let seed = u64::from(order) + 1;
            let rate = combination.rate(&self.options.picture, self.options.trials, seed);
            let value = rate.map_err(|error| {
                let levels = self.experiment.levels(&self.experiment.design.rows[row]);
                with_levels(&levels, error)
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

    /// What to change first, what brings most after that, and what factors without a limit would bring.
    fn beyond(
        &self,
        replicates: u32,
        notes: &mut Vec<String>,
    ) -> Result<(Vec<ImprovementStep>, Vec<FactorLimit>)> {
        let search = DisplayRateSearch {
            experiment: self.experiment,
            rate: &|made| self.mean(made, replicates),
        };
        Ok((search.steps()?, self.limits(replicates, &search, notes)?))
    }

    /// The effect of making each factor for which more is better infinite, with all others at their first level. If that does not apply,
    /// for instance to losses that are zero, a note says so.
    fn limits(
        &self,
        replicates: u32,
        search: &DisplayRateSearch<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Vec<FactorLimit>> {
        // A single run would not show how far runs differ.
        let runs = replicates.max(RUNS.0);
        let now = self.rates(&self.experiment.base, runs)?;
        let mut limits = Vec::new();
        for (at, factor) in self.experiment.factors.iter().enumerate() {
            let Some(level) = factor.better().map(FactorLevel::Times) else {
                continue;
            };
            let combination = match self.experiment.at(&[(at, level.clone())]) {
                Ok(combination) => combination,
                Err(error) => {
                    notes.push(format!("no limit for `{}`: {}", factor.name, error.message));
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

    /// The mean rate of a combination; one seed suffices if nothing is random.
    fn mean(&self, combination: &DisplayCombination, replicates: u32) -> Result<f64> {
        let seeds = if replicates <= RUNS.0 { 1 } else { replicates };
        Ok(self.rates(combination, seeds)?.iter().sum::<f64>() / f64::from(seeds))
    }

    /// The rates of a combination with several seeds.
    fn rates(&self, combination: &DisplayCombination, replicates: u32) -> Result<Vec<f64>> {
        (1..=u64::from(replicates))
            .map(|seed| combination.rate(&self.options.picture, self.options.trials, seed))
            .collect()
    }
}

/// Notes for the reader of the results.
fn notes(experiment: &Experiment<DisplaySubject>, rows: &[DisplayCombination]) -> Vec<String> {
    let is_distributed = DisplayCombination::is_distributed;
    let mixed = rows.iter().any(is_distributed) && !rows.iter().all(is_distributed);
    let mixed = mixed.then(|| {
        "in class distributed, only one item is sent but all are drawn; the other classes send all items"
            .into()
    });
    mixed.into_iter().chain(experiment.note()).collect()
}
