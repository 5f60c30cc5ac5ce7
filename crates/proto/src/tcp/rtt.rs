//! The round trip time and the time-out made of it (RFC 6298), with the bounds and the smoothing of Linux: the variation
//! counts as 200 ms at least, rises at once and falls once a round trip.

use stackline_core::time::{Duration, Instant};

/// The variation is taken for at least so much, so no time-out comes earlier.
const VARIATION_LEAST: u64 = 200_000_000;
/// Time-out before there is a sample.
const INITIAL: u64 = 1_000_000_000;
/// Longest time-out.
pub(super) const LONGEST: u64 = 120_000_000_000;
/// How long a minimum holds.
const MINIMUM_HOLDS: u64 = 300_000_000_000;

/// Estimates, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    smoothed: u64,
    deviation: u64,
    /// Largest deviation of this round trip.
    largest: u64,
    variation: u64,
    /// The round trip ends when this place is acknowledged.
    round: u64,
    minimum: u64,
    minimum_at: Instant,
}

impl Default for Rtt {
    fn default() -> Self {
        let minimum = u64::MAX;
        Self { smoothed: 0, deviation: 0, largest: 0, variation: 0, round: 0, minimum, minimum_at: Instant(0) }
    }
}

impl Rtt {
    /// A sample, when everything up to `acknowledged` has arrived and everything up to `next` is sent.
    pub(super) fn sample(&mut self, now: Instant, sample: Duration, acknowledged: u64, next: u64) {
        let sample = sample.0.max(1);
        if sample <= self.minimum || now.since(self.minimum_at).0 > MINIMUM_HOLDS {
            (self.minimum, self.minimum_at) = (sample, now);
        }
        if self.smoothed == 0 {
            self.smoothed = sample;
            self.deviation = sample / 2;
            self.variation = (sample * 2).max(VARIATION_LEAST);
            (self.largest, self.round) = (self.variation, next);
            return;
        }
        self.deviate(sample);
        self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
        if self.deviation * 4 > self.largest {
            self.largest = self.deviation * 4;
            self.variation = self.variation.max(self.largest);
        }
        if acknowledged > self.round {
            if self.largest < self.variation {
                self.variation -= (self.variation - self.largest) / 4;
            }
            (self.round, self.largest) = (next, VARIATION_LEAST);
        }
    }

    /// A sudden fall of the round trip time should not lengthen the time-out, so it counts an eighth.
    const fn deviate(&mut self, sample: u64) {
        let off = sample.abs_diff(self.smoothed);
        if off <= self.deviation {
            self.deviation -= (self.deviation - off) / 4;
        } else if sample < self.smoothed {
            self.deviation += (off - self.deviation) / 32;
        } else {
            self.deviation += (off - self.deviation) / 4;
        }
    }

    pub(super) const fn known(&self) -> bool {
        self.smoothed > 0
    }

    pub(super) const fn smoothed(&self) -> Duration {
        Duration(self.smoothed)
    }

    pub(super) const fn deviation(&self) -> Duration {
        Duration(self.deviation)
    }

    /// The least of late; `None` before there is a sample.
    pub(super) const fn minimum(&self) -> Option<Duration> {
        if self.minimum == u64::MAX { None } else { Some(Duration(self.minimum)) }
    }

    /// The time-out after so many in a row.
    pub(super) fn timeout(&self, backoff: u32) -> Duration {
        let first = if self.smoothed == 0 { INITIAL } else { self.smoothed + self.variation };
        Duration(first.saturating_mul(1 << backoff.min(16)).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_time_out_is_200_ms_above_a_steady_round_trip() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(0), Duration(1000 * MS));
        for n in 0..100 {
            rtt.sample(Instant(n), Duration(40 * MS), n, n + 1);
        }
        assert_eq!(rtt.timeout(0), Duration(240 * MS));
        assert_eq!(rtt.timeout(2), Duration(960 * MS));
        assert_eq!(rtt.timeout(60), Duration(LONGEST));
    }

    #[test]
    fn a_rise_counts_at_once() {
        let mut rtt = Rtt::default();
        (0..50).for_each(|n| rtt.sample(Instant(n), Duration(20 * MS), n, n + 1));
        rtt.sample(Instant(60), Duration(820 * MS), 60, 61);
        assert_eq!(rtt.smoothed(), Duration(120 * MS));
        assert!(rtt.timeout(0) > Duration(700 * MS));
    }
}
