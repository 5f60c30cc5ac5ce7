//! Latency against offered load, for a specification: its first part is offered one rate after the other, by all its pairs together.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`load_sweep`] | rates that rise until the system, or the generator, is at its limit |
//! | [`highest_rate`] | the highest rate that meets an expectation, by search |
//! | `load_runs` | the runs at one rate, and all of them as one kept run |

pub mod highest_rate;
mod load_runs;
pub mod load_sweep;

pub use load_runs::KeptLoad;

use crate::unattended_runs::UnattendedOptions;
use load_runs::{LoadTrial, make_load_runs};
use stackline_analyze::{Summary, summarise};
use stackline_core::error::{Blame, Error, Result};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_runner::spec_source::SpecSource;
use stackline_spec::{LoadExtent, OfferedLoad, Overrides, vary, with_offered_load, written_load};

/// The length of a run where neither the text nor a flag says it, s.
const USUAL_SECONDS: f64 = 2.0;
/// The length of the run without pauses, s.
const PROBE_SECONDS: f64 = 0.5;
/// The fewest runs at a rate unless a flag says fewer: without two there is no interval.
const FEWEST_RUNS: u32 = 3;
/// Of the rate at which calls follow each other without a pause: what a sweep begins with.
const LOWEST_SHARE: f64 = 0.05;

/// What is offered, and how long.
#[derive(Clone, Debug, Default)]
pub struct LoadWish {
    /// The line of the measurement, if the text has several.
    pub line: Option<usize>,
    /// Whether operations come at random moments (Poisson) or evenly; as the text says where absent.
    pub is_poisson: Option<bool>,
    /// The length of a run, s.
    pub seconds: Option<f64>,
    /// Runs at each rate.
    pub runs: Option<u32>,
    /// The lowest and the highest rate, per second.
    pub rates: Option<(f64, f64)>,
}

/// Where to look for a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadRange {
    /// The rate at which calls follow each other without a pause, per second; absent where the rates were given.
    pub closed_per_s: Option<f64>,
    /// The lowest rate.
    pub low: f64,
    /// The highest rate.
    pub high: f64,
}

/// A specification that is offered load, and the runs that were made.
#[derive(Debug)]
pub struct LoadedSpec<'o> {
    source: SpecSource,
    overrides: Overrides,
    is_poisson: bool,
    extent: LoadExtent,
    rates: Option<(f64, f64)>,
    options: UnattendedOptions<'o>,
    /// Called with a sentence about each rate as it is done.
    said: fn(&str),
    trials: Vec<LoadTrial>,
}

impl<'o> LoadedSpec<'o> {
    /// Checks that the specification can be offered load.
    ///
    /// # Errors
    /// A mistake in the text; if it has several measurements, or nothing in its first part waits for a moment.
    pub fn new(
        source: &SpecSource,
        overrides: Overrides,
        wish: &LoadWish,
        options: UnattendedOptions<'o>,
        said: fn(&str),
    ) -> Result<Self> {
        let text = vary(source.named().1, wish.line, &[])?;
        let written = written_load(&text)?;
        let usual = (!written.has_time_limit).then_some(USUAL_SECONDS);
        let runs = written.runs.unwrap_or(FEWEST_RUNS).max(FEWEST_RUNS);
        let loaded = Self {
            source: source.varied(text),
            overrides,
            is_poisson: wish.is_poisson.unwrap_or(written.is_poisson),
            extent: LoadExtent {
                runs: wish.runs.unwrap_or(runs),
                seconds: wish.seconds.or(usual),
            },
            rates: wish.rates,
            options,
            said,
            trials: Vec::new(),
        };
        // So nothing runs if the text cannot be offered a rate.
        loaded.plan_at(&[1.0])?;
        Ok(loaded)
    }

    /// The text that offers these rates.
    ///
    /// # Errors
    /// As [`LoadedSpec::new`].
    pub fn text_at(&self, per_second: &[f64]) -> Result<String> {
        let load = OfferedLoad::Rates {
            per_second,
            is_poisson: self.is_poisson,
        };
        with_offered_load(self.source.named().1, load, self.extent)
    }

    fn plan_at(&self, per_second: &[f64]) -> Result<Plan> {
        let source = self.source.varied(self.text_at(per_second)?);
        let plan = source.plan(&self.overrides)?;
        if plan.measurements.len() != per_second.len() {
            let each = plan.measurements.len() / per_second.len().max(1);
            let message = format!("{each} measurements would be loaded at once");
            return Err(
                Error::input(message).hint("name one stack, and give each variable one value")
            );
        }
        Ok(plan)
    }

