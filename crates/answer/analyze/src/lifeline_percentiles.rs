//! Exact percentiles of the times of lifelines and segments, by selection, without a histogram or a sketch. The percentiles of
//! measurements are in `statistics`.
//!
//! The percentile p of n values is the value at rank `1 + p (n - 1)` of the sorted values, interpolated linearly between two ranks:
//! type 7 of Hyndman and Fan (1996), `quantile_cont` of SQL.

use serde::Serialize;

/// Figures of one sample of times, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeSpread {
    /// How many values.
    pub n: u64,
    /// The least.
    pub min_ns: i64,
    /// Percentile 0.5.
    pub median_ns: f64,
    /// Their mean.
    pub mean_ns: f64,
    /// Percentile 0.9.
    pub p90_ns: f64,
    /// Percentile 0.99.
    pub p99_ns: f64,
    /// The largest.
    pub max_ns: i64,
}

impl TimeSpread {
    /// Computes the figures; it reorders the values. `None` without values.
    #[must_use]
    pub fn from_values(values: &mut [i64]) -> Option<Self> {
        let n = values.len();
        let (min_ns, max_ns) = (*values.iter().min()?, *values.iter().max()?);
        let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
        let mean_ns = (sum as f64 / n as f64).clamp(min_ns as f64, max_ns as f64);
        // Selection leaves all smaller values below the rank, so the higher percentiles need only the values from there on.
        let mut from = 0;
        let mut percentile = |p: f64| {
            let rank = rank(p, n);
            let (value, low) = between(&mut values[from..], rank - from as f64);
            from += low;
            value
        };
        let (median_ns, p90_ns, p99_ns) = (percentile(0.5), percentile(0.9), percentile(0.99));
        Some(Self {
            n: n as u64,
            min_ns,
            median_ns,
            mean_ns,
            p90_ns,
            p99_ns,
            max_ns,
        })
    }
}

/// The percentile p (0 to 1) of values; it reorders them. `None` without values.
#[must_use]
pub fn continuous(values: &mut [i64], p: f64) -> Option<f64> {
    let n = values.len();
    (n > 0).then(|| between(values, rank(p, n)).0)
}

/// The rank of a percentile among n values, counted from 0, with a fraction.
fn rank(p: f64, n: usize) -> f64 {
    p.clamp(0.0, 1.0) * (n - 1) as f64
}

/// The value at a rank, and the rank rounded down; afterwards all smaller values are below that rank.
fn between(values: &mut [i64], rank: f64) -> (f64, usize) {
    let low = (rank.max(0.0) as usize).min(values.len() - 1);
    let (_, at, above) = values.select_nth_unstable(low);
    let at = *at as f64;
    let share = rank - low as f64;
    let next = above.iter().min().filter(|_| share > 0.0);
    (
        next.map_or(at, |next| at + (*next as f64 - at) * share),
        low,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What DuckDB 2.0.0 says: `select quantile_cont(x, [0.5, 0.9, 0.99])`.
    #[test]
    fn as_duckdb_has_them() {
        for (values, cont) in DUCKDB {
            let p = [0.5, 0.9, 0.99];
            let mut values = values.to_vec();
            let ours = p.map(|p| continuous(&mut values, p).unwrap());
            assert!(
                ours.iter()
                    .zip(cont)
                    .all(|(ours, theirs)| (ours - theirs).abs() < 1e-9),
                "{values:?}: {ours:?}"
            );
            let spread = TimeSpread::from_values(&mut values).unwrap();
            assert_eq!([spread.median_ns, spread.p90_ns, spread.p99_ns], ours);
        }
        assert_eq!(
            (continuous(&mut [], 0.5), TimeSpread::from_values(&mut [])),
            (None, None)
        );
    }

    type Row = (&'static [i64], [f64; 3]);
    const DUCKDB: &[Row] = &[
        (&[7], [7.0; 3]),
        (&[4, -2], [1.0, 3.400_000_000_000_000_4, 3.94]),
        (&[10, 30, 20, 50, 40], [30.0, 46.0, 49.6]),
        (
            &[3, 1, 4, 1, 5, 9, 2, 6, 5, 3],
            [3.5, 6.299_999_999_999_999, 8.73],
        ),
        (
            &[100, 200, 300, 401],
            [250.0, 370.7, 397.969_999_999_999_97],
        ),
    ];

    proptest! {
        #[test]
        fn selection_equals_sorting(mut values in proptest::collection::vec(-1000_i64..1000, 1..200)) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let slow = |p: f64| {
                let rank = p * (sorted.len() - 1) as f64;
                let (low, high) = (sorted[rank as usize] as f64, sorted[rank.ceil() as usize] as f64);
                low + (high - low) * rank.fract()
            };
            let spread = TimeSpread::from_values(&mut values).unwrap();
            for (fast, slow) in [(spread.median_ns, slow(0.5)), (spread.p90_ns, slow(0.9)), (spread.p99_ns, slow(0.99))] {
                prop_assert!((fast - slow).abs() < 1e-6, "{fast} {slow}");
            }
            prop_assert_eq!((spread.min_ns, spread.max_ns), (sorted[0], sorted[sorted.len() - 1]));
        }
    }
}
