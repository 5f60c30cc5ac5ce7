//! Delay added to packets, reordering and duplication. It holds no packets: it computes when each arrives.

use crate::bernoulli;
use stackline_core::network::Jitter;
use stackline_core::random::{Generator, Seed};
use stackline_core::time::{Duration, Instant};

/// Jitter and duplication on one direction of a link. Each draws from its own generator.
#[derive(Clone, Debug)]
pub struct JitterProcess {
    /// The distribution of the added delay, and the generator that it is drawn with.
    jitter: Option<(Jitter, Generator)>,
    /// The probability that a packet arrives twice.
    duplicate: f64,
    duplicates: Generator,
    /// The latest arrival so far; without reordering nothing arrives before it.
    last: Instant,
}

impl JitterProcess {
    /// A process with that jitter; `duplicate` is the probability that a packet arrives twice.
    #[must_use]
    pub fn new(jitter: Option<&Jitter>, duplicate: f64, seed: Seed) -> Self {
        Self {
            jitter: jitter.map(|jitter| (jitter.clone(), seed.child("jitter").generator())),
            duplicate,
            duplicates: seed.child("duplicate").generator(),
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
        let at = earliest + Duration::from_seconds(jitter.distribution.draw(generator));
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

    /// Whether the next packet is duplicated.
    #[inline]
    pub fn duplicated(&mut self) -> bool {
        self.duplicate > 0.0 && bernoulli::draw_bernoulli(self.duplicate, &mut self.duplicates)
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
            let jitter = Jitter { distribution: Distribution::Normal(1e-3, sd), reorder };
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
