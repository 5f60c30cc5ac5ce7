//! Statistics of a sample: n, mean, standard deviation, percentiles, and the 95 % interval of the mean.
//!
//! A figure for which the sample is too small is absent: one value has no standard deviation and no interval.

use serde::Serialize;
use stackline_core::run_record::Histogram;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Figures of one sample, in the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SampleStatistics {
    /// How many values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Standard deviation of the sample (n - 1); absent for one value.
    pub sd: Option<f64>,
    /// The least value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Half of the values are not above it.
    pub median: f64,
    /// 90 % are not above it.
    pub p90: f64,
    /// 99 % are not above it.
    pub p99: f64,
    /// 99.9 % are not above it.
    pub p999: f64,
    /// 95 % interval of the mean by Student's t; absent for one value.
    pub ci95: Option<(f64, f64)>,
}

impl SampleStatistics {
    /// Statistics of single values; `None` without values. Percentiles are interpolated linearly between the two values next to rank
    /// `1 + p (n - 1)`.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        // Rounding may put the mean of equal values beside them.
        let mean = (sorted.iter().sum::<f64>() / to_f64(n as u64)).clamp(min, max);
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = (n > 1).then(|| (squares / to_f64(n as u64 - 1)).sqrt());
        let percentile = |p| between(&sorted, p);
        Some(Self::new(n as u64, mean, sd, [min, max], percentile))
    }

    fn new(
        n: u64,
        mean: f64,
        sd: Option<f64>,
        [min, max]: [f64; 2],
        percentile: impl Fn(f64) -> f64,
    ) -> Self {
        Self {
            n,
            mean,
            sd,
            min,
            max,
            median: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
            p999: percentile(0.999),
            ci95: interval(n, mean, sd),
        }
    }

    /// Statistics of a histogram's values times `scale`; `None` if it is empty. Mean and deviation come from exact sums; a percentile is
    /// the value at rank `p n`, rounded up, with the resolution of the histogram. The interval assumes independent values: for calls of
    /// several runs use [`Self::from_runs`].
    #[must_use]
    pub fn from_histogram(histogram: &Histogram, scale: f64) -> Option<Self> {
        let n = histogram.n();
        let first = histogram.counts.first()?.0;
        let last = histogram.counts.last()?.0;
        let (least, largest) = histogram.min_max.unwrap_or((first, last));
        let (min, max) = (to_f64(least) * scale, to_f64(largest) * scale);
        let mean = (to_f64(histogram.sum) / to_f64(n.max(1)) * scale).clamp(min, max);
        let sd = (n > 1).then(|| deviation(histogram, n) * scale);
        let percentile = |p| to_f64(value_at_rank(histogram, n, p).clamp(least, largest)) * scale;
        Some(Self::new(n, mean, sd, [min, max], percentile))
    }

    /// Statistics of the histograms of several runs. Calls within one run are not independent of each other, so with two runs or more
    /// the interval comes from the runs' means, each weighted by its number of calls. With one run it comes from the calls, and the
    /// caller must report that.
    #[must_use]
    pub fn from_runs(runs: &[Histogram], scale: f64) -> Option<Self> {
        let pooled = Self::from_histogram(&Histogram::merged(runs), scale)?;
        let sums: Vec<(u64, u64)> = runs
            .iter()
            .map(|run| (run.n(), run.sum))
            .filter(|(n, _)| *n > 0)
            .collect();
        if sums.len() < 2 {
            return Some(pooled);
        }
        let half = cluster_half_width(&sums).map(|half| half * scale);
        Some(Self {
            ci95: half.map(|half| (pooled.mean - half, pooled.mean + half)),
            ..pooled
        })
    }

    /// Half the width of the interval.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.ci95.map(|(low, high)| (high - low) / 2.0)
    }

    /// Standard deviation over the mean.
    #[must_use]
    pub fn normalised_sd(&self) -> Option<f64> {
        self.sd.filter(|_| self.mean > 0.0).map(|sd| sd / self.mean)
    }
}

