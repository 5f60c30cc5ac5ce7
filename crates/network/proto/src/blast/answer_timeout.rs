//! How long a sender waits for an answer: a fixed time, or by the measured round trips (RFC 6298, with a smaller lower
//! bound).
//!
//! Answers name the round they answer, so every answer is a sample, also after a repetition (Karn's rule is not
//! needed).

use super::options::BlastTimeout;
use stackline_core::time::Duration;

/// The wait before there is a sample, in ns.
const FIRST: u64 = 100_000_000;
/// The least time above the smoothed round trip, in ns: what a receiver that sleeps, or shares its processor, takes to
/// wake.
const LEAST: u64 = 4_000_000;
/// How often the wait is doubled at most while nothing is received.
pub const MOST_DOUBLED: u32 = 16;
/// The longest wait, in ns.
const LONGEST: u64 = 8_000_000_000;

/// Why [`super::BlastSender::poll`] has to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastSenderWait {
    /// There is something to send.
    Ready,
    /// The pace allows the next packet.
    Pace,
    /// A request has not been answered.
    Timeout,
    /// A later request was answered before this one.
    Overtaken,
    /// The receiver grants nothing; it is probed.
    Probe,
    /// The peer has been silent for longer than the patience.
    Patience,
}

/// The estimate of round trips, in ns.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    kind: BlastTimeout,
    smoothed: u64,
    variation: u64,
    minimum: u64,
    doubled: u32,
}

impl RttEstimator {
    /// An estimator without a sample.
    #[must_use]
    pub const fn new(kind: BlastTimeout) -> Self {
        Self {
            kind,
            smoothed: 0,
            variation: 0,
            minimum: u64::MAX,
            doubled: 0,
        }
    }

    /// Takes a sample (RFC 6298, section 2).
    pub fn sample(&mut self, rtt: Duration) {
        let sample = rtt.0.max(1);
        self.minimum = self.minimum.min(sample);
        self.doubled = 0;
        if self.smoothed == 0 {
            (self.smoothed, self.variation) = (sample, sample / 2);
            return;
        }
        self.variation = self.variation - self.variation / 4 + self.smoothed.abs_diff(sample) / 4;
        self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
    }

    /// Doubles the wait, which was too short or passed in silence, at most `most` times in a row.
    pub fn back_off(&mut self, most: u32) {
        self.doubled = (self.doubled + 1).min(most);
    }

    /// How long to wait for an answer.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        match self.kind {
            BlastTimeout::Fixed(interval) => interval,
            BlastTimeout::Adaptive => {
                let wait = if self.smoothed == 0 {
                    FIRST
                } else {
                    self.smoothed + (4 * self.variation).max(LEAST)
                };
                Duration(wait.saturating_mul(1 << self.doubled).min(LONGEST))
            }
        }
    }

    /// How long to wait for an answer once a later request was answered; `None` where the wait is fixed.
    #[must_use]
    pub fn overtaken(&self) -> Option<Duration> {
        let known = matches!(self.kind, BlastTimeout::Adaptive) && self.smoothed > 0;
        known.then(|| Duration(self.smoothed + self.smoothed / 4))
    }

    /// The smoothed round trip, once there is one.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        (self.smoothed > 0).then_some(Duration(self.smoothed))
    }

    /// Its variation.
    #[must_use]
    pub const fn variation(&self) -> Duration {
        Duration(self.variation)
    }

    /// The shortest round trip, once there is one.
    #[must_use]
    pub fn minimum(&self) -> Option<Duration> {
        (self.smoothed > 0).then_some(Duration(self.minimum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_round_trips_and_doubles_in_silence() {
        let mut rtt = RttEstimator::new(BlastTimeout::Adaptive);
        assert_eq!(rtt.timeout(), Duration(FIRST));
        (0..100).for_each(|_| rtt.sample(Duration(50_000)));
        assert_eq!(rtt.timeout(), Duration(50_000 + LEAST));
        rtt.back_off(MOST_DOUBLED);
        assert_eq!(rtt.timeout(), Duration(2 * (50_000 + LEAST)));
        rtt.sample(Duration(50_000));
        assert_eq!(rtt.timeout(), Duration(50_000 + LEAST));
    }

    #[test]
    fn it_is_doubled_no_more_often_than_it_may() {
        let mut rtt = RttEstimator::new(BlastTimeout::Adaptive);
        (0..100).for_each(|_| rtt.sample(Duration(50_000)));
        (0..3).for_each(|_| rtt.back_off(1));
        assert_eq!(rtt.timeout(), Duration(2 * (50_000 + LEAST)));
        (0..100).for_each(|_| rtt.back_off(MOST_DOUBLED));
        assert_eq!(rtt.timeout(), Duration(LONGEST));
    }

    #[test]
    fn a_fixed_interval_is_never_anything_else() {
        let mut rtt = RttEstimator::new(BlastTimeout::Fixed(Duration(7)));
        rtt.sample(Duration(50_000));
        rtt.back_off(MOST_DOUBLED);
        assert_eq!((rtt.timeout(), rtt.overtaken()), (Duration(7), None));
    }
}
