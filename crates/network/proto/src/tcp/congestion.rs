//! The congestion window: slow start, growth by the chosen algorithm, and the threshold after a loss.

use super::cubic::{Cubic, HyStartInput};
use stackline_core::time::{Duration, Instant};

/// The initial window in segments (RFC 6928).
pub(super) const INITIAL_WINDOW: u32 = 10;
/// The largest window in segments.
const LARGEST: u32 = 1 << 24;

/// The congestion control algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// CUBIC (RFC 9438) with HyStart.
    #[default]
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// BBR: by the delivery rate and the round trip of the path.
    Bbr,
}

impl Algorithm {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        }
    }
}

/// The congestion window and threshold of one sender, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpCongestion {
    pub(super) algorithm: Algorithm,
    pub(super) window: u32,
    pub(super) threshold: u32,
    /// Segments acknowledged towards the next one of the window.
    credit: u32,
    cubic: Cubic,
}

impl TcpCongestion {
    /// `first` is the initial window in segments.
    pub(super) fn new(algorithm: Algorithm, first: u32) -> Self {
        let cubic = Cubic::default();
        Self {
            algorithm,
            window: first.clamp(1, LARGEST),
            threshold: u32::MAX,
            credit: 0,
            cubic,
        }
    }

    pub(super) const fn begin(&mut self, now: Instant, next: u64) {
        self.cubic.begin(now, next);
    }

    pub(super) const fn slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Takes a round-trip sample; HyStart may end slow start by it. `acknowledged` and `next` are places, `allowance`
    /// the time that the sender's own bursts may add.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        rtt: Duration,
        acknowledged: u64,
        next: u64,
        allowance: Duration,
    ) {
        if self.algorithm == Algorithm::Cubic {
            let round = HyStartInput {
                window: self.window,
                acknowledged,
                next,
                allowance,
            };
            if self
                .cubic
                .sample(now, rtt, self.slow_start().then_some(&round))
            {
                self.threshold = self.window;
            }
        }
    }

    /// Grows the window because `acked` segments have arrived while it was in use.
    pub(super) fn grow(&mut self, now: Instant, mut acked: u32) {
        if self.slow_start() {
            let grown = self
                .window
                .saturating_add(acked)
                .min(self.threshold)
                .min(LARGEST);
            acked -= (grown - self.window).min(acked);
            self.window = grown;
            if acked == 0 {
                return;
            }
        }
        let each = match self.algorithm {
            Algorithm::Cubic => self.cubic.count(now, self.window, acked),
            Algorithm::Reno | Algorithm::Bbr => self.window,
        };
        // Credit of a larger window is spent gently: one segment now (`tcp_cong_avoid_ai` of
        // Linux).
        if self.credit >= each {
            self.credit = 0;
            self.window += 1;
        }
        self.credit += acked;
        if self.credit >= each {
            self.window = (self.window + self.credit / each).min(LARGEST);
            self.credit %= each;
        }
    }

    /// Computes the threshold after a loss or a mark.
    pub(super) fn reduce(&mut self) {
        self.threshold = match self.algorithm {
            Algorithm::Cubic => self.cubic.threshold(self.window),
            Algorithm::Reno => reno_threshold(self.window),
            // No loss makes it smaller.
            Algorithm::Bbr => self.threshold,
        };
        self.credit = 0;
    }

    /// Resets the algorithm after a time-out.
    pub(super) fn reset(&mut self, now: Instant, next: u64) {
        self.cubic.reset(now, next);
        self.credit = 0;
    }

    /// Notes that the sender sends after an idle time, which does not count for CUBIC's curve.
    pub(super) fn resume(&mut self, now: Instant, idle: Duration) {
        self.cubic.resume(now, idle);
    }
}

/// Reno's threshold after a loss (RFC 5681), in segments.
const fn reno_threshold(window: u32) -> u32 {
    if window / 2 > 2 { window / 2 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reno_grows_by_one_a_window() {
        let mut reno = TcpCongestion::new(Algorithm::Reno, 10);
        (reno.window, reno.threshold) = (20, 10);
        (0..10).for_each(|_| reno.grow(Instant(0), 2));
        assert_eq!(reno.window, 21);
        reno.reduce();
        assert_eq!(reno.threshold, 10);
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let mut reno = TcpCongestion::new(Algorithm::Reno, 10);
        reno.threshold = 13;
        reno.grow(Instant(0), 10);
        assert_eq!((reno.window, reno.credit), (13, 7));
    }
}
