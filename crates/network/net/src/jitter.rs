//! Delay added to packets, reordering and duplication. It holds no packets: it computes when each arrives.

use crate::bernoulli;
use stackline_core::network::{DelaySkipping, Jitter};
use stackline_core::random::{Generator, Seed};
use stackline_core::time::{Duration, Instant};

/// Jitter and duplication on one direction of a link. Each draws from its own generator.
#[derive(Clone, Debug)]
pub struct JitterProcess {
    /// The distribution of the added delay, and the generator that it is drawn with.
    jitter: Option<(Jitter, Generator)>,
    /// The delay added to the last packet, s; `None` before the first.
    added_s: Option<f64>,
    /// Which packets skip the delay.
    skipping: Option<SkippingProcess>,
    /// The probability that a packet arrives twice.
    duplicate: f64,
    duplicates: Generator,
    seed: Seed,
    /// The latest arrival so far; without reordering nothing arrives before it.
    last: Instant,
}

impl JitterProcess {
    /// A process with that jitter; `duplicate` is the probability that a packet arrives twice.
    #[must_use]
    pub fn new(jitter: Option<&Jitter>, duplicate: f64, seed: Seed) -> Self {
        Self {
            jitter: jitter.map(|jitter| (jitter.clone(), seed.child("jitter").generator())),
            added_s: None,
            skipping: None,
            duplicate,
            duplicates: seed.child("duplicate").generator(),
            seed,
            last: Instant(0),
        }
    }

    /// When the next packet arrives, given that it would arrive at `earliest` without jitter: not before that, nor
    /// before the previous one unless packets may overtake each other.
    #[inline]
    pub fn arrival(&mut self, earliest: Instant) -> Instant {
        let Some((jitter, generator)) = &mut self.jitter else {
            return self.in_order(earliest);
        };
        let drawn = jitter.distribution.draw(generator);
        let added = match self.added_s.filter(|_| jitter.correlation > 0.0) {
            Some(before) => jitter.correlation * before + (1.0 - jitter.correlation) * drawn,
            None => drawn,
        };
        self.added_s = Some(added);
        let at = earliest + Duration::from_seconds(added);
        if jitter.reorder {
            at
        } else {
            self.in_order(at)
        }
    }

    /// That instant, or the latest arrival if it is later.
    fn in_order(&mut self, at: Instant) -> Instant {
        self.last = self.last.max(at);
        self.last
    }

    /// Lets packets skip the delay.
    #[must_use]
    pub fn skipping(self, skipping: Option<&DelaySkipping>) -> Self {
        let seed = self.seed.child("skip");
        Self {
            skipping: skipping.map(|skipping| SkippingProcess::new(*skipping, seed)),
            ..self
        }
    }

    /// Whether packets may skip the delay.
    #[must_use]
    pub const fn is_skipping(&self) -> bool {
        self.skipping.is_some()
    }

    /// Whether the next packet skips the delay: it arrives when it leaves.
    #[inline]
    pub fn skips(&mut self) -> bool {
        self.skipping.as_mut().is_some_and(SkippingProcess::skips)
    }

    /// Whether the next packet is duplicated.
    #[inline]
    pub fn duplicated(&mut self) -> bool {
        self.duplicate > 0.0 && bernoulli::draw_bernoulli(self.duplicate, &mut self.duplicates)
    }
}

/// Which packets skip the delay (tc-netem(8), `reorder`).
#[derive(Clone, Debug)]
struct SkippingProcess {
    skipping: DelaySkipping,
    generator: Generator,
    /// The last draw, from 0 to 1, of which the next has a part; `None` before the first.
    drawn: Option<f64>,
    /// Packets that were no candidates or were not chosen since the last one that skipped.
    delayed: u32,
}

impl SkippingProcess {
    fn new(skipping: DelaySkipping, seed: Seed) -> Self {
        Self {
            skipping,
            generator: seed.generator(),
            drawn: None,
            delayed: 0,
        }
    }

