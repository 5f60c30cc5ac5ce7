//! CUBIC (RFC 9438) as in Linux: C = 0.4, beta = 0.7, fast convergence, Reno's window where that is larger, and HyStart
//! with both of its detectors. Windows are in segments, times are the sender's.

use stackline_core::time::{Duration, Instant};

/// C of the cubic curve, in segments per cubic second.
const C: f64 = 0.4;
/// The factor by which a loss reduces the window: 717/1024.
const BETA: f64 = 717.0 / 1024.0;
/// HyStart ignores windows below this, in segments.
const HYSTART_FROM: u32 = 16;
/// Acknowledgements at most this far apart belong to one train, in ns.
const TRAIN_GAP: u64 = 2_000_000;
/// Samples in a round trip before its delay is judged.
const SAMPLES: u32 = 8;
/// HyStart ends slow start when the delay rises by more than an eighth, but at least this, in ns.
const RISE_LEAST: u64 = 4_000_000;
/// The upper bound of that rise, in ns.
const RISE_MOST: u64 = 16_000_000;
/// The curve is computed again after this time without a change of the window, in ns: 1/32 s.
const STALE: u64 = 31_250_000;
/// Round trips within this time after the beginning of an epoch are ignored, in ns.
const AFTER_LOSS: u64 = 1_000_000_000;

/// The CUBIC state of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cubic {
    /// Acknowledgements for which the window grows by one segment.
    count: u32,
    /// The window before the last loss, 0 before any.
    last_max: u32,
    /// The window for which `count` was computed.
    last_window: u32,
    /// When `count` was computed.
    looked_at: Instant,
    /// The window at the plateau of the curve.
    origin: f64,
    /// Seconds from the beginning of the epoch to the plateau.
    k: f64,
    /// Least round trip measured, in ns; 0 before any.
    delay_min: u64,
    /// When the present curve began; `None` until the window grows after a loss.
    epoch: Option<Instant>,
    /// Segments acknowledged that Reno's estimate has not counted.
    acknowledged: u32,
    /// The window that Reno would have.
    friendly: u32,
    hystart: HyStart,
}

/// Ends slow start before it overflows the queue: when the train of acknowledgements of one window is as long as half a
/// round trip, or when the round trip becomes longer.
#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    /// The end of slow start was found.
    found: bool,
    /// When this round began.
    begun: Instant,
    /// When the last acknowledgement of the train came.
    last: Instant,
    /// The round ends when more than this place is acknowledged.
    end: u64,
    /// The least round trip of this round, in ns.
    least: u64,
    /// The number of samples in this round.
    samples: u32,
}

impl HyStart {
    const fn begin(&mut self, now: Instant, next: u64) {
        *self = Self {
            found: self.found,
            begun: now,
            last: now,
            end: next,
            least: u64::MAX,
            samples: 0,
        };
    }
}

impl Cubic {
    pub(super) const fn begin(&mut self, now: Instant, next: u64) {
        self.hystart.begin(now, next);
    }

    /// The threshold after a loss at this window; a new curve begins.
    pub(super) fn threshold(&mut self, window: u32) -> u32 {
        self.epoch = None;
        // Fast convergence (RFC 9438, section 4.7): a maximum below the last one leaves room to
        // other flows.
        let converged = f64::from(window) * (1.0 + BETA) / 2.0;
        self.last_max = if window < self.last_max {
            converged as u32
        } else {
            window
        };
        ((f64::from(window) * BETA) as u32).max(2)
    }

    /// Resets everything after a time-out, also the least round trip, as in Linux.
    pub(super) fn reset(&mut self, now: Instant, next: u64) {
        *self = Self {
            delay_min: 0,
            ..Self::default()
        };
        self.begin(now, next);
    }

    /// Moves the beginning of the curve by an idle time, so that the curve does not advance meanwhile.
    pub(super) fn resume(&mut self, now: Instant, idle: Duration) {
        if let Some(epoch) = self.epoch {
            let later = epoch + idle;
            self.epoch = Some(if later > now { now } else { later });
        }
    }

