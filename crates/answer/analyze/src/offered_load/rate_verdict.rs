//! Whether a rate meets an expectation: by the interval of its figure over runs, at a stated error rate.
//!
//! Each run gives one value of the figure, so calls that depend on each other within a run count once. The interval is Student's t over
//! these values. A search makes many verdicts and looks several times at the same rate, so each look may err with an equal share of the
//! search's error rate (Bonferroni): all verdicts together err with at most that.

use crate::expectations::{ExpectationVerdict, MeasuredBound, figure_of};
use crate::statistics::{SampleStatistics, to_f64};
use crate::summary::Summary;
use serde::Serialize;
use stackline_core::expectation::{ExpectedFigure, FigureBound};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// With this probability at most, any of the verdicts of a search is wrong.
pub const ERROR_RATE: f64 = 0.05;
/// The most rates that a search tries.
pub const MOST_RATES: usize = 24;
/// How often the runs of a rate are looked at: at first, and after each doubling of their number.
pub const LOOKS: u32 = 3;

/// Whether a rate meets an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateVerdict {
    /// It does.
    Met,
    /// It does not.
    Missed,
    /// The runs do not say.
    Undecided,
}

/// A figure over the runs of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateFigure {
    /// The mean of the runs' values, in the base unit of the figure.
    pub value: f64,
    /// Its interval at the confidence of one look; equal to the value where all runs are equal.
    pub interval: Option<(f64, f64)>,
    /// Runs that have the figure.
    pub runs: u32,
    /// What follows.
    pub verdict: RateVerdict,
}

/// A figure over runs, each summarised by itself, beside its bound. `None` if no run has it.
#[must_use]
pub fn judge_rate(
    runs: &[Summary],
    figure: ExpectedFigure,
    bound: FigureBound,
) -> Option<RateFigure> {
    let values = |figure: ExpectedFigure| -> Vec<f64> {
        let all = runs.iter();
        all.filter_map(|run| figure_of(run, figure).ok()).collect()
    };
    let mut judged = judge_values(&values(figure), bound)?;
    // What the median already exceeds, no higher percentile keeps.
    let is_above_median = match figure {
        ExpectedFigure::Percentile(percent) => percent > 50.0,
        ExpectedFigure::Max => true,
        _ => false,
    };
    let is_upper = matches!(bound, FigureBound::Below(_) | FigureBound::AtMost(_));
    if judged.verdict == RateVerdict::Undecided && is_above_median && is_upper {
        let median = judge_values(&values(ExpectedFigure::Percentile(50.0)), bound);
        if median.is_some_and(|median| median.verdict == RateVerdict::Missed) {
            judged.verdict = RateVerdict::Missed;
        }
    }
    Some(judged)
}

/// The mean of values beside a bound.
#[must_use]
pub fn judge_values(values: &[f64], bound: FigureBound) -> Option<RateFigure> {
    let statistics = SampleStatistics::from_values(values)?;
    let interval = statistics.sd.map(|sd| {
        let half = quantile(statistics.n) * sd / to_f64(statistics.n).sqrt();
        (statistics.mean - half, statistics.mean + half)
    });
    let verdict = match interval {
        None => RateVerdict::Undecided,
        Some((low, high)) => match MeasuredBound(bound).verdict(low, high) {
            ExpectationVerdict::Met => RateVerdict::Met,
            ExpectationVerdict::Missed => RateVerdict::Missed,
            ExpectationVerdict::Undecided => RateVerdict::Undecided,
        },
    };
    Some(RateFigure {
        value: statistics.mean,
        interval,
        runs: u32::try_from(statistics.n).unwrap_or(u32::MAX),
        verdict,
    })
}

/// The quantile of Student's t for one look at `n` values: a verdict is wrong on one side only.
fn quantile(n: u64) -> f64 {
    let share = ERROR_RATE / (to_f64(MOST_RATES as u64) * f64::from(LOOKS));
    let freedom = to_f64(n.saturating_sub(1)).max(1.0);
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - share))
}
