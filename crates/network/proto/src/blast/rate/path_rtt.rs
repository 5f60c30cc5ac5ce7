//! The path by its round trips: the time without a queue, the delay of the queue, and the target for it.

use stackline_core::time::{Duration, Instant};

/// What was least holds in this half of the time and the next: 5 to 10 s.
const HALF: Duration = Duration(5_000_000_000);
/// The queue may delay by an eighth of the base within these bounds, in seconds.
const TARGET: (f64, f64) = (0.004, 0.016);
/// Half of the delay at which the queue overflowed, but so much at least: a shorter one is the sender's own burst.
const SHALLOW: f64 = 0.001;
/// Weight of the newest sample.
const WEIGHT: f64 = 0.125;

/// Round trips, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlastPathRtt {
    smoothed: f64,
    /// Least of this half and of the one before.
    least: [f64; 2],
    /// Longest of them, likewise, and whether the queue overflowed.
    longest: [f64; 2],
    overflowed: [bool; 2],
    half_began: Instant,
}

impl BlastPathRtt {
    /// Before its first sample.
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

    /// So much was lost that a queue must have been full.
    pub(super) const fn overflow(&mut self) {
        self.overflowed[0] = true;
    }

    /// The round trip of late.
    pub(super) const fn smoothed(&self) -> f64 {
        self.smoothed
    }

    /// The round trip without a queue.
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

    /// How much faster one may go to the target than with the shortest usual one.
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
