//! Whether response times fall into two groups, so that their mean describes neither.
//!
//! The histogram's values are taken by their logarithm and split in two where the variance between the groups is
//! largest (Otsu 1979). They count as two groups when each holds at least 5 % of the values, their means lie a factor
//! of 1.5 or more apart, and Ashman's D, the distance of the means in units of their spread, is above 4.5. Cutting one
//! normal distribution in half gives D = 2.6, a uniform one 3.5; two clean modes (a fast path and a sleep) give far more.
//! Samples of fewer than 200 values are never called bimodal.

use crate::statistics::to_f64;
use stackline_core::run_record::Histogram;

/// Fewer values than this may form two groups by chance: about one in a thousand uniform samples of 50 values does.
const LEAST_VALUES: u64 = 200;
/// Least share of the values in each group.
const LEAST_SHARE: f64 = 0.05;
/// Least ratio of the (geometric) means of the two groups.
const LEAST_FACTOR: f64 = 1.5;
/// Least Ashman's D.
const LEAST_D: f64 = 4.5;

/// Whether the values fall into two groups.
#[must_use]
pub fn is_bimodal(histogram: &Histogram) -> bool {
    let weights: Vec<(f64, f64)> = histogram
        .counts
        .iter()
        .map(|(value, n)| (to_f64((*value).max(1)).ln(), to_f64(*n)))
        .collect();
    histogram.n() >= LEAST_VALUES && split(&weights).is_some_and(|(low, high)| apart(&low, &high))
}

/// Sums of one group: number, sum and sum of squares of the logarithms.
#[derive(Clone, Copy, Debug, Default)]
struct LogTimeSums {
    n: f64,
    sum: f64,
    squares: f64,
}

impl LogTimeSums {
    fn plus(self, value: f64, n: f64) -> Self {
        Self {
            n: self.n + n,
            sum: self.sum + n * value,
            squares: self.squares + n * value * value,
        }
    }

    fn without(self, part: Self) -> Self {
        Self {
            n: self.n - part.n,
            sum: self.sum - part.sum,
            squares: self.squares - part.squares,
        }
    }

    fn mean(&self) -> f64 {
        self.sum / self.n
    }

    fn variance(&self) -> f64 {
        // Rounding may make it negative where all values are equal.
        (self.squares / self.n - self.mean().powi(2)).max(0.0)
    }
}

/// Otsu's split: the two groups with the largest variance between them. `weights` has (logarithm of a value, number of such values)
/// in ascending order; `None` with fewer than two different values.
fn split(weights: &[(f64, f64)]) -> Option<(LogTimeSums, LogTimeSums)> {
    let all = weights
        .iter()
        .fold(LogTimeSums::default(), |group, (value, n)| {
            group.plus(*value, *n)
        });
    let mut low = LogTimeSums::default();
    let mut best: Option<(f64, LogTimeSums)> = None;
    // Without the last value, so that the high group is never empty.
    for (value, n) in &weights[..weights.len().saturating_sub(1)] {
        low = low.plus(*value, *n);
        let high = all.without(low);
        let between = low.n * high.n * (high.mean() - low.mean()).powi(2);
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, low));
        }
    }
    best.map(|(_, low)| (low, all.without(low)))
}

/// Whether two groups are far enough apart to count as two modes.
fn apart(low: &LogTimeSums, high: &LogTimeSums) -> bool {
    let shares = low.n.min(high.n) / (low.n + high.n);
    let distance = high.mean() - low.mean();
    // Ashman's D is sqrt(2) x distance / spread; below it is multiplied out, as the spread may be
    // 0.
    let spread = (low.variance() + high.variance()).sqrt();
    shares >= LEAST_SHARE
        && distance >= LEAST_FACTOR.ln()
        && distance * 2.0_f64.sqrt() > LEAST_D * spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stackline_core::distribution::Distribution;
    use stackline_core::random::Seed;
    use std::collections::BTreeMap;

    /// Draws in seconds, kept in ns to three digits as a world does.
    fn drawn(distributions: &[(Distribution, usize)], seed: u64) -> Histogram {
        let mut generator = Seed::root(seed).generator();
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (distribution, n) in distributions {
            for _ in 0..*n {
                let ns = distribution.draw_bytes(&mut generator, 1);
                let step = 10_u64.pow(ns.ilog10().saturating_sub(2));
                *counts.entry(ns / step * step).or_default() += 1;
            }
        }
        Histogram {
            counts: counts.into_iter().collect(),
            ..Histogram::default()
        }
    }

    fn flagged(distribution: Distribution, n: usize, seed: u64) -> bool {
        is_bimodal(&drawn(&[(distribution, n)], seed))
    }

    proptest! {
        #[test]
        fn one_mode_is_not_flagged(seed in any::<u64>(), n in 50_usize..1500, mean in 1e3..1e6_f64, cv in 0.01..1.0_f64) {
            prop_assert!(!flagged(Distribution::Normal(mean, mean * cv.min(0.4)), n, seed));
            prop_assert!(!flagged(Distribution::Exponential(mean), n, seed));
            prop_assert!(!flagged(Distribution::Lognormal(mean, mean * cv), n, seed));
            prop_assert!(!flagged(Distribution::Uniform(mean * (1.0 - cv), mean * (1.0 + cv)), n, seed));
            prop_assert!(!flagged(Distribution::Constant(mean), n, seed));
        }

        #[test]
        fn a_fast_path_and_a_sleep_are_flagged(seed in any::<u64>(), share in 0.1..0.9_f64) {
            let n = (1000.0 * share) as usize;
            let mix = [(Distribution::Lognormal(6.4e3, 0.8e3), n), (Distribution::Lognormal(80e3, 10e3), 1000 - n)];
            prop_assert!(is_bimodal(&drawn(&mix, seed)));
        }
    }

    #[test]
    fn few_values_and_rare_outliers_are_not_two_groups() {
        assert!(!is_bimodal(&Histogram::default()));
        assert!(!is_bimodal(&Histogram {
            counts: vec![(10, 90), (1000, 90)],
            ..Histogram::default()
        }));
        assert!(!is_bimodal(&Histogram {
            counts: vec![(10, 990), (1000, 10)],
            ..Histogram::default()
        }));
        assert!(is_bimodal(&Histogram {
            counts: vec![(10, 160), (1000, 40)],
            ..Histogram::default()
        }));
    }
}
