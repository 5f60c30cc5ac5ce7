//! A draw between 0 and 1, and a Bernoulli trial: true with a given probability.

use rand_core::Rng;
use stackline_core::random::Generator;

/// Draws a trial that is true with this probability. It takes exactly one number from the generator; probability 0 is
/// never true, 1 always.
#[inline]
pub(crate) fn draw_bernoulli(probability: f64, generator: &mut Generator) -> bool {
    draw_unit(generator) < probability
}

/// Draws evenly from 0 to below 1. It takes exactly one number from the generator.
#[inline]
pub(crate) fn draw_unit(generator: &mut Generator) -> f64 {
    // The 53 bits that a float can represent.
    (generator.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::random::Seed;

    #[test]
    fn probabilities_zero_and_one_are_certain() {
        let mut generator = Seed::root(1).generator();
        assert!(
            (0..10_000).all(
                |_| !draw_bernoulli(0.0, &mut generator) && draw_bernoulli(1.0, &mut generator)
            )
        );
    }

    #[test]
    fn draws_have_the_given_probability() {
        let mut generator = Seed::root(2).generator();
        let often = (0..100_000)
            .filter(|_| draw_bernoulli(0.3, &mut generator))
            .count();
        // Four standard deviations of a binomial distribution.
        assert!(often.abs_diff(30_000) < 580, "{often}");
    }
}
