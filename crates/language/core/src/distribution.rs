//! The distributions of the language, for sizes (bytes) and for delays (seconds).
//!
//! SPIMS Appendix B names constant, uniform, normal, exponential and bivalue "et cetera"; the others are added here.

use crate::random::Generator;
use alloc::vec::Vec;
use core::fmt;
use rand_distr::{Distribution as _, Exp1, Open01, StandardNormal};
use serde::{Deserialize, Serialize};

/// A distribution with its parameters, in the unit of what is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Always this value.
    Constant(f64),
    /// Uniform between the first and the second value.
    Uniform(f64, f64),
    /// Mean and standard deviation; draws below zero count as zero.
    Normal(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// The first value with the probability in third place, otherwise the second value.
    Bivalue(f64, f64, f64),
    /// Scale (the smallest value) and shape.
    Pareto(f64, f64),
    /// Mean and standard deviation of the value itself (not of its logarithm).
    Lognormal(f64, f64),
    /// Smallest value, most frequent value (mode), largest value.
    Triangular(f64, f64, f64),
    /// One of these values, each with the same probability.
    Empirical(Vec<f64>),
}

/// For each distribution: its name, the names of its parameters, the least number of parameters, and the position of
/// the parameter that is a plain number without a unit. `check` and the manual use it.
pub const TABLE: &[(&str, &[&str], usize, Option<usize>)] = &[
    ("constant", &["value"], 1, None),
    ("uniform", &["low", "high"], 2, None),
    ("normal", &["mean", "sd"], 2, None),
    ("exponential", &["mean"], 1, None),
    (
        "bivalue",
        &["first", "second", "probability of the first"],
        2,
        Some(2),
    ),
    ("pareto", &["scale", "shape"], 2, Some(1)),
    ("lognormal", &["mean", "sd"], 2, None),
    ("triangular", &["least", "mode", "most"], 3, None),
];

/// The smallest permitted shape of a Pareto distribution. With this shape one draw in ten is beyond 10^10 times the
/// scale (`10^(1/shape)`); with a smaller one, draws are too large for a run to end.
const LEAST_SHAPE: f64 = 0.1;

