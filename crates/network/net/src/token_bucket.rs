//! A token bucket (tc-tbf(8)) without ticks: when a packet may go, and whether it may go now.
//!
//! The state is the instant at which the bucket will be full. A packet's tokens move it by their time at the bucket's
//! rate; a packet may go once it is no more than the time of a whole bucket away (the generic cell rate algorithm of ITU-T
//! I.371 in its virtual scheduling form, for packets of any size). Times have 64 binary places of a nanosecond, so a
//! bucket that is always in use passes exactly its rate.

use crate::transmitter::time_of_a_byte;
use stackline_core::network::TokenBucket;
use stackline_core::time::Instant;

/// The state of a token bucket, which is full at instant zero.
#[derive(Clone, Debug)]
pub struct TokenClock {
    /// The time in which the tokens of a byte flow in, in 2^-64 ns.
    per_byte: u128,
    /// The time in which the empty bucket fills, in 2^-64 ns.
    depth: u128,
    /// When the bucket is full, in 2^-64 ns.
    full_at: u128,
}

impl TokenClock {
    /// A full bucket.
    #[must_use]
    pub fn new(bucket: &TokenBucket) -> Self {
        let per_byte = time_of_a_byte(bucket.bit_s);
        Self {
            per_byte,
            depth: per_byte.saturating_mul(u128::from(bucket.burst_bytes)),
            full_at: 0,
        }
    }

    /// The first instant, not before `at`, at which the tokens for that many bytes are there. More than the depth of the
    /// bucket never are: such a packet goes when the bucket is full.
    #[must_use]
    pub fn ready(&self, at: Instant, bytes: u64) -> Instant {
        let missing = self
            .full_at
            .saturating_add(self.cost(bytes).min(self.depth))
            .saturating_sub(self.depth);
        at.max(Instant(round_up(missing)))
    }

    /// Takes the tokens of a packet that goes at `at`, which [`Self::ready`] returned.
    pub fn take(&mut self, at: Instant, bytes: u64) {
        let at = u128::from(at.0) << 64;
        // A bucket that is full for less than a nanosecond overflowed by the rounding of an instant.
        let begin = if at.saturating_sub(self.full_at) >> 64 == 0 {
            self.full_at
        } else {
            at
        };
        self.full_at = begin.saturating_add(self.cost(bytes));
    }

    /// Whether a packet that comes at `at` finds its tokens; if so, it takes them.
    pub fn conforms(&mut self, at: Instant, bytes: u64) -> bool {
        let conforms = self.cost(bytes) <= self.depth && self.ready(at, bytes) == at;
        if conforms {
            self.take(at, bytes);
        }
        conforms
    }

    const fn cost(&self, bytes: u64) -> u128 {
        self.per_byte.saturating_mul(bytes as u128)
    }
}

/// A time in 2^-64 ns in whole nanoseconds, rounded up.
const fn round_up(time: u128) -> u64 {
    let begun = time as u64 != 0;
    ((time >> 64) as u64).saturating_add(begun as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn bucket(bit_s: f64, burst_bytes: u64) -> TokenClock {
        TokenClock::new(&TokenBucket { bit_s, burst_bytes })
    }

    /// When packets of 1000 bytes that all come at once go.
    fn departures(clock: &mut TokenClock, packets: usize) -> Vec<u64> {
        let mut at = Instant(0);
        (0..packets)
            .map(|_| {
                at = clock.ready(at, 1000);
                clock.take(at, 1000);
                at.0
            })
            .collect()
    }

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        // 8 Mbit/s: 1 ms for 1000 bytes. Three fit into the bucket.
        assert_eq!(
            departures(&mut bucket(8e6, 3000), 6),
            [0, 0, 0, MS, 2 * MS, 3 * MS]
        );
        // Half a packet more: its tokens are there half a millisecond earlier.
        assert_eq!(
            departures(&mut bucket(8e6, 3500), 5),
            [0, 0, 0, MS / 2, 3 * MS / 2]
        );
    }

    #[test]
    fn a_pause_fills_the_bucket_and_no_more() {
        let mut clock = bucket(8e6, 3000);
        departures(&mut clock, 3);
        assert_eq!(clock.ready(Instant(MS / 2), 1000), Instant(MS));
        assert_eq!(clock.ready(Instant(2 * MS), 2000), Instant(2 * MS));
        for (index, goes) in [50, 50, 50, 51].into_iter().enumerate() {
            let at = clock.ready(Instant(50 * MS), 1000);
            assert_eq!(at, Instant(goes * MS), "packet {index}");
            clock.take(at, 1000);
        }
    }

    #[test]
    fn a_policer_passes_what_finds_tokens() {
        let mut clock = bucket(8e6, 2000);
        let passed: Vec<bool> = [0, 0, 0, MS - 1, MS, MS, 3 * MS]
            .map(|at| clock.conforms(Instant(at), 1000))
            .into();
        assert_eq!(passed, [true, true, false, false, true, false, true]);
        assert!(!clock.conforms(Instant(1000 * MS), 2001), "never");
    }

    #[test]
    fn a_bucket_of_one_packet_keeps_its_rate() {
        // 3 Mbit/s: a packet of 1500 bytes takes 4 ms exactly; of 7 Mbit/s, 1714285.714 ns.
        for (bit_s, last) in [(3e6, 3_999_996_000_000), (7e6, 1_714_284_000_000)] {
            let mut clock = bucket(bit_s, 1500);
            let mut at = Instant(0);
            for _ in 0..1_000_000 {
                at = clock.ready(at, 1500);
                clock.take(at, 1500);
            }
            assert!(at.0.abs_diff(last) <= 1, "{bit_s}: {at:?}");
        }
    }

    proptest! {
        /// In no interval more passes than the depth and what flows in.
        #[test]
        fn no_interval_passes_more_than_depth_and_rate(
            rate in 1_000_u64..10_000_000_000, burst in 1500_u64..100_000,
            packets in proptest::collection::vec((0_u64..10_000_000, 40_u64..1500), 1..60),
        ) {
            let mut clock = bucket(rate as f64, burst);
            let (mut now, mut passed) = (Instant(0), Vec::new());
            for (gap, bytes) in packets {
                now = clock.ready(Instant(now.0 + gap), bytes);
                clock.take(now, bytes);
                passed.push((now.0, bytes));
            }
            for first in 0..passed.len() {
                let mut sum = 0;
                for (at, bytes) in &passed[first..] {
                    sum += bytes;
                    let flown = (at - passed[first].0 + 2) as f64 * rate as f64 / 8e9;
                    prop_assert!(sum as f64 <= burst as f64 + flown + 1.0, "{sum} in {} ns", at - passed[first].0);
                }
            }
        }
    }
}
