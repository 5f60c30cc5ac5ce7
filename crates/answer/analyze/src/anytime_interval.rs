//! An interval of the mean of values that may be looked at after each of them: it holds the mean at every look, all looks together,
//! with the stated probability (a confidence sequence).
//!
//! The values are independent and normally distributed with an unknown standard deviation. For a hypothesis about their mean, the
//! evidence against it is a likelihood ratio of what does not depend on the scale of the values: the mean, in standard deviations
//! from the hypothesis, is drawn from a normal distribution with variance [`EFFECT_VARIANCE`] under the alternative, and the standard
//! deviation has the prior 1/sigma on both sides. That ratio is a martingale that begins with 1 if the hypothesis is true, whatever
//! the standard deviation is, so that it ever reaches 1/p with a probability of at most p (Ville 1939). The interval is what it has
//! not refuted. Robbins 1970 has the mixture for a known deviation, Lai 1976 ("On confidence sequences", section 3) the one for an
//! unknown one; Wang and Ramdas 2024 ("Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance")
//! collect both.

/// The variance of the mean in standard deviations from the hypothesis. It decides where the interval is narrowest, not whether it
/// holds: with 1, changes of about one standard deviation are found soonest.
const EFFECT_VARIANCE: f64 = 1.0;

/// What is known of the mean of a sequence so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnytimeMean {
    /// How many values there were.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// The sum of the squares of their distances from the mean.
    squares: f64,
}

impl AnytimeMean {
    /// The mean of these values.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Self {
        let mut all = Self::default();
        values.iter().for_each(|value| all.add(*value));
        all
    }

    /// Adds the next value (Welford 1962).
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        let before = value - self.mean;
        self.mean += before / count(self.n);
        self.squares += before * (value - self.mean);
    }

    /// The evidence against a mean of `hypothesis`: 1/p refutes it with an error of at most p, over all looks together. Infinity is
    /// possible, and 1 without values.
    #[must_use]
    pub fn evidence_against(&self, hypothesis: f64) -> f64 {
        if self.n == 0 {
            return 1.0;
        }
        let n = count(self.n);
        let growth = n.mul_add(EFFECT_VARIANCE, 1.0);
        let shift = n * (self.mean - hypothesis).powi(2);
        let (whole, rest) = (self.squares + shift, self.squares + shift / growth);
        let log = match rest > 0.0 {
            true => n / 2.0 * (whole / rest).ln(),
            // All values are the hypothesis itself.
            false => 0.0,
        };
        (log - growth.ln() / 2.0).exp()
    }

    /// The probability, at most, that a sequence with this mean is ever as far from it as this one is now.
    #[must_use]
    pub fn chance_of(&self, hypothesis: f64) -> f64 {
        (1.0 / self.evidence_against(hypothesis)).min(1.0)
    }

    /// The interval that holds the mean at every look with a probability of at least 1 - `error_rate`; infinite while there are too
    /// few values to refute anything.
    #[must_use]
    pub fn interval(&self, error_rate: f64) -> (f64, f64) {
        let half = half_width(self.n, self.squares, error_rate);
        (self.mean - half, self.mean + half)
    }

    /// What it would be after `n` values, if mean and spread stay as they are.
    #[must_use]
    pub fn extended_to(&self, n: u64) -> Self {
        let share = (count(n) - 1.0) / (count(self.n) - 1.0).max(1.0);
        Self {
            n,
            squares: self.squares * share,
            ..*self
        }
    }
}

/// Half the width of the interval: the largest distance that is not refuted.
fn half_width(n: u64, squares: f64, error_rate: f64) -> f64 {
    if n == 0 {
        return f64::INFINITY;
    }
    let values = count(n);
    let growth = values.mul_add(EFFECT_VARIANCE, 1.0);
    // Not refuted is (squares + shift) / (squares + shift / growth) < most.
    let most = (2.0 / values * (growth.sqrt() / error_rate).ln()).exp();
    if most >= growth {
        return f64::INFINITY;
    }
    let shift = squares * (most - 1.0) / (1.0 - most / growth);
    (shift / values).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "a number of values, below 2^53")]
