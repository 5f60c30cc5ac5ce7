//! Latency against offered load: what each offered rate gave, where the system saturates, the knee, and the highest rate that meets an
//! expectation.
//!
//! | module | one idea |
//! | --- | --- |
//! | `rate_scale` | rates on a logarithmic scale |
//! | [`rate_search`] | which rate is tried next, and what the verdicts so far bracket |
//! | [`rate_verdict`] | whether a rate meets an expectation, at a stated error rate |

mod rate_scale;
pub mod rate_search;
pub mod rate_verdict;

pub use rate_scale::{geometric_rates, three_digits};

use crate::generator_lateness::is_late;
use crate::statistics::{SampleStatistics, to_f64};
use crate::summary::{RunMetric, Summary};
use rate_search::FoundRate;
use rate_verdict::{RateFigure, RateVerdict};
use serde::Serialize;

/// A system is saturated if it achieves less than this share of what is offered.
pub const ACHIEVED_SHARE: f64 = 0.95;
/// A system is saturated if the median latency is more than this many times that of the lowest rate.
pub const GROWN_MEDIAN: f64 = 10.0;
/// The generator limits the load if it is late, and later by this factor than at the lowest rate.
const LATER: f64 = 2.0;
/// How many standard deviations of a Poisson count a shortfall must exceed.
const DEVIATIONS: f64 = 3.0;

/// A percentile of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadLatency {
    /// Of the calls of all runs, s.
    pub value_s: f64,
    /// Its 95 % interval over runs, s; absent with fewer than two runs.
    pub ci95_s: Option<(f64, f64)>,
}

/// Why no more load is offered: what shows that the system, or the generator, is at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SaturationSign {
    /// Less than 95 % of what was offered was achieved, because calls waited for the calls before them.
    Achieved,
    /// The median latency is beyond ten times that of the lowest rate.
    MedianGrown,
    /// The generator was late by itself.
    GeneratorLate,
}

impl SaturationSign {
    /// What it means, as the end of a sentence about a rate.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Achieved => "less than 95 % of the offered load was achieved",
            Self::MedianGrown => "the median latency was beyond 10 times that of the lowest rate",
            Self::GeneratorLate => "the generator was late, so the limit is its own",
        }
    }
}

/// What one offered rate gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadStep {
    /// Operations offered per second, by all pairs together.
    pub offered_per_s: f64,
    /// Operations achieved per second, over runs.
    pub achieved_per_s: Option<SampleStatistics>,
    /// Counted runs.
    pub runs: u32,
    /// Operations of all runs.
    pub operations: u64,
    /// Half of the latencies are not above it; latencies count from the intended moments.
    pub p50: Option<LoadLatency>,
    /// The 99th percentile.
    pub p99: Option<LoadLatency>,
    /// The 99.9th percentile.
    pub p999: Option<LoadLatency>,
    /// How late the generator was by itself, s; absent in runs where that is not known.
    pub generator_lateness_s: Option<SampleStatistics>,
    /// The share of operations that it began more than 100 us late.
    pub generator_late_share: Option<f64>,
    /// What was lost of the operations, 0 to 1; absent where the stack does not count.
    pub lost_share: Option<f64>,
    /// What shows that this rate is too much, if anything does.
    pub saturated: Option<SaturationSign>,
}

impl LoadStep {
    /// What a summary of runs at this offered rate shows; `first` is the step of the lowest rate.
    #[must_use]
    pub fn new(offered_per_s: f64, summary: &Summary, first: Option<&Self>) -> Self {
        let metric = match summary.response_s {
            Some(_) => RunMetric::Response,
            None => RunMetric::Connect,
        };
        let latency = |percent: f64| {
            summary
                .percentile(metric, percent)
                .map(|value_s| LoadLatency {
                    value_s,
                    ci95_s: summary.percentile_interval(metric, percent),
                })
        };
        let times = summary.response_s.or(summary.connect_s);
        let mut step = Self {
            offered_per_s,
            achieved_per_s: summary.rate_per_s,
            runs: summary.runs,
            operations: times.map_or(0, |times| times.n),
            p50: latency(50.0),
            p99: latency(99.0),
            p999: latency(99.9),
            generator_lateness_s: summary.generator_lateness_s,
            generator_late_share: summary.generator_late_share,
            lost_share: summary.lost_share,
            saturated: None,
        };
        step.saturated = step.saturation(summary, first);
        step
    }

