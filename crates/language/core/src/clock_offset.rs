//! How far another host's clock is ahead of ours, and how fast it gains, from exchanges of time stamps.
//!
//! An exchange (RFC 5905, section 8) has four stamps: sent (T1, our clock), received (T2, their clock), answered (T3,
//! their clock), returned (T4, our clock). Neither direction can take negative time, so their clock was at most T2 -
//! T1 ahead of ours at T1 and at least T3 - T4 ahead at T4, however long either direction took. RFC 5905 takes the
//! middle of the two as the offset, ((T2 - T1) + (T3 - T4)) / 2, and half their distance, ((T4 - T1) - (T3 - T2)) / 2,
//! as the largest error.
//!
//! Here the clock's offset is a straight line in time, and every exchange cuts away lines that it rules out. What is left is a
//! convex polygon of (offset, drift); the estimate is the middle between the extremes at both ends of the exchanges, and no
//! line that is left is farther from it than the error that is reported. When nothing is left the clock was set, or changed its
//! speed by much: a step is noted, and a new line begins.
//!
//! It reads no clock itself.

use crate::trace_index::{ClockCorrection, ClockExchange};
use alloc::vec::Vec;

/// The largest drift of a clock that is being corrected: Linux corrects by at most 500 ppm and slews by 500 ppm more,
/// and crystals are within 100 ppm.
const FASTEST: f64 = 1_100e-6;
/// The search for lines begins with offsets up to this many ns beyond the bounds of the first exchange.
const MARGIN: f64 = 1e9;
/// A candidate for the clock's line: its offset at the origin of its piece, ns, and its drift (ns per ns).
#[derive(Clone, Copy, Debug, PartialEq)]
struct OffsetLine {
    offset: f64,
    drift: f64,
}

impl OffsetLine {
    /// The offset `since` ns after the origin, ns.
    fn at(self, since: f64) -> f64 {
        self.offset + self.drift * since
    }
}

/// A time between two steps of the clock: exchanges that one line explains.
#[derive(Clone, Debug)]
struct OffsetPiece {
    /// Our clock at the piece's first exchange, ns.
    origin_ns: u64,
    /// The offset estimated from the first exchange, ns; the offsets of `lines` are relative to it.
    base_ns: i128,
    /// Our clock at the piece's last stamp, ns since the origin.
    last: f64,
    /// The lines that no exchange has ruled out: the corners of a convex polygon, in order around it.
    lines: Vec<OffsetLine>,
}

/// What is known of another host's clock after some exchanges.
#[derive(Clone, Debug, Default)]
pub struct Offset {
    /// The pieces, in the order of time; a new one begins where the clock was stepped.
    pieces: Vec<OffsetPiece>,
}

/// The bounds that one exchange sets on how far their clock is ahead of ours, ns: at least (at its end), at most (at
/// its beginning).
#[must_use]
pub const fn offset_bounds(exchange: &ClockExchange) -> (i128, i128) {
    let least = exchange.answered_ns as i128 - exchange.returned_ns as i128;
    let most = exchange.heard_ns as i128 - exchange.asked_ns as i128;
    (least, most)
}

/// The time that the exchange's two messages spent on the way together, ns: the smaller it is, the tighter the bounds.
#[must_use]
pub const fn delay_ns(exchange: &ClockExchange) -> i128 {
    let (least, most) = offset_bounds(exchange);
    most - least
}

impl Offset {
    /// Takes an exchange, which must be later than all before. Returns false and ignores it when its stamps are
    /// impossible (they run backwards).
    pub fn take(&mut self, exchange: &ClockExchange) -> bool {
        let runs =
            exchange.returned_ns >= exchange.asked_ns && exchange.answered_ns >= exchange.heard_ns;
        // A clock that runs at the largest drift may show more time between T2 and T3 than passed here: allow 1/500 of
        // it.
        let slack = (exchange.returned_ns.saturating_sub(exchange.asked_ns) / 500 + 1) as i128;
        if !runs || delay_ns(exchange) < -slack {
            return false;
        }
        if !self
            .pieces
            .last_mut()
            .is_some_and(|piece| piece.take(exchange))
        {
            self.pieces.push(OffsetPiece::new(exchange));
        }
        true
    }

