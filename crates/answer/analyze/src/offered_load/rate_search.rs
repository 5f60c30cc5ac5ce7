//! Which rate is tried next in the search for the highest that meets an expectation, and what the verdicts so far bracket.
//!
//! The search doubles the rate until one is missed, halves it until one is met, and then divides the gaps on a logarithmic scale. A rate
//! that stays undecided remains between both ends, and the gaps beside it are divided further.

use super::rate_scale::three_digits;
use super::rate_verdict::{MOST_RATES, RateVerdict};
use serde::Serialize;

/// The factor between rates until there is a bracket.
const STEP: f64 = 2.0;

/// A search within bounds.
#[derive(Clone, Debug)]
pub struct RateSearch {
    low: f64,
    high: f64,
    /// The greatest factor between neighbouring rates at the end.
    precision: f64,
    start: f64,
    tried: Vec<JudgedRate>,
}

/// A rate with its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JudgedRate {
    /// Operations offered per second.
    pub rate_per_s: f64,
    /// The verdict.
    pub verdict: RateVerdict,
}

/// What a search has found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FoundRate {
    /// The highest rate that is met, below every one that is missed; absent if even the lowest is not.
    pub met_per_s: Option<f64>,
    /// The lowest rate that is missed; absent if even the highest is not.
    pub missed_per_s: Option<f64>,
    /// Rates between them that the most runs did not decide.
    pub undecided_per_s: Vec<f64>,
    /// Rates above a missed one that were met: the system is not slower at every higher rate, or a verdict is wrong.
    pub met_above_per_s: Vec<f64>,
}

impl RateSearch {
    /// A search from `low` to `high` per second that begins at `start`, until neighbouring rates differ by no more than the factor
    /// `1 + precision`.
    #[must_use]
    pub fn new(low: f64, high: f64, start: f64, precision: f64) -> Self {
        Self {
            low: three_digits(low),
            high: three_digits(high.max(low)),
            precision: 1.0 + precision.max(0.01),
            start: three_digits(start.clamp(low, high.max(low))),
            tried: Vec::new(),
        }
    }

    /// The next rate to try; `None` when the search is over.
    #[must_use]
    pub fn next_rate(&self) -> Option<f64> {
        if self.tried.len() >= MOST_RATES {
            return None;
        }
        if self.tried.is_empty() {
            return Some(self.start);
        }
        let found = self.found();
        let rates = || self.tried.iter().map(|one| one.rate_per_s);
        let lowest = rates().fold(f64::INFINITY, f64::min);
        let highest = rates().fold(0.0, f64::max);
        if found.met_per_s.is_none() && lowest > self.low {
            return Some(three_digits((lowest / STEP).max(self.low)));
        }
        if found.missed_per_s.is_none() && highest < self.high {
            return Some(three_digits((highest * STEP).min(self.high)));
        }
        self.in_widest_gap(&found)
    }

    /// A rate within the wider of the gaps below the first and above the last undecided rate.
    fn in_widest_gap(&self, found: &FoundRate) -> Option<f64> {
        let undecided = &found.undecided_per_s;
        let (below, above) = match (undecided.first(), undecided.last()) {
            (Some(first), Some(last)) => (
                found.met_per_s.map(|met| (met, *first)),
                found.missed_per_s.map(|missed| (*last, missed)),
            ),
            _ => (found.met_per_s.zip(found.missed_per_s), None),
        };
        let factor = |gap: &(f64, f64)| gap.1 / gap.0;
        let gaps = below.into_iter().chain(above);
        let widest = gaps.max_by(|a, b| factor(a).total_cmp(&factor(b)))?;
        let middle = three_digits((widest.0 * widest.1).sqrt());
        let is_new = middle > widest.0 && middle < widest.1;
        (factor(&widest) > self.precision && is_new).then_some(middle)
    }

    /// Takes note of a verdict.
    pub fn record(&mut self, rate_per_s: f64, verdict: RateVerdict) {
        self.tried.push(JudgedRate {
            rate_per_s,
            verdict,
        });
    }

    /// Whether all rates that a search may try were tried.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.tried.len() >= MOST_RATES
    }

    /// The rates in ascending order, with their verdicts.
    #[must_use]
    pub fn judged(&self) -> Vec<JudgedRate> {
        let mut all = self.tried.clone();
        all.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        all
    }

    /// What the verdicts so far bracket.
    #[must_use]
    pub fn found(&self) -> FoundRate {
        let all = self.judged();
        let of = |verdict: RateVerdict| {
            let mine = all.iter().filter(move |one| one.verdict == verdict);
            mine.map(|one| one.rate_per_s)
        };
        let missed_per_s = of(RateVerdict::Missed).next();
        let ceiling = missed_per_s.unwrap_or(f64::INFINITY);
        let met_per_s = of(RateVerdict::Met).rfind(|rate| *rate < ceiling);
        let floor = met_per_s.unwrap_or(0.0);
        FoundRate {
            met_per_s,
            missed_per_s,
            undecided_per_s: of(RateVerdict::Undecided)
                .filter(|rate| *rate > floor && *rate < ceiling)
                .collect(),
            met_above_per_s: of(RateVerdict::Met)
                .filter(|rate| *rate > ceiling)
                .collect(),
        }
    }
}