const fn count(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::distribution::Distribution;
    use stackline_core::random::{Generator, Seed};

    /// Sequences of each test, and looks at each.
    const SEQUENCES: u64 = 1000;
    const LOOKS: usize = 200;
    const ERROR_RATE: f64 = 0.01;

    fn generator(sequence: u64) -> Generator {
        Seed::root(43).child("pairs").index(sequence).generator()
    }

    /// How many sequences have a look at which the interval does not hold `mean`.
    fn missed(mean: f64, mut draw: impl FnMut(&mut Generator) -> f64) -> usize {
        let is_missed = |sequence: &u64| {
            let (mut generator, mut known) = (generator(*sequence), AnytimeMean::default());
            (0..LOOKS).any(|_| {
                known.add(draw(&mut generator));
                let (low, high) = known.interval(ERROR_RATE);
                let is_outside = mean < low || high < mean;
                assert_eq!(is_outside, known.chance_of(mean) < ERROR_RATE);
                is_outside
            })
        };
        (0..SEQUENCES).filter(is_missed).count()
    }

    #[test]
    fn of_1000_sequences_at_most_10_miss_the_mean_at_any_of_200_looks() {
        // What is drawn is never negative, so the mean is far from 0.
        let normal = Distribution::build("normal", &[1.0, 0.014]).unwrap();
        let missed_by = missed(1.0, |generator| normal.draw(generator));
        println!("{missed_by} of {SEQUENCES}");
        assert!(missed_by <= 10, "{missed_by}");
        // A t interval at each look misses the mean in a large share of the same sequences.
        let fixed = (0..SEQUENCES).filter(|sequence| {
            let (mut generator, mut known) = (generator(*sequence), AnytimeMean::default());
            (0..LOOKS).any(|_| {
                known.add(normal.draw(&mut generator));
                let error = (known.squares / (count(known.n) - 1.0) / count(known.n)).sqrt();
                known.n >= 5 && (known.mean - 1.0).abs() > 2.64 * error
            })
        });
        assert!(fixed.count() > 50);
    }

    #[test]
    fn ratios_of_long_tailed_times_are_within_the_rate() {
        // What both sides of a pair draw from the same distribution is symmetric in its ratio.
        let tail = Distribution::build("exponential", &[0.5]).unwrap();
        let missed_by = missed(0.0, |generator| {
            let [a, b] = [0, 1].map(|_| 1.0 + tail.draw(generator));
            (b / a).ln()
        });
        println!("{missed_by} of {SEQUENCES}");
        assert!(missed_by <= 10, "{missed_by}");
    }

    #[test]
    fn a_change_of_5_percent_at_a_spread_of_1_percent_is_found_in_few_pairs() {
        let time = Distribution::build("normal", &[1.0, 0.01]).unwrap();
        let mut needed: Vec<usize> = (0..SEQUENCES)
            .map(|sequence| {
                let (mut generator, mut known) = (generator(sequence), AnytimeMean::default());
                let found = (1..=LOOKS).find(|_| {
                    let [a, b] = [1.0, 1.05].map(|factor| factor * time.draw(&mut generator));
                    known.add((b / a).ln());
                    known.interval(ERROR_RATE).0 > 0.0
                });
                found.unwrap_or(LOOKS + 1)
            })
            .collect();
        needed.sort_unstable();
        let [median, most] = [needed[500], needed[999]];
        println!("median {median}, most {most} pairs");
        assert!(median <= 8 && most <= 20, "{median} {most}");
    }

    #[test]
    fn equal_values_decide_after_a_few_and_nothing_is_said_before() {
        let equal = |n: usize, value: f64| AnytimeMean::from_values(&vec![value; n]);
        assert_eq!(AnytimeMean::default().interval(0.01).1, f64::INFINITY);
        assert_eq!(
            equal(2, 0.1).interval(0.01),
            (f64::NEG_INFINITY, f64::INFINITY)
        );
        let known = equal(8, 0.125);
        assert_eq!(known.interval(0.01), (0.125, 0.125));
        assert!(known.chance_of(0.0) < 0.01);
        assert_eq!(equal(8, 0.0).chance_of(0.0), 1.0);
        assert_eq!(AnytimeMean::default().chance_of(0.0), 1.0);
    }

    #[test]
    fn evidence_is_that_of_the_formula() {
        // By hand: n = 3, mean 2, squares 2; 14 over 2 + 12 / 4 to the power of 1.5, over the root of 4.
        let known = AnytimeMean::from_values(&[1.0, 2.0, 3.0]);
        let expected = (14.0_f64 / 5.0).powf(1.5) / 2.0;
        assert!((known.evidence_against(0.0) - expected).abs() < 1e-12);
        let more = known.extended_to(30);
        assert!((more.squares - 29.0).abs() < 1e-12 && more.interval(0.01).0 > 0.0);
    }
}
