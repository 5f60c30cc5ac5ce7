//! What the round trips say of the path: the time without a queue, the delay of the queue, and the target for that
//! delay.

use stackline_core::time::{Duration, Instant};

/// A least round trip is valid in the period in which it was measured and the next: 5 to 10 s.
const HALF: Duration = Duration(5_000_000_000);
/// The target for the queue's delay is an eighth of the base round trip, within these bounds in s.
const TARGET: (f64, f64) = (0.004, 0.016);
/// Where the queue has overflowed, the target is half of its delay then, but at least this in s: a shorter delay is the
/// sender's own burst.
const SHALLOW: f64 = 0.001;
/// The weight of the newest sample in the smoothed round trip.
const WEIGHT: f64 = 0.125;

/// The round trips of a path, in s.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlastPathRtt {
    smoothed: f64,
    /// The least round trip of this period and of the one before.
    least: [f64; 2],
    /// The longest round trip of both periods.
    longest: [f64; 2],
    /// Whether the queue overflowed in them.
    overflowed: [bool; 2],
    /// When this period began.
    half_began: Instant,
}

impl BlastPathRtt {
    /// The state after the first sample.
    pub(super) const fn new(now: Instant, sample: f64) -> Self {
        Self {
            smoothed: sample,
            least: [sample; 2],
            longest: [sample; 2],
            overflowed: [false; 2],
            half_began: now,
        }
    }

    pub(super) fn sample(&mut self, now: Instant, sample: f64) {
        self.smoothed += (sample - self.smoothed) * WEIGHT;
        if now.since(self.half_began) >= HALF {
            self.least = [sample, self.least[0]];
            self.longest = [sample, self.longest[0]];
            self.overflowed = [false, self.overflowed[0]];
            self.half_began = now;
        }
        self.least[0] = self.least[0].min(sample);
        self.longest[0] = self.longest[0].max(sample);
    }

    /// Notes that so much was lost that a queue must have been full.
    pub(super) const fn overflow(&mut self) {
        self.overflowed[0] = true;
    }

    /// The smoothed round trip.
    pub(super) const fn smoothed(&self) -> f64 {
        self.smoothed
    }

    /// The base: the least recent round trip, taken as the one without a queue.
    pub(super) const fn base(&self) -> f64 {
        self.least[0].min(self.least[1])
    }

    /// The delay that a queue may add. In a local network scheduling delays are as long as short queues, so only losses
    /// show these.
    pub(super) const fn target(&self) -> f64 {
        let usual = (self.base() / 8.0).clamp(TARGET.0, TARGET.1);
        if self.base() < TARGET.0 || !(self.overflowed[0] || self.overflowed[1]) {
            return usual;
        }
        let full = self.longest[0].max(self.longest[1]) - self.base();
        usual.min((full / 2.0).max(SHALLOW))
    }

    /// The target in multiples of the least target: how much faster the window may grow towards it.
    pub(super) const fn ease(&self) -> f64 {
        self.target() / TARGET.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_minimum_expires_after_five_to_ten_seconds() {
        let mut path = BlastPathRtt::new(Instant(0), 0.02);
        let mut forgotten = None;
        for tenth in 1..200 {
            path.sample(Instant(tenth * SECOND / 10), 0.06);
            if path.base() > 0.05 && forgotten.is_none() {
                forgotten = Some(tenth);
            }
        }
        assert_eq!(forgotten, Some(100));
        path.sample(Instant(20 * SECOND), 0.02);
        assert!((path.base() - 0.02).abs() < 1e-9);
    }

    #[test]
    fn the_target_is_an_eighth_within_bounds_or_half_of_a_queue_that_overflows() {
        for (base, target) in [
            (0.000_05, 0.004),
            (0.02, 0.004),
            (0.1, 0.0125),
            (0.5, 0.016),
        ] {
            assert!((BlastPathRtt::new(Instant(0), base).target() - target).abs() < 1e-9);
        }
        for (base, longest, target) in [
            (0.02, 0.025, 0.0025),
            (0.02, 0.0201, 0.001),
            (0.000_05, 0.001, 0.004),
        ] {
            let mut path = BlastPathRtt::new(Instant(0), base);
            path.sample(Instant(1), longest);
            path.overflow();
            assert!((path.target() - target).abs() < 1e-9, "{}", path.target());
            path.sample(Instant(6 * SECOND), base);
            path.sample(Instant(12 * SECOND), base);
            assert!((path.target() - 0.004).abs() < 1e-9);
        }
    }
}