impl Distribution {
    /// Builds a distribution from its name in the language and its parameters.
    ///
    /// # Errors
    /// One sentence that says what is wrong with the name, the number of parameters or their values.
    pub fn build(name: &str, parameters: &[f64]) -> Result<Self, &'static str> {
        if parameters.iter().any(|p| !p.is_finite() || *p < 0.0) {
            return Err("its parameters must be finite and non-negative");
        }
        match (name, parameters) {
            ("constant", &[value]) => Ok(Self::Constant(value)),
            ("uniform", &[low, high]) if low > high => {
                Err("its lower bound is above its upper bound")
            }
            ("uniform", &[low, high]) => Ok(Self::Uniform(low, high)),
            ("normal", &[mean, sd]) => Ok(Self::Normal(mean, sd)),
            ("exponential", &[mean]) => Ok(Self::Exponential(mean)),
            ("bivalue", &[first, second]) => Ok(Self::Bivalue(first, second, 0.5)),
            ("bivalue", &[_, _, p]) if p > 1.0 => Err("its probability is above 1"),
            ("bivalue", &[first, second, p]) => Ok(Self::Bivalue(first, second, p)),
            ("pareto", &[_, shape]) if shape < LEAST_SHAPE => Err(
                "its shape must be at least 0.1: below that, one draw in ten exceeds 10^10 times the scale",
            ),
            ("pareto", &[scale, shape]) => Ok(Self::Pareto(scale, shape)),
            ("lognormal", &[0.0, _]) => Err("its mean must be above 0"),
            ("lognormal", &[mean, sd]) => Ok(Self::Lognormal(mean, sd)),
            ("triangular", &[least, mode, most]) if least > mode || mode > most => {
                Err("its values must ascend")
            }
            ("triangular", &[least, mode, most]) => Ok(Self::Triangular(least, mode, most)),
            _ => Err("it takes a different number of parameters"),
        }
    }

    /// Draws one value; values below zero are returned as zero.
    #[must_use]
    pub fn draw(&self, generator: &mut Generator) -> f64 {
        let value = match self {
            Self::Constant(value) => *value,
            Self::Uniform(low, high) => {
                let u: f64 = Open01.sample(generator);
                low + (high - low) * u
            }
            Self::Normal(mean, sd) => {
                let z: f64 = StandardNormal.sample(generator);
                mean + sd * z
            }
            Self::Exponential(mean) => {
                let e: f64 = Exp1.sample(generator);
                mean * e
            }
            Self::Bivalue(first, second, p) => {
                let u: f64 = Open01.sample(generator);
                if u < *p { *first } else { *second }
            }
            Self::Pareto(scale, shape) => {
                rand_distr::Pareto::new(*scale, *shape).map_or(*scale, |d| d.sample(generator))
            }
            Self::Lognormal(mean, sd) => rand_distr::LogNormal::from_mean_cv(*mean, sd / mean)
                .map_or(*mean, |d| d.sample(generator)),
            Self::Triangular(least, mode, most) => {
                triangular([*least, *mode, *most], Open01.sample(generator))
            }
            Self::Empirical(values) => pick(values, generator),
        };
        value.max(0.0)
    }

    /// Draws a size, rounded to whole bytes, at least `least`.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float-to-int casts saturate"
    )]
    pub fn draw_bytes(&self, generator: &mut Generator, least: u64) -> u64 {
        ((self.draw(generator) + 0.5) as u64).max(least)
    }

    /// The value that every draw gives, if the distribution is constant.
    #[must_use]
    pub fn constant(&self) -> Option<f64> {
        match self {
            Self::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// The mean of the draws, in their own unit; `None` where it is infinite.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let mean = match self {
            Self::Constant(value) => *value,
            Self::Uniform(low, high) => f64::midpoint(*low, *high),
            Self::Normal(mean, sd) => rectified_normal(*mean, *sd),
            Self::Exponential(mean) | Self::Lognormal(mean, _) => *mean,
            Self::Bivalue(first, second, p) => p * first + (1.0 - p) * second,
            Self::Pareto(scale, shape) if *shape > 1.0 => shape * scale / (shape - 1.0),
            Self::Pareto(..) => f64::INFINITY,
            Self::Triangular(least, mode, most) => (least + mode + most) / 3.0,
            Self::Empirical(values) => values.iter().sum::<f64>() / count(values.len().max(1)),
        };
        mean.is_finite().then_some(mean)
    }

    /// The variance of the draws, in the square of their unit; `None` where it is infinite.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        let variance = match self {
            Self::Constant(_) => 0.0,
            Self::Uniform(low, high) => (high - low) * (high - low) / 12.0,
            Self::Normal(mean, sd) => rectified_normal_variance(*mean, *sd),
            Self::Exponential(mean) => mean * mean,
            Self::Lognormal(_, sd) => sd * sd,
            Self::Bivalue(first, second, p) => p * (1.0 - p) * (first - second) * (first - second),
            Self::Pareto(scale, shape) if *shape > 2.0 => {
                shape * scale * scale / ((shape - 1.0) * (shape - 1.0) * (shape - 2.0))
            }
            Self::Pareto(..) => f64::INFINITY,
            Self::Triangular(a, b, c) => (a * a + b * b + c * c - a * b - a * c - b * c) / 18.0,
            Self::Empirical(values) => {
                let mean = self.mean()?;
                let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
                squares / count(values.len().max(1))
            }
        };
        variance.is_finite().then_some(variance.max(0.0))
    }

    /// The smallest and the largest possible draw; the largest is infinite where there is no upper bound.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        match self {
            Self::Normal(mean, sd) if *sd > 0.0 || *mean <= 0.0 => (0.0, f64::INFINITY),
            Self::Exponential(_) => (0.0, f64::INFINITY),
            Self::Lognormal(_, sd) if *sd > 0.0 => (0.0, f64::INFINITY),
            Self::Pareto(scale, _) => (*scale, f64::INFINITY),
            _ => self.bounds(),
        }
    }

    /// The smallest and the largest draw; for an unbounded distribution, its mean (or scale) twice.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        match self {
            Self::Constant(value) => (*value, *value),
            Self::Uniform(low, high) | Self::Triangular(low, _, high) => (*low, *high),
            Self::Bivalue(a, b, _) => (a.min(*b), a.max(*b)),
            Self::Normal(mean, _) | Self::Exponential(mean) | Self::Lognormal(mean, _) => {
                (*mean, *mean)
            }
            Self::Pareto(scale, _) => (*scale, *scale),
            Self::Empirical(values) => values
                .iter()
                .fold((f64::INFINITY, 0.0), |(low, high), value| {
                    (value.min(low), value.max(high))
                }),
        }
    }

    /// The median: half of the draws do not exceed it.
    #[must_use]
    pub fn median(&self) -> f64 {
        match self {
            Self::Constant(value) | Self::Normal(value, _) => *value,
            Self::Uniform(low, high) => f64::midpoint(*low, *high),
            Self::Exponential(mean) => mean * core::f64::consts::LN_2,
            Self::Bivalue(first, second, p) => *(if *p >= 0.5 { first } else { second }),
            Self::Pareto(scale, shape) => scale * libm::exp2(1.0 / shape),
            // The exponential of the logarithm's mean.
            Self::Lognormal(mean, sd) => mean / libm::sqrt(1.0 + (sd / mean) * (sd / mean)),
            Self::Triangular(least, mode, most) => triangular([*least, *mode, *most], 0.5),
            Self::Empirical(values) => {
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                let (below, above) = (
                    sorted.get(sorted.len().saturating_sub(1) / 2),
                    sorted.get(sorted.len() / 2),
                );
                below
                    .zip(above)
                    .map_or(0.0, |(below, above)| f64::midpoint(*below, *above))
            }
        }
    }
}

