//! The round-trip estimate and the retransmission time-out (RFC 6298), with the bounds and the smoothing of Linux: the
//! variation counts as at least 200 ms, rises at once and falls once a round trip. Or as hosts of 1995 had them
//! ("classic"): the whole time-out has a lower bound, and a slow timer may count it in ticks.

use stackline_core::time::{Duration, Instant};

/// The longest time-out of Linux, in ns.
pub(super) const LONGEST: u64 = 120_000_000_000;
/// The longest time-out of hosts of 1995 (4.4BSD's TCPTV_REXMTMAX), in ns.
const LONGEST_CLASSIC: u64 = 64_000_000_000;
/// How long a minimum of the round trip is valid, in ns.
// `tcp_min_rtt_wlen` of Linux.
const MINIMUM_HOLDS: u64 = 300_000_000_000;

/// The rules for time-outs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeouts {
    /// The lower bound of the variation term, which bounds the time-out too; with classic rules the lower bound of the
    /// time-out.
    pub(super) least: Duration,
    /// The time-out before there is a sample.
    pub(super) first: Duration,
    /// A constant time-out.
    pub(super) fixed: Option<Duration>,
    /// The period of the timer that counts time-outs; zero: they are exact.
    pub(super) tick: Duration,
    /// When the first tick was.
    pub(super) phase: Duration,
    /// The classic rule: smoothed round trip plus four deviations, however small these are; doubling ends at 64 s.
    pub(super) classic: bool,
}

impl Timeouts {
    /// The time-out of a SYN, or before there is a sample, after `backoff` time-outs in a row.
    pub(super) fn first(&self, backoff: u32) -> Duration {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let doubled = self.first.0.saturating_mul(1 << backoff.min(16));
        Duration(if self.classic {
            doubled.min(LONGEST_CLASSIC)
        } else {
            doubled
        })
    }

    /// When a time-out of `after` that begins now expires. A ticking timer runs freely, so the first tick comes early.
    pub(super) fn expires(&self, now: Instant, after: Duration) -> Instant {
        let tick = self.tick.0;
        if tick == 0 {
            return now + after;
        }
        let (at, phase) = (now.0 % tick, self.phase.0 % tick);
        let begun = if at < phase {
            tick - (phase - at)
        } else {
            at - phase
        };
        // `begun` is less than a tick and `whole` at least one: the difference is above 0.
        now + Duration((self.whole(after.0) - begun).max(1))
    }

    /// Rounds up to whole ticks, at least one.
    const fn whole(&self, ns: u64) -> u64 {
        match self.tick.0 {
            0 => ns,
            tick => {
                let ticks = ns.div_ceil(tick);
                tick.saturating_mul(if ticks == 0 { 1 } else { ticks })
            }
        }
    }
}

/// The estimates of the round trip, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    rules: Timeouts,
    smoothed: u64,
    deviation: u64,
    /// Four times the largest deviation in this round trip, at least the bound.
    largest: u64,
    /// The variation term of the time-out.
    variation: u64,
    /// This round trip ends when this place is acknowledged.
    round: u64,
    /// The least sample of the last minutes; `u64::MAX` before the first.
    minimum: u64,
    minimum_at: Instant,
}

impl Rtt {
    pub(super) fn new(rules: Timeouts) -> Self {
        let minimum = u64::MAX;
        Self {
            rules,
            minimum,
            ..Self::default()
        }
    }

    /// Takes a sample, when everything up to `acknowledged` has arrived and everything up to `next` was sent.
    pub(super) fn sample(&mut self, now: Instant, sample: Duration, acknowledged: u64, next: u64) {
        let sample = sample.0.max(1);
        if sample <= self.minimum || now.since(self.minimum_at).0 > MINIMUM_HOLDS {
            (self.minimum, self.minimum_at) = (sample, now);
        }
        if self.smoothed == 0 {
            self.smoothed = sample;
            self.deviation = sample / 2;
            // Four deviations of half a sample (RFC 6298, section 2.2).
            self.variation = (sample * 2).max(self.rules.least.0);
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
            (self.round, self.largest) = (next, self.rules.least.0);
        }
    }

    /// Updates the deviation. A sudden fall of the round trip should not lengthen the time-out, so it counts only an
    /// eighth.
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

    /// The least recent round trip; `None` before there is a sample.
    pub(super) const fn minimum(&self) -> Option<Duration> {
        if self.minimum == u64::MAX {
            None
        } else {
            Some(Duration(self.minimum))
        }
    }

    /// The time-out after `backoff` time-outs in a row.
    pub(super) fn timeout(&self, backoff: u32) -> Duration {
        let rules = &self.rules;
        if let Some(fixed) = rules.fixed {
            return Duration(rules.whole(fixed.0));
        }
        let first = match self.smoothed {
            0 => rules.first.0,
            smoothed if rules.classic => (smoothed + 4 * self.deviation).max(rules.least.0),
            smoothed => smoothed + self.variation,
        };
        let longest = if rules.classic {
            LONGEST_CLASSIC
        } else {
            LONGEST
        };
        Duration(
            rules
                .whole(first)
                .saturating_mul(1 << backoff.min(16))
                .min(longest),
        )
    }

    /// When a time-out that begins now, after `backoff` in a row, expires.
    pub(super) fn expires(&self, now: Instant, backoff: u32) -> Instant {
        self.rules.expires(now, self.timeout(backoff))
    }

    /// When a SYN that was sent `times` times before is sent again.
    pub(super) fn syn_expires(&self, now: Instant, times: u32) -> Instant {
        self.rules.expires(now, self.rules.first(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn linux() -> Rtt {
        Rtt::new(crate::tcp::TcpOptions::default().timeouts())
    }

    fn bsd() -> Rtt {
        let [least, first, tick, phase] = [1000, 3000, 500, 100].map(|ms| Duration(ms * MS));
        Rtt::new(Timeouts {
            least,
            first,
            fixed: None,
            tick,
            phase,
            classic: true,
        })
    }

    #[test]
    fn a_slow_timer_counts_whole_ticks() {
        let mut rtt = bsd();
        assert_eq!(rtt.syn_expires(Instant(0), 0), Instant(2600 * MS));
        for n in 0..100 {
            rtt.sample(Instant(n), Duration(12 * MS), n, n + 1);
        }
        // Two ticks, of which the first comes when it comes: the time-out lasts from 0.5 s to 1 s.
        let ends = [100, 101, 599, 600].map(|ms| rtt.expires(Instant(ms * MS), 0).0 / MS);
        assert_eq!(ends, [1100, 1100, 1100, 1600]);
        assert_eq!(rtt.expires(Instant(101 * MS), 1), Instant(2100 * MS));
        assert_eq!(
            [5, 6, 30].map(|times| rtt.timeout(times).0 / MS),
            [32_000, 64_000, 64_000]
        );
    }

    #[test]
    fn the_time_out_is_200_ms_above_a_steady_round_trip() {
        let mut rtt = linux();
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
        let mut rtt = linux();
        (0..50).for_each(|n| rtt.sample(Instant(n), Duration(20 * MS), n, n + 1));
        rtt.sample(Instant(60), Duration(820 * MS), 60, 61);
        assert_eq!(rtt.smoothed(), Duration(120 * MS));
        assert!(rtt.timeout(0) > Duration(700 * MS));
    }
}