    fn saturation(&self, summary: &Summary, first: Option<&Self>) -> Option<SaturationSign> {
        if self.is_generator_later(first) {
            return Some(SaturationSign::GeneratorLate);
        }
        if self.falls_short() {
            return Some(match generators_share(summary) > 0.5 {
                true => SaturationSign::GeneratorLate,
                false => SaturationSign::Achieved,
            });
        }
        let median = |step: &Self| step.p50.map(|latency| latency.value_s);
        let grown = median(self)
            .zip(first.and_then(median))
            .is_some_and(|(now, idle)| now > GROWN_MEDIAN * idle);
        grown.then_some(SaturationSign::MedianGrown)
    }

    /// Whether the generator was late, and later than at the lowest rate: a machine that always wakes up late is late at every rate.
    fn is_generator_later(&self, first: Option<&Self>) -> bool {
        let Some(lateness) = self.generator_lateness_s.filter(is_late) else {
            return false;
        };
        let before = first.and_then(|first| first.generator_lateness_s);
        before.is_some_and(|before| lateness.p99 > LATER * before.p99)
    }

    /// Whether less than 95 % of the offered load was achieved, beyond what chance explains in arrivals at random moments.
    fn falls_short(&self) -> bool {
        let Some(achieved) = self.achieved_per_s else {
            return true;
        };
        let done = to_f64(self.operations);
        let expected = self.offered_per_s * done / achieved.mean.max(f64::MIN_POSITIVE);
        done + DEVIATIONS * done.sqrt() < ACHIEVED_SHARE * expected
    }
}

/// Why a sweep ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "why", content = "by")]
pub enum LoadStop {
    /// The last rate was too much.
    Saturated(SaturationSign),
    /// The highest given rate was offered.
    Highest,
    /// The runs at the rate above the last one failed, for this reason.
    Failed(String),
    /// The most rates were offered.
    Steps,
    /// The user asked to stop.
    Interrupted,
}

/// Latency against offered load.
#[derive(Clone, Debug, Serialize)]
pub struct LoadCurve {
    /// The rates with what they gave, in ascending order.
    pub steps: Vec<LoadStep>,
    /// Why it ended.
    pub stop: LoadStop,
    /// The rate at which calls follow each other without a pause, per second; absent where the rates were given.
    pub closed_per_s: Option<f64>,
}

/// A rate that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct TriedRate {
    /// What it gave.
    #[serde(flatten)]
    pub step: LoadStep,
    /// The figure of each expectation beside its bound; absent where no run has it.
    pub figures: Vec<Option<RateFigure>>,
    /// Whether it meets all expectations.
    pub verdict: RateVerdict,
}

/// The highest rate that meets expectations, as far as it was found.
#[derive(Clone, Debug, Serialize)]
pub struct HighestRate {
    /// The expectations as written.
    pub expectations: Vec<String>,
    /// The rates that were tried, in ascending order.
    pub tried: Vec<TriedRate>,
    /// What they bracket.
    pub found: FoundRate,
    /// The lowest and the highest rate that might have been tried, per second.
    pub limits: (f64, f64),
    /// Rates whose runs failed by themselves, with the reasons; they count as missed.
    pub failed: Vec<(f64, String)>,
    /// Whether the search ended because it may try no more rates.
    pub is_exhausted: bool,
    /// Whether the user asked to stop before it ended.
    pub is_interrupted: bool,
}

/// The share of all lateness that is the generator's own.
fn generators_share(summary: &Summary) -> f64 {
    let sum = |statistics: SampleStatistics| statistics.mean * to_f64(statistics.n);
    let (own, all) = (summary.generator_lateness_s, summary.lateness_s);
    let shares = own.map(sum).zip(all.map(sum));
    shares.map_or(0.0, |(own, all)| if all > 0.0 { own / all } else { 0.0 })
}

/// The knee of a curve: the rate at which achieved rate over median latency, the *power*, is greatest (L. Kleinrock, "Power and
/// deterministic rules of thumb for probabilistic problems in computer communications", ICC 1979). `None` for fewer than three steps, or
/// where the last step is the best, so that the knee is not passed.
#[must_use]
pub fn knee(steps: &[LoadStep]) -> Option<&LoadStep> {
    let power = |step: &LoadStep| {
        let median = step.p50?.value_s;
        let achieved = step.achieved_per_s?.mean;
        (median > 0.0).then(|| achieved / median)
    };
    let powers = steps
        .iter()
        .enumerate()
        .filter_map(|(at, step)| Some((at, power(step)?)));
    let (best, _) = powers.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (steps.len() >= 3 && best + 1 < steps.len()).then(|| &steps[best])
}

#[cfg(test)]
mod tests;