/// The mean of max(0, X) for X normal: `m Phi(m/s) + s phi(m/s)`; draws below zero count as zero.
fn rectified_normal(mean: f64, sd: f64) -> f64 {
    if sd <= 0.0 {
        return mean.max(0.0);
    }
    let z = mean / sd;
    // Phi(z), in a form that keeps small values exact.
    let below = 0.5 * libm::erfc(-z / core::f64::consts::SQRT_2);
    let density = libm::exp(-z * z / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI);
    mean * below + sd * density
}

/// The variance of max(0, X) for X normal: `(m^2 + s^2) Phi(m/s) + m s phi(m/s)` minus the square of its mean.
fn rectified_normal_variance(mean: f64, sd: f64) -> f64 {
    if sd <= 0.0 {
        return 0.0;
    }
    let z = mean / sd;
    let below = 0.5 * libm::erfc(-z / core::f64::consts::SQRT_2);
    let density = libm::exp(-z * z / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI);
    let of_rectified = rectified_normal(mean, sd);
    (mean * mean + sd * sd) * below + mean * sd * density - of_rectified * of_rectified
}

/// The quantile of a triangular distribution: `share` of its draws do not exceed the result.
fn triangular([least, mode, most]: [f64; 3], share: f64) -> f64 {
    if share * (most - least) < mode - least {
        least + libm::sqrt(share * (most - least) * (mode - least))
    } else {
        most - libm::sqrt((1.0 - share) * (most - least) * (most - mode))
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
const fn count(values: usize) -> f64 {
    values as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an index below the length"
)]
/// One of the values, drawn with equal probability; 0 when there is none.
fn pick(values: &[f64], generator: &mut Generator) -> f64 {
    let u: f64 = Open01.sample(generator);
    values
        .get((u * values.len() as f64) as usize)
        .copied()
        .unwrap_or(0.0)
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(v) => write!(f, "constant({v})"),
            Self::Uniform(a, b) => write!(f, "uniform({a}, {b})"),
            Self::Normal(a, b) => write!(f, "normal({a}, {b})"),
            Self::Exponential(a) => write!(f, "exponential({a})"),
            Self::Bivalue(a, b, p) => write!(f, "bivalue({a}, {b}, {p})"),
            Self::Pareto(a, b) => write!(f, "pareto({a}, {b})"),
            Self::Lognormal(a, b) => write!(f, "lognormal({a}, {b})"),
            Self::Triangular(a, b, c) => write!(f, "triangular({a}, {b}, {c})"),
            Self::Empirical(values) => write!(f, "empirical({} values)", values.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;

    fn mean_and_sd(d: &Distribution) -> (f64, f64) {
        let mut generator = Seed::root(7).generator();
        let n = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let v = d.draw(&mut generator);
            sum += v;
            squares += v * v;
        }
        let mean = sum / f64::from(n);
        let variance = squares / f64::from(n) - mean * mean;
        // The square root by Newton's method: there is no libm here.
        let mut root = 1.0;
        for _ in 0..60 {
            root = 0.5 * (root + variance.max(1e-30) / root);
        }
        (mean, root)
    }

    #[test]
    fn moments_are_what_the_parameters_say() {
        let cases = [
            (Distribution::Uniform(1.0, 3.0), 2.0, 0.577),
            (Distribution::Normal(100.0, 10.0), 100.0, 10.0),
            (Distribution::Normal(1.0, 2.0), 1.396, 1.488),
            (Distribution::Exponential(5.0), 5.0, 5.0),
            (Distribution::Bivalue(1.0, 11.0, 0.9), 2.0, 3.0),
            (Distribution::Pareto(1.0, 4.0), 1.333, 0.471),
            (Distribution::Lognormal(10.0, 3.0), 10.0, 3.0),
            (Distribution::Triangular(1.0, 2.0, 6.0), 3.0, 1.080),
        ];
        for (d, mean, sd) in cases {
            let (m, s) = mean_and_sd(&d);
            assert!(
                (m - mean).abs() < 0.02 * mean,
                "{d}: mean {m}, expected {mean}"
            );
            assert!((s - sd).abs() < 0.05 * sd, "{d}: sd {s}, expected {sd}");
            let stated = libm::sqrt(d.variance().unwrap());
            assert!(
                (s - stated).abs() < 0.05 * sd,
                "{d}: sd {s}, stated {stated}"
            );
        }
    }

    #[test]
    fn some_have_no_variance_or_no_bound() {
        assert_eq!(Distribution::Pareto(1.0, 2.0).variance(), None);
        let of = |d: Distribution| d.range();
        assert_eq!(of(Distribution::Uniform(1.0, 3.0)), (1.0, 3.0));
        assert_eq!(of(Distribution::Exponential(1.0)), (0.0, f64::INFINITY));
        assert_eq!(of(Distribution::Pareto(2.0, 3.0)), (2.0, f64::INFINITY));
        assert_eq!(of(Distribution::Normal(2.0, 0.0)), (2.0, 2.0));
    }

    #[test]
    fn every_name_in_the_table_builds() {
        for (name, parameters, least, _) in TABLE {
            for n in *least..=parameters.len() {
                // In ascending order, and each could be a probability.
                let values = [0.2, 0.3, 0.5];
                assert!(
                    Distribution::build(name, &values[..n]).is_ok(),
                    "{name} with {n}"
                );
            }
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert!(Distribution::build("uniform", &[3.0, 1.0]).is_err());
        assert!(Distribution::build("bivalue", &[3.0, 1.0, 1.5]).is_err());
        assert!(Distribution::build("normal", &[1.0]).is_err());
        assert!(Distribution::build("triangular", &[1.0, 4.0, 3.0]).is_err());
        assert!(Distribution::build("exponential", &[f64::NAN]).is_err());
    }

    #[test]
    fn a_shape_with_draws_beyond_all_bounds_is_refused() {
        for shape in [0.0, 0.0001, 0.0999] {
            assert!(
                Distribution::build("pareto", &[100.0, shape])
                    .is_err_and(|why| why.contains("shape")),
                "{shape}"
            );
        }
        assert_eq!(
            Distribution::build("pareto", &[100.0, 0.1]),
            Ok(Distribution::Pareto(100.0, 0.1))
        );
    }

    #[test]
    fn means_and_medians_of_draws() {
        let of = |d: Distribution| (d.mean(), d.median());
        assert_eq!(of(Distribution::Constant(3.0)), (Some(3.0), 3.0));
        assert_eq!(of(Distribution::Uniform(1.0, 3.0)), (Some(2.0), 2.0));
        assert_eq!(of(Distribution::Bivalue(1.0, 2.0, 0.25)), (Some(1.75), 2.0));
        assert_eq!(of(Distribution::Pareto(3.0, 4.0)).0, Some(4.0));
        assert_eq!(of(Distribution::Pareto(3.0, 1.0)), (None, 6.0));
        assert_eq!(
            of(Distribution::Triangular(1.0, 1.0, 9.0)),
            (Some(11.0 / 3.0), 9.0 - libm::sqrt(32.0))
        );
        assert_eq!(
            of(Distribution::Triangular(1.0, 3.0, 5.0)),
            (Some(3.0), 3.0)
        );
        assert_eq!(
            of(Distribution::Triangular(2.0, 2.0, 2.0)),
            (Some(2.0), 2.0)
        );
        assert_eq!(
            of(Distribution::Empirical(alloc::vec![5.0, 1.0])),
            (Some(3.0), 3.0)
        );
        // Half of a normal about zero is cut off: what is left has the mean sd / sqrt(2 pi).
        let cut = Distribution::Normal(0.0, 1.0).mean().unwrap();
        assert!((cut - 0.398_942_280_401_432_7).abs() < 1e-12, "{cut}");
    }
}