/// Half width of the 95 % interval of the mean of all values, from `(n, sum)` of each run: the ratio estimator of
/// cluster sampling (Cochran, "Sampling Techniques", section 6.3). With equal `n` it is Student's t over the runs' means.
pub(crate) fn cluster_half_width(runs: &[(u64, u64)]) -> Option<f64> {
    let (k, n) = (
        runs.len() as u64,
        runs.iter().map(|(n, _)| to_f64(*n)).sum::<f64>(),
    );
    let mean = runs.iter().map(|(_, sum)| to_f64(*sum)).sum::<f64>() / n;
    let squares: f64 = runs
        .iter()
        .map(|(n, sum)| (to_f64(*sum) - mean * to_f64(*n)).powi(2))
        .sum();
    (k > 1 && n > 0.0)
        .then(|| t_quantile(to_f64(k - 1)) * (squares * to_f64(k) / to_f64(k - 1)).sqrt() / n)
}

/// The 97.5 % quantile of Student's t: 95 % lie within plus and minus it.
#[must_use]
pub fn t_quantile(freedom: f64) -> f64 {
    // Above this, the search in statrs loses digits (1.83 at 1e7), while four terms of the series are exact to nine digits.
    const SERIES: f64 = 100.0;
    if freedom > SERIES {
        return t_series(freedom);
    }
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

/// The same quantile as a series in 1 / freedom around the normal quantile (Abramowitz and Stegun 26.7.5).
fn t_series(freedom: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let z = |power: i32| Z.powi(power);
    let first = (z(3) + Z) / 4.0;
    let second = (5.0 * z(5) + 16.0 * z(3) + 3.0 * Z) / 96.0;
    let third = (3.0 * z(7) + 19.0 * z(5) + 17.0 * z(3) - 15.0 * Z) / 384.0;
    Z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

fn interval(n: u64, mean: f64, sd: Option<f64>) -> Option<(f64, f64)> {
    let half = t_quantile(to_f64(n - 1)) * sd? / to_f64(n).sqrt();
    Some((mean - half, mean + half))
}

fn deviation(histogram: &Histogram, n: u64) -> f64 {
    let sum = to_f64(histogram.sum);
    // Rounding may make it negative where all values are equal.
    ((histogram.squares - sum * sum / to_f64(n)).max(0.0) / to_f64(n - 1)).sqrt()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank between 0 and n - 1"
)]
fn between(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len() - 1;
    let rank = p * to_f64(last as u64);
    let (low, share) = (rank.floor() as usize, rank.fract());
    let (low, high) = (sorted[low.min(last)], sorted[(low + 1).min(last)]);
    (low + (high - low) * share).clamp(low, high)
}

/// The value at rank `p n`, rounded up, of the `n` values of a histogram; 0 if it is empty.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank between 1 and n"
)]
pub(crate) fn value_at_rank(histogram: &Histogram, n: u64, p: f64) -> u64 {
    // A product such as 0.07 * 100 may be slightly above a whole number; that must not count as one more rank.
    let rank = (p * to_f64(n) * (1.0 - 1e-12)).ceil() as u64;
    let mut passed = 0;
    let at = histogram.counts.iter().find(|(_, count)| {
        passed += count;
        passed >= rank
    });
    at.or(histogram.counts.last())
        .map_or(0, |(value, _)| *value)
}

/// How many values a percentile needs: with fewer, no value would lie above it.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to int casts saturate"
)]
pub fn values_needed(percent: f64) -> u64 {
    // 99.99 has no exact binary form, so the quotient is slightly above 10000.
    (100.0 / (100.0 - percent) * (1.0 - 1e-6)).ceil() as u64
}

/// A percentile, in seconds, of times in ns, by rank as in [`SampleStatistics::from_histogram`]; `None` with too few values.
pub(crate) fn percentile(times: &Histogram, percent: f64) -> Option<f64> {
    let n = times.n();
    let (least, largest) = times.min_max.unwrap_or((0, u64::MAX));
    let value = || to_f64(value_at_rank(times, n, percent / 100.0).clamp(least, largest)) * 1e-9;
    (n > 0 && n >= values_needed(percent)).then(value)
}

/// The median of single values (of an even number, the mean of the two in the middle); `None` without values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    // `get` has found a value, so there is at least one.
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The median of single values (of an even number, the greater of the two in the middle); 0 without values.
pub(crate) fn upper_median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sums and counts; relative error 1e-16"
)]
pub(crate) fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
pub(crate) mod tests;