    /// Draws once for each candidate.
    fn skips(&mut self) -> bool {
        let Some(candidates_from) = self.skipping.gap.checked_sub(1) else {
            return false;
        };
        if self.delayed < candidates_from {
            self.delayed += 1;
            return false;
        }
        let fresh = bernoulli::draw_unit(&mut self.generator);
        let part = self.skipping.correlation;
        let drawn = part * self.drawn.unwrap_or(fresh) + (1.0 - part) * fresh;
        self.drawn = Some(drawn);
        let skips = drawn < self.skipping.share;
        self.delayed = if skips {
            0
        } else {
            self.delayed.saturating_add(1)
        };
        skips
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use stackline_core::distribution::Distribution;

    fn jitter(distribution: Distribution, reorder: bool, duplicate: f64) -> JitterProcess {
        JitterProcess::new(
            Some(&Jitter {
                distribution,
                reorder,
                correlation: 0.0,
            }),
            duplicate,
            Seed::root(5),
        )
    }

    fn arrivals(mut jitter: JitterProcess, packets: u64) -> Vec<u64> {
        (0..packets)
            .map(|number| jitter.arrival(Instant(number * 1_000_000)).0)
            .collect()
    }

    #[test]
    fn without_jitter_a_packet_arrives_when_it_can() {
        let mut still = JitterProcess::new(None, 0.0, Seed::root(1));
        assert_eq!(still.arrival(Instant(9)), Instant(9));
        assert!((0..1000).all(|_| !still.duplicated()));
    }

    #[test]
    fn a_constant_is_added() {
        assert_eq!(
            arrivals(jitter(Distribution::Constant(2e-3), false, 0.0), 3),
            [2_000_000, 3_000_000, 4_000_000]
        );
    }

    #[test]
    fn the_added_delay_has_the_given_mean() {
        let late = arrivals(jitter(Distribution::Exponential(5e-3), true, 0.0), 100_000);
        let sum: u64 = late
            .iter()
            .enumerate()
            .map(|(number, at)| at - number as u64 * 1_000_000)
            .sum();
        // Four standard deviations of the mean of 100 000 draws.
        assert!((sum / 100_000).abs_diff(5_000_000) < 64_000, "{sum}");
        assert!(
            late.windows(2).any(|pair| pair[1] < pair[0]),
            "some overtake"
        );
    }

    #[test]
    fn neighbours_are_correlated_as_given() {
        for correlation in [0.0, 0.25, 0.8] {
            let given = Jitter {
                distribution: Distribution::Uniform(0.0, 20e-3),
                reorder: true,
                correlation,
            };
            let mut jitter = JitterProcess::new(Some(&given), 0.0, Seed::root(5));
            let n = 200_000_u32;
            let added: Vec<f64> = (0..n)
                .map(|_| jitter.arrival(Instant(0)).0 as f64 / 1e9)
                .collect();
            let mean = added.iter().sum::<f64>() / f64::from(n);
            let variance = added.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
            let covariance = added
                .windows(2)
                .map(|pair| (pair[0] - mean) * (pair[1] - mean))
                .sum::<f64>()
                / f64::from(n);
            assert!((mean - 10e-3).abs() < 0.1e-3, "{correlation}: {mean}");
            // A uniform distribution has the variance width^2 / 12.
            let expected = 400e-6 / 12.0 * (1.0 - correlation) / (1.0 + correlation);
            assert!(
                (variance / expected - 1.0).abs() < 0.03,
                "{correlation}: {variance}"
            );
            let measured = covariance / variance;
            assert!(
                (measured - correlation).abs() < 0.02,
                "{correlation}: {measured}"
            );
        }
    }

    #[test]
    fn chosen_packets_skip_the_delay() {
        let chosen = |share, correlation, gap| -> Vec<bool> {
            let skipping = DelaySkipping {
                share,
                correlation,
                gap,
            };
            let mut process =
                JitterProcess::new(None, 0.0, Seed::root(5)).skipping(Some(&skipping));
            (0..100_000).map(|_| process.skips()).collect()
        };
        let count = |chosen: &[bool]| chosen.iter().filter(|skips| **skips).count();
        // Four standard deviations of a binomial distribution.
        assert!(count(&chosen(0.25, 0.0, 1)).abs_diff(25_000) < 548);
        // netem's example: of each five packets the fifth and those behind it are candidates.
        let every_fifth = chosen(1.0, 0.0, 5);
        assert!((0..100_000).all(|at| every_fifth[at] == (at % 5 == 4)));
        let rare = chosen(0.25, 0.0, 5);
        let gaps: Vec<usize> = rare.split(|skips| *skips).map(<[bool]>::len).collect();
        assert!(gaps.iter().rev().skip(1).all(|gap| *gap >= 4));
        // 4 packets before the first candidate, then 4 candidates in the mean.
        assert!(count(&rare).abs_diff(100_000 / 8) < 450, "{}", count(&rare));
        // A correlated draw is nearer to its mean: fewer are below a quarter, and they come together.
        let together = chosen(0.25, 0.5, 1);
        let pairs = together
            .windows(2)
            .filter(|pair| pair[0] && pair[1])
            .count();
        assert!(pairs as f64 > 1.5 * (count(&together) as f64).powi(2) / 1e5);
        assert!(!JitterProcess::new(None, 0.0, Seed::root(5)).skips());
    }

    #[test]
    fn duplication_changes_no_delay() {
        let mut doubling = jitter(Distribution::Uniform(0.0, 1e-3), true, 0.25);
        let mut duplicated = 0;
        let with: Vec<u64> = (0..10_000)
            .map(|number| {
                duplicated += u32::from(doubling.duplicated());
                doubling.arrival(Instant(number * 1_000_000)).0
            })
            .collect();
        assert_eq!(
            with,
            arrivals(jitter(Distribution::Uniform(0.0, 1e-3), true, 0.0), 10_000)
        );
        // Four standard deviations.
        assert!(duplicated.abs_diff(2500) < 174, "{duplicated}");
    }

    proptest! {
        #[test]
        fn nothing_arrives_early_or_out_of_turn(
            gaps in proptest::collection::vec(0_u64..3_000_000, 1..100), sd in 0.0..5e-3, reorder: bool, seed: u64,
        ) {
            let jitter = Jitter { distribution: Distribution::Normal(1e-3, sd), reorder, correlation: 0.0 };
            let mut jitter = JitterProcess::new(Some(&jitter), 0.0, Seed::root(seed));
            let (mut earliest, mut last) = (Instant(0), Instant(0));
            for gap in gaps {
                earliest += Duration(gap);
                let at = jitter.arrival(earliest);
                prop_assert!(at >= earliest);
                prop_assert!(reorder || at >= last);
                last = at;
            }
        }
    }
}
