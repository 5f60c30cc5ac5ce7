//! Random early detection (Floyd and Jacobson 1993), the gentle variant: the longer the queue has been on average, the
//! more packets are dropped or marked at arrival, spread evenly instead of in clusters.

use super::Admission;
use crate::bernoulli;
use stackline_core::random::{Generator, Seed};
use stackline_core::time::Instant;

/// The average length of a queue, and the drop probability that follows from it.
#[derive(Clone, Debug)]
pub struct Red {
    /// Average length in bytes from which packets are dropped or marked.
    min: f64,
    /// Average length in bytes at which the probability is `most`.
    max: f64,
    /// The drop probability at an average of `max`, 0 to 1.
    most: f64,
    /// The weight of the newest length in the average, 0 to 1.
    weight: f64,
    /// Average length in bytes.
    average: f64,
    /// Packets taken since the last early drop, while the average is above the minimum.
    taken: u32,
    generator: Generator,
}

impl Red {
    /// Below an average of `min_bytes` nothing is dropped; the probability rises to `most` at `max_bytes`, from there
    /// to 1 at twice `max_bytes`. `weight` is the newest length's weight in the average, 0 to 1.
    #[must_use]
    pub fn new(min_bytes: u64, max_bytes: u64, most: f64, weight: f64, seed: Seed) -> Self {
        let (min, max) = (min_bytes as f64, max_bytes as f64);
        Self {
            min,
            max,
            most,
            weight,
            average: 0.0,
            taken: 0,
            generator: seed.generator(),
        }
    }

    /// Decides about a packet that finds `backlog_bytes` in the queue.
    ///
    /// `idle_since`: since when the link has been idle, if it is. The average then falls as if packets had left during
    /// that time, each taking `full_packet_ns`.
    pub fn admit(
        &mut self,
        now: Instant,
        backlog_bytes: u64,
        idle_since: Option<Instant>,
        full_packet_ns: u64,
    ) -> Admission {
        match idle_since {
            Some(since) => self.rest(now.since(since).0, full_packet_ns),
            None => self.average += self.weight * (backlog_bytes as f64 - self.average),
        }
        if self.average < self.min {
            self.taken = 0;
            return Admission::Take;
        }
        if self.average >= 2.0 * self.max {
            self.taken = 0;
            return Admission::Forced;
        }
        self.draw()
    }

    /// The average length in bytes.
    #[must_use]
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// Lowers the average by the packets that could have left during an idle time.
    fn rest(&mut self, idle_ns: u64, full_packet_ns: u64) {
        let packets = idle_ns as f64 / full_packet_ns.max(1) as f64;
        self.average *= libm::pow(1.0 - self.weight, packets);
    }

    /// Draws whether the packet is dropped early. The probability grows with the packets taken since the last early
    /// drop, so that the gap between two of them is uniform from 1 to 1 / probability, not geometric.
    fn draw(&mut self) -> Admission {
        let probability = self.probability();
        let spread = 1.0 - f64::from(self.taken) * probability;
        let uniform = if spread > probability {
            probability / spread
        } else {
            // The gap is as long as it may get: 1 / probability packets have been taken.
            1.0
        };
        if bernoulli::draw_bernoulli(uniform, &mut self.generator) {
            self.taken = 0;
            return Admission::Early;
        }
        self.taken += 1;
        Admission::Take
    }

    /// The drop probability that follows from the average length alone.
    fn probability(&self) -> f64 {
        if self.average < self.max {
            self.most * (self.average - self.min) / (self.max - self.min)
        } else {
            self.most + (1.0 - self.most) * (self.average - self.max) / self.max
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const NOW: Instant = Instant(0);

    /// The average is always the present length.
    fn steady(seed: u64) -> Red {
        Red::new(5_000, 15_000, 0.1, 1.0, Seed::root(seed))
    }

    fn early(red: &mut Red, backlog: u64, packets: usize) -> Vec<usize> {
        (0..packets)
            .filter(|_| red.admit(NOW, backlog, None, 1) == Admission::Early)
            .collect()
    }

    #[test]
    fn the_average_follows_the_length_by_its_weight() {
        let mut red = Red::new(5_000, 15_000, 0.1, 0.25, Seed::root(1));
        for (backlog, average) in [(4_000, 1_000.0), (4_000, 1_750.0), (0, 1_312.5)] {
            assert_eq!(red.admit(NOW, backlog, None, 1), Admission::Take);
            assert_eq!(red.average(), average);
        }
    }

    #[test]
    fn it_falls_while_the_link_is_idle() {
        let mut red = Red::new(5_000, 15_000, 0.1, 0.5, Seed::root(1));
        red.average = 8_000.0;
        // Three packets of 10 ns could have left.
        red.admit(Instant(130), 0, Some(Instant(100)), 10);
        assert_eq!(red.average(), 1_000.0);
    }

    #[test]
    fn nothing_below_the_minimum_all_above_twice_the_maximum() {
        let mut red = steady(1);
        assert!((0..10_000).all(|_| red.admit(NOW, 4_999, None, 1) == Admission::Take));
        assert!((0..10_000).all(|_| red.admit(NOW, 30_000, None, 1) == Admission::Forced));
    }

    #[test]
    fn gaps_are_uniform() {
        // Half-way the probability is 0.05, so gaps are 1 to 20, each alike, with a mean of 10.5.
        let mut red = steady(3);
        let at = early(&mut red, 10_000, 210_000);
        let mut gaps = [0.0; 20];
        for pair in at.windows(2) {
            gaps[pair[1] - pair[0] - 1] += 1.0;
        }
        let n = (at.len() - 1) as f64;
        let chi_square: f64 = gaps
            .iter()
            .map(|seen: &f64| (seen - n / 20.0).powi(2) / (n / 20.0))
            .sum();
        // 19 degrees of freedom: 36.2 is exceeded once in a hundred times.
        assert!(chi_square < 36.2, "{chi_square}");
    }

    #[test]
    fn above_the_maximum_it_rises_gently_to_one() {
        let share = |backlog| early(&mut steady(4), backlog, 100_000).len() as f64 / 100_000.0;
        // A probability of 1 / n gives gaps with a mean of (n + 1) / 2.
        assert!(
            (share(15_000) - 2.0 / 11.0).abs() < 0.005,
            "{}",
            share(15_000)
        );
        assert!(share(20_000) < share(25_000) && share(25_000) < share(29_999));
        assert!(share(29_999) > 0.999);
    }

    proptest! {
        #[test]
        fn a_queue_that_was_never_above_the_minimum_loses_nothing(
            lengths in proptest::collection::vec(0_u64..5_000, 1..200), weight in 0.0..=1.0, seed: u64,
        ) {
            let mut red = Red::new(5_000, 15_000, 0.1, weight, Seed::root(seed));
            for backlog in lengths {
                prop_assert_eq!(red.admit(NOW, backlog, None, 1), Admission::Take);
            }
        }

        #[test]
        fn the_average_stays_within_the_lengths(
            steps in proptest::collection::vec((0_u64..1 << 40, proptest::option::of(0_u64..1 << 40)), 1..200), weight in 0.0..=1.0,
        ) {
            let mut red = Red::new(0, 0, 1.0, weight, Seed::root(1));
            for (backlog, idle) in steps {
                let now = Instant(1 << 41);
                red.admit(now, backlog, idle.map(|idle| Instant(now.0 - idle)), 0);
                prop_assert!((0.0..=(1_u64 << 40) as f64).contains(&red.average()));
            }
        }
    }
}