    /// Takes a round-trip sample. Returns true when slow start is to end.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        rtt: Duration,
        slow_start: Option<&HyStartInput>,
    ) -> bool {
        if self
            .epoch
            .is_some_and(|epoch| now.since(epoch).0 < AFTER_LOSS)
        {
            return false;
        }
        let rtt = rtt.0.max(1);
        if self.delay_min == 0 || rtt < self.delay_min {
            self.delay_min = rtt;
        }
        match slow_start {
            Some(round) if !self.hystart.found => self.detect(now, rtt, round),
            _ => false,
        }
    }

    /// HyStart's two detectors. Returns whether slow start is to end.
    fn detect(&mut self, now: Instant, rtt: u64, round: &HyStartInput) -> bool {
        let hystart = &mut self.hystart;
        if round.acknowledged > hystart.end {
            hystart.begin(now, round.next);
        }
        if round.window < HYSTART_FROM {
            return false;
        }
        if now.since(hystart.last).0 <= TRAIN_GAP {
            hystart.last = now;
            hystart.found |= now.since(hystart.begun).0 > (self.delay_min + round.allowance.0) / 2;
        }
        hystart.least = hystart.least.min(rtt);
        if hystart.samples < SAMPLES {
            hystart.samples += 1;
        } else {
            hystart.found |=
                hystart.least > self.delay_min + (self.delay_min / 8).clamp(RISE_LEAST, RISE_MOST);
        }
        hystart.found
    }

    /// The number of acknowledgements for which the window is to grow by one segment, when `acked` segments have
    /// arrived.
    pub(super) fn count(&mut self, now: Instant, window: u32, acked: u32) -> u32 {
        self.acknowledged += acked;
        let stale = now.since(self.looked_at).0 > STALE;
        if self.last_window != window || stale || self.epoch.is_none() {
            (self.last_window, self.looked_at) = (window, now);
            self.count = self.curve(now, window, acked);
            self.emulate_reno(window);
            // As in Linux: at most half a segment for each that arrived.
            self.count = self.count.max(2);
        }
        self.count
    }

    /// The number of acknowledgements for a growth of one segment by the cubic curve.
    fn curve(&mut self, now: Instant, window: u32, acked: u32) -> u32 {
        let epoch = if let Some(epoch) = self.epoch {
            epoch
        } else {
            self.epoch = Some(now);
            (self.acknowledged, self.friendly) = (acked, window);
            // K of RFC 9438, section 4.2, from the window at the beginning of the epoch.
            let below = f64::from(self.last_max.saturating_sub(window));
            self.k = libm::cbrt(below / C);
            self.origin = f64::from(self.last_max.max(window));
            now
        };
        // The window that the curve has one round trip from now.
        let t = (now.since(epoch) + Duration(self.delay_min)).seconds() - self.k;
        let off = libm::floor(C * libm::fabs(t * t * t));
        let target = if t < 0.0 {
            self.origin - off
        } else {
            self.origin + off
        };
        let have = f64::from(window);
        let count = if target > have {
            (have / (target - have)) as u32
        } else {
            // Above the curve: hardly any growth, 1 % a round trip.
            window.saturating_mul(100)
        };
        if self.last_max == 0 {
            // Before any loss the rate of the path is unknown and the curve too flat: 5 % a round
            // trip.
            count.min(20)
        } else {
            count
        }
    }

    /// Lowers `count` if Reno's window would be larger after the same loss.
    fn emulate_reno(&mut self, window: u32) {
        // A window divided by alpha = 3 (1 - beta) / (1 + beta) (RFC 9438, section 4.3).
        let each = ((f64::from(window) * (1.0 + BETA) / (1.0 - BETA) / 3.0) as u32).max(1);
        self.friendly += self.acknowledged / each;
        self.acknowledged %= each;
        if self.friendly > window {
            self.count = self.count.min(window / (self.friendly - window));
        }
    }
}

/// The state of a sender in slow start that HyStart needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStartInput {
    /// Window in segments.
    pub(super) window: u32,
    /// The first place not acknowledged.
    pub(super) acknowledged: u64,
    /// The next place to be sent.
    pub(super) next: u64,
    /// The time that bursts of the sender may add to the length of a train.
    pub(super) allowance: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_window_is_back_after_k_and_probes_beyond() {
        let mut cubic = Cubic::default();
        cubic.sample(Instant(0), Duration(100 * MS), None);
        let (mut window, mut counted, mut credit) = (cubic.threshold(1000), 0, 0);
        assert_eq!(window, 700);
        // K = cbrt(1000 * 0.3 / 0.4) = 9.1 s.
        let mut back = None;
        for ms in 0..15_000 {
            counted += window;
            while counted >= 100 {
                counted -= 100;
                credit += 1;
                if credit >= cubic.count(Instant(ms * MS), window, 1) {
                    (window, credit) = (window + 1, 0);
                }
            }
            if window >= 990 && back.is_none() {
                back = Some(ms);
            }
        }
        let back = back.unwrap();
        assert!((5_500..9_100).contains(&back), "{back}");
        assert!((1060..1100).contains(&window), "{window}");
    }

    #[test]
    fn a_smaller_window_at_the_next_loss_releases_bandwidth() {
        let mut cubic = Cubic::default();
        cubic.threshold(1000);
        cubic.threshold(900);
        assert_eq!(cubic.last_max, 765);
    }

    #[test]
    fn slow_start_ends_with_a_train_of_half_a_round_trip() {
        let mut cubic = Cubic::default();
        cubic.begin(Instant(0), 100);
        let round = HyStartInput {
            window: 100,
            acknowledged: 50,
            next: 100,
            allowance: Duration::ZERO,
        };
        let ended =
            (0..100).find(|ms| cubic.sample(Instant(ms * MS), Duration(40 * MS), Some(&round)));
        assert_eq!(ended, Some(21));
    }

    #[test]
    fn slow_start_ends_when_the_round_trip_becomes_longer() {
        let mut cubic = Cubic::default();
        cubic.sample(Instant(0), Duration(40 * MS), None);
        cubic.begin(Instant(0), 100);
        let round = HyStartInput {
            window: 100,
            acknowledged: 50,
            next: 100,
            allowance: Duration::ZERO,
        };
        let at = |n: u64| Instant((n + 1) * 3 * MS);
        assert!(!(0..20).any(|n| cubic.sample(at(n), Duration(44 * MS), Some(&round))));
        cubic.begin(at(20), 200);
        let round = HyStartInput {
            acknowledged: 150,
            next: 200,
            ..round
        };
        let ended = (20..40).find(|n| cubic.sample(at(*n), Duration(46 * MS), Some(&round)));
        assert_eq!(ended, Some(28));
    }
}
