//! The logarithm of the ratio of two means, with its standard error by the delta method: the variance of a mean's logarithm is the
//! variance of the mean over its square.

use crate::statistics::{SampleStatistics, to_f64};

/// The logarithm of a ratio of means. Whoever needs an interval chooses the degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogRatio {
    /// The logarithm of the second mean over the first.
    pub(crate) log: f64,
    /// Its standard error.
    pub(crate) error: f64,
    /// What each side adds to the square of the error.
    variances: [f64; 2],
    /// The number of values of each side.
    values: [u64; 2],
}

impl LogRatio {
    /// The ratio of the second to the first.
    ///
    /// # Errors
    /// Why there is none: a side has fewer than two values, or a mean is not above 0.
    pub(crate) fn new(a: &SampleStatistics, b: &SampleStatistics) -> Result<Self, String> {
        let (Some(sd_a), Some(sd_b)) = (a.sd, b.sd) else {
            return Err(format!(
                "{} and {} counted runs, but each side needs two",
                a.n, b.n
            ));
        };
        if a.mean <= 0.0 || b.mean <= 0.0 {
            return Err("a mean is zero, so no ratio can be formed".to_owned());
        }
        let variance = |s: &SampleStatistics, sd: f64| (sd / s.mean).powi(2) / to_f64(s.n);
        let variances = [variance(a, sd_a), variance(b, sd_b)];
        Ok(Self {
            log: (b.mean / a.mean).ln(),
            error: (variances[0] + variances[1]).sqrt(),
            variances,
            values: [a.n, b.n],
        })
    }

    /// Welch's degrees of freedom (Welch 1947); infinite without any spread.
    pub(crate) fn welch_freedom(&self) -> f64 {
        let [v, w] = self.variances;
        let [n, m] = self.values.map(|values| to_f64(values - 1));
        let sum = v + w;
        if sum > 0.0 {
            sum * sum / (v * v / n + w * w / m)
        } else {
            f64::INFINITY
        }
    }

    /// The degrees of freedom of the smaller side: never more than Welch's, whatever the two spreads are (Hsu 1938).
    pub(crate) fn smaller_freedom(&self) -> f64 {
        to_f64(self.values[0].min(self.values[1]) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(a: &[f64], b: &[f64]) -> Result<LogRatio, String> {
        let of = |values: &[f64]| SampleStatistics::from_values(values).unwrap();
        LogRatio::new(&of(a), &of(b))
    }

    #[test]
    fn error_and_freedom_are_those_of_a_hand_calculation() {
        let found = ratio(&[10.0, 10.1, 9.9], &[20.0, 20.2, 19.8, 20.0]).unwrap();
        // (0.1/10)^2/3 and (0.16330/20)^2/4.
        assert!((found.error - 0.007_071_f64).abs() < 1e-6, "{found:?}");
        assert!((found.log - 2.0_f64.ln()).abs() < 1e-12);
        // 5e-5^2 / (3.3333e-5^2 / 2 + 1.6667e-5^2 / 3)
        assert!((found.welch_freedom() - 3.857).abs() < 1e-3, "{found:?}");
        assert!((found.smaller_freedom() - 2.0).abs() < 1e-12);
        let exact = ratio(&[1.0, 1.0], &[1.0, 1.0]).unwrap();
        assert_eq!((exact.error, exact.welch_freedom()), (0.0, f64::INFINITY));
    }

    #[test]
    fn without_two_values_or_with_a_mean_of_zero_there_is_none() {
        let few = ratio(&[1.0], &[1.0, 2.0]).unwrap_err();
        assert_eq!(few, "1 and 2 counted runs, but each side needs two");
        assert!(
            ratio(&[0.0, 0.0], &[1.0, 2.0])
                .unwrap_err()
                .contains("zero")
        );
    }
}