    /// Pairs of the first part.
    ///
    /// # Errors
    /// As [`LoadedSpec::new`].
    pub fn pairs(&self) -> Result<u32> {
        let plan = self.plan_at(&[1.0])?;
        let part = plan.measurements.first().and_then(|one| one.parts.first());
        Ok(part.map_or(1, |part| part.replicas))
    }

    /// Runs at each rate, and the length of each, s; absent where the text says the length.
    #[must_use]
    pub const fn extent(&self) -> LoadExtent {
        self.extent
    }

    /// Whether operations come at random moments.
    #[must_use]
    pub const fn is_poisson(&self) -> bool {
        self.is_poisson
    }

    /// The given rates; else from a twentieth of the rate that a short run without pauses achieves, without an end.
    ///
    /// # Errors
    /// If that run fails.
    pub fn range(&self) -> Result<LoadRange> {
        if let Some((low, high)) = self.rates {
            return Ok(LoadRange {
                closed_per_s: None,
                low,
                high,
            });
        }
        // Half a second is enough except for very long ways.
        let closed = match self.closed_rate(Some(PROBE_SECONDS))? {
            Some(closed) => Some(closed),
            None => self.closed_rate(self.extent.seconds)?,
        };
        let Some(closed) = closed else {
            return Err(
                Error::measurement("nothing was done in a short run without pauses")
                    .hint("--rates LOW..HIGH names the rates to offer"),
            );
        };
        Ok(LoadRange {
            closed_per_s: Some(closed),
            low: LOWEST_SHARE * closed,
            high: f64::INFINITY,
        })
    }

    /// Operations per second of a run in which each begins when the one before has ended; `None` if none was done.
    fn closed_rate(&self, seconds: Option<f64>) -> Result<Option<f64>> {
        let extent = LoadExtent { runs: 1, seconds };
        let text = with_offered_load(self.source.named().1, OfferedLoad::Closed, extent)?;
        let plan = self.source.varied(text).plan(&self.overrides)?;
        let records = make_load_runs(&plan, plan.seed, 1, &self.options)?;
        let summary = first_summary(&plan, &records);
        let rate = summary.and_then(|summary| summary.rate_per_s);
        Ok(rate.map(|rate| rate.mean).filter(|rate| *rate > 0.0))
    }

    /// Makes so many more runs at a rate. Returns the index of its trial, or why the runs failed by themselves.
    fn run_at(&mut self, rate: f64, runs: u32) -> Result<std::result::Result<usize, String>> {
        let at = match self.trials.iter().position(|trial| trial.rate == rate) {
            Some(at) => at,
            None => {
                let plan = self.plan_at(&[rate])?;
                self.trials.push(LoadTrial {
                    rate,
                    plan,
                    records: Vec::new(),
                });
                self.trials.len() - 1
            }
        };
        let trial = &mut self.trials[at];
        match trial.make(runs, &self.options) {
            Ok(()) => Ok(Ok(at)),
            Err(error) if error.blame == Blame::Measurement => Ok(Err(error.message)),
            Err(error) => Err(error),
        }
    }

    /// The summary of all runs of a trial.
    fn summary(&self, trial: usize) -> Option<Summary> {
        let trial = self.trials.get(trial)?;
        first_summary(&trial.plan, &trial.records)
    }

    /// A summary of each run of a trial.
    fn run_summaries(&self, trial: usize) -> Vec<Summary> {
        let Some(trial) = self.trials.get(trial) else {
            return Vec::new();
        };
        let runs = trial.runs();
        let one = |run: u32| {
            let is_mine = |record: &&RunRecord| record.run == run && !record.warmup;
            let mine: Vec<RunRecord> = trial.records.iter().filter(is_mine).cloned().collect();
            first_summary(&trial.plan, &mine)
        };
        (0..runs).filter_map(one).collect()
    }
}

/// The summary of the first part, which is the one that is loaded.
fn first_summary(plan: &Plan, records: &[RunRecord]) -> Option<Summary> {
    let mut all = summarise(plan, records).into_iter();
    all.find(|summary| summary.part_index.is_none_or(|part| part == 0) && summary.runs > 0)
}