    /// The correction that follows from the exchanges so far: the line before the first step, and the steps; `None`
    /// before the first exchange.
    #[must_use]
    pub fn clock(&self) -> Option<ClockCorrection> {
        let first = self.pieces.first()?;
        let (line, mut error) = first.middle();
        let offset_ns = first.base_ns + round(line.offset);
        // The line is over our clock's time; the correction is over theirs.
        let drift_ppm = line.drift / (1.0 + line.drift) * 1e6;
        let at_ns = moment(i128::from(first.origin_ns) + offset_ns);
        let mut clock = ClockCorrection {
            offset_ns: whole(offset_ns),
            at_ns,
            drift_ppm,
            ..ClockCorrection::default()
        };
        let (mut before, mut unknown) = (first, 0);
        for piece in &self.pieces[1..] {
            let (own, wrong) = piece.middle();
            let (end, begin) = (
                i128::from(before.origin_ns) + round(before.last),
                i128::from(piece.origin_ns),
            );
            let reported = begin + piece.base_ns + round(own.offset);
            // The correction so far gives this reading at that moment; the step covers the difference.
            let by = whole(reported - begin).saturating_sub(clock.ahead_ns(moment(reported)));
            // The step happened between the two exchanges. The correction keeps the first line's slope, so later
            // readings are off by the change of drift.
            let turned = (own.drift - line.drift).abs() * piece.last;
            clock.steps.push((moment(reported - (begin - end) / 2), by));
            error = error.max(wrong + turned);
            unknown = unknown.max(by.unsigned_abs());
            before = piece;
        }
        // The moment of the step is not known: until the next exchange the correction may be wrong by all of it.
        clock.error_ns = Some(
            u64::try_from(round(error))
                .unwrap_or(u64::MAX)
                .saturating_add(unknown)
                .saturating_add(1),
        );
        Some(clock)
    }
}

impl OffsetPiece {
    /// A piece that begins with this exchange.
    fn new(exchange: &ClockExchange) -> Self {
        let (least, most) = offset_bounds(exchange);
        let mut piece = Self {
            origin_ns: exchange.asked_ns,
            base_ns: (least + most) / 2,
            last: 0.0,
            lines: [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
                .map(|(offset, drift)| OffsetLine {
                    offset: offset * (MARGIN + (most - least) as f64),
                    drift: drift * FASTEST,
                })
                .to_vec(),
        };
        piece.take(exchange);
        piece
    }

    /// Removes the lines that the exchange rules out. Returns false and changes nothing when none would be left.
    fn take(&mut self, exchange: &ClockExchange) -> bool {
        let (least, most) = offset_bounds(exchange);
        let since = |ns: u64| (i128::from(ns) - i128::from(self.origin_ns)) as f64;
        let (sent, returned) = (since(exchange.asked_ns), since(exchange.returned_ns));
        let (least, most) = ((least - self.base_ns) as f64, (most - self.base_ns) as f64);
        let below = cut(&self.lines, |line| most - line.at(sent));
        let between = cut(&below, |line| line.at(returned) - least);
        if between.is_empty() {
            return false;
        }
        self.lines = between;
        self.last = self.last.max(returned);
        true
    }

    /// The line midway between the extremes at both ends of the piece, and the largest distance of any remaining line
    /// from it, ns.
    fn middle(&self) -> (OffsetLine, f64) {
        let range = |since: f64| {
            let all = self.lines.iter().map(|line| line.at(since));
            all.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), at| {
                (least.min(at), most.max(at))
            })
        };
        let ((low, high), (later_low, later_high)) = (range(0.0), range(self.last));
        let offset = f64::midpoint(low, high);
        let drift = if self.last > 0.0 {
            (f64::midpoint(later_low, later_high) - offset) / self.last
        } else {
            0.0
        };
        (
            OffsetLine { offset, drift },
            ((high - low) / 2.0).max((later_high - later_low) / 2.0),
        )
    }
}

/// The part of a convex polygon where `inside` is at least 0 (Sutherland and Hodgman 1974, one edge).
fn cut(corners: &[OffsetLine], inside: impl Fn(OffsetLine) -> f64) -> Vec<OffsetLine> {
    let mut kept = Vec::with_capacity(corners.len() + 1);
    for (index, here) in corners.iter().copied().enumerate() {
        let there = corners[(index + 1) % corners.len()];
        let (a, b) = (inside(here), inside(there));
        if a >= 0.0 {
            kept.push(here);
        }
        if (a < 0.0) != (b < 0.0) {
            // The corners are on different sides, so a - b is not 0.
            let share = a / (a - b);
            let between = |from: f64, to: f64| from + (to - from) * share;
            kept.push(OffsetLine {
                offset: between(here.offset, there.offset),
                drift: between(here.drift, there.drift),
            });
        }
    }
    kept
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "at most a few years in nanoseconds"
)]
const fn round(ns: f64) -> i128 {
    (if ns < 0.0 { ns - 0.5 } else { ns + 0.5 }) as i128
}

/// The number as `i64`, at the nearest bound when it does not fit.
fn whole(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

/// The number as a moment, ns: 0 when negative, the largest `u64` when it does not fit.
fn moment(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;
    use rand_core::Rng;

    const SECOND: u64 = 1_000_000_000;

    /// A host whose clock is ahead, drifts and is set, behind a path whose ways take what they take. All in virtual time.
    struct Host {
        ahead_ns: i64,
        drift: f64,
        /// From which moment on by how much.
        step: (u64, i64),
        /// Least time of each direction, and most that is added to it.
        transit_ns: [(u64, u64); 2],
    }

    const BEGIN: u64 = 1_700_000_000 * SECOND;

    impl Host {
        fn clock(&self, now: u64) -> u64 {
            let since = (now - BEGIN) as f64;
            let step = if now >= self.step.0 { self.step.1 } else { 0 };
            let ahead = i128::from(self.ahead_ns) + i128::from(step) + (since * self.drift) as i128;
            u64::try_from(i128::from(now) + ahead).unwrap()
        }

        fn ask(&self, asked_ns: u64, random: &mut impl Rng) -> ClockExchange {
            let mut transit = |(least, more): (u64, u64)| least + random.next_u64() % (more + 1);
            let heard = asked_ns + transit(self.transit_ns[0]);
            let answered = heard + 3_000;
            let returned_ns = answered + transit(self.transit_ns[1]);
            ClockExchange {
                asked_ns,
                heard_ns: self.clock(heard),
                answered_ns: self.clock(answered),
                returned_ns,
            }
        }
    }

    /// The clock after exchanges at those seconds, and its largest error at any millisecond between them.
    fn estimated(host: &Host, at: &[u64], seed: u64) -> (ClockCorrection, u64) {
        let mut random = Seed::root(seed).generator();
        let mut offset = Offset::default();
        for second in at {
            for n in 0..8 {
                assert!(
                    offset.take(&host.ask(BEGIN + second * SECOND + n * 1_000_000, &mut random))
                );
            }
        }
        let clock = offset.clock().unwrap();
        let (from, to) = (at[0] * 1000, at[at.len() - 1] * 1000);
        let wrong = |ms: u64| {
            let now = BEGIN + ms * 1_000_000;
            clock.reference_ns(host.clock(now)).abs_diff(now)
        };
        let worst = (from..to).map(wrong).max().unwrap_or(0);
        (clock, worst)
    }

    const PLAIN: Host = Host {
        ahead_ns: 0,
        drift: 0.0,
        step: (u64::MAX, 0),
        transit_ns: [(50_000, 20_000), (50_000, 20_000)],
    };

    #[test]
    fn offset_and_drift_are_found_within_the_error_reported() {
        for (seed, ahead_ns, drift) in [
            (1, 0, 0.0),
            (2, -7_000_000_000, 40e-6),
            (3, 123_456_789, -180e-6),
        ] {
            let host = Host {
                ahead_ns,
                drift,
                ..PLAIN
            };
            let (clock, worst) = estimated(&host, &[0, 10, 20, 60], seed);
            let error = clock.error_ns.unwrap();
            assert!(worst <= error, "{worst} ns off, {error} ns reported");
            assert!(
                error < 80_000,
                "{error} ns: no more than an exchange leaves open"
            );
            assert!(
                (clock.drift_ppm - drift * 1e6).abs() < 3.0,
                "{} ppm",
                clock.drift_ppm
            );
            assert!(clock.steps.is_empty());
        }
    }

    #[test]
    fn an_error_contains_what_asymmetric_delays_hide() {
        for transit_ns in [
            [(10_000, 0), (900_000, 0)],
            [(2_000_000, 500_000), (1_000, 0)],
        ] {
            let host = Host {
                ahead_ns: 5_000,
                drift: 20e-6,
                transit_ns,
                ..PLAIN
            };
            let (clock, worst) = estimated(&host, &[0, 5, 30], 7);
            let error = clock.error_ns.unwrap();
            assert!(
                worst > 300_000 && worst <= error,
                "{worst} ns off, {error} ns reported"
            );
        }
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_and_followed() {
        for by in [-3_000_000_000, 250_000_000, 2_000_000] {
            let host = Host {
                ahead_ns: 40_000_000,
                drift: 30e-6,
                step: (BEGIN + 25 * SECOND, by),
                ..PLAIN
            };
            let (clock, worst) = estimated(&host, &[0, 10, 20, 30, 40], 3);
            let [(at, step)] = clock.steps[..] else {
                panic!("{:?}", clock.steps)
            };
            assert!((step - by).abs() < 200_000, "{step} ns of {by}");
            let between = host.clock(BEGIN + 20 * SECOND)..host.clock(BEGIN + 30 * SECOND);
            assert!(between.contains(&at) || by < 0);
            assert!(
                worst <= clock.error_ns.unwrap(),
                "{worst} ns off, {:?} reported",
                clock.error_ns
            );
            // Away from the step it is followed.
            let now = BEGIN + 35 * SECOND;
            assert!(clock.reference_ns(host.clock(now)).abs_diff(now) < 200_000);
        }
    }

    #[test]
    fn any_clock_is_within_the_error_reported() {
        for seed in 0..60 {
            let mut random = Seed::root(seed).child("host").generator();
            let mut draw = |most: u64| random.next_u64() % most;
            let transit_ns = [
                (draw(300_000), draw(3_000_000)),
                (draw(300_000), draw(3_000_000)),
            ];
            let drift = (draw(2_000) as f64 - 1_000.0) * 1e-6;
            let host = Host {
                ahead_ns: draw(1 << 40) as i64 - (1 << 39),
                drift,
                transit_ns,
                ..PLAIN
            };
            let (clock, worst) = estimated(&host, &[0, 1, 2, 3 + draw(50)], seed);
            assert!(
                clock.steps.is_empty() && worst <= clock.error_ns.unwrap(),
                "seed {seed}: {worst} {clock:?}"
            );
        }
    }

    #[test]
    fn stamps_that_run_backwards_are_left_out() {
        let mut offset = Offset::default();
        let wrong = ClockExchange {
            asked_ns: 10,
            heard_ns: 20,
            answered_ns: 5,
            returned_ns: 30,
        };
        assert!(!offset.take(&wrong));
        assert!(!offset.take(&ClockExchange {
            asked_ns: 10,
            heard_ns: 0,
            answered_ns: u64::MAX,
            returned_ns: 11
        }));
        assert!(offset.clock().is_none());
    }
}
