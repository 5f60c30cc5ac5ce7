//! The clock that stamps events: ns since 1970 at the first reading in this process, and from there on the monotonic
//! clock, so that a step of the wall clock does not reorder events.
//!
//! Reading that clock takes 22 ns, reading the processor's counter (its ticks) 10 ns. So events are stamped with the
//! counter, if the processor says that it is steady and the kernel keeps its own time with it (which it does only
//! while it finds the counters of all cores equal). The thread that drains the rings reads both clocks repeatedly and
//! converts ticks to ns between two such [`Anchors`]. An irregularity between two anchors (another speed after a
//! migration, a suspended machine) cannot have an effect beyond them.

use crate::sys;
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The origin: a moment of the monotonic clock, and the same moment in ns since 1970.
static ORIGIN: OnceLock<(Instant, u64)> = OnceLock::new();

/// Sets the origin, so that several processes of a machine stamp alike. Returns false when the clock has an origin
/// already.
pub fn begin(moment: Instant, ns: u64) -> bool {
    ORIGIN.set((moment, ns)).is_ok()
}

/// How often both clocks are read at most, until a reading was not interrupted by another program.
const ORIGIN_READS: usize = 16;
/// If two readings of the monotonic clock are no further apart than this, nothing came between them.
const UNINTERRUPTED: Duration = Duration::from_micros(1);

fn origin() -> &'static (Instant, u64) {
    ORIGIN.get_or_init(|| {
        let mut closest = read_both();
        for _ in 1..ORIGIN_READS {
            if closest.0 <= UNINTERRUPTED {
                break;
            }
            closest = read_both().min(closest);
        }
        (closest.1, closest.2)
    })
}

/// Reads the wall clock between two readings of the monotonic clock. Returns the time between these, the moment in
/// their middle, and the wall clock, ns.
fn read_both() -> (Duration, Instant, u64) {
    let (before, wall, after) = (Instant::now(), SystemTime::now(), Instant::now());
    let since = wall
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    let took = after - before;
    (took, before + took / 2, since)
}

/// The present time, in ns since 1970.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    at_ns(Instant::now())
}

/// The time at a moment of the monotonic clock, in ns since 1970.
#[inline]
#[must_use]
pub fn at_ns(moment: Instant) -> u64 {
    let (origin, wall) = origin();
    match moment.checked_duration_since(*origin) {
        Some(since) => wall + since.as_nanos() as u64,
        None => wall.saturating_sub((*origin - moment).as_nanos() as u64),
    }
}

/// The difference to add to a monotonic clock reading, in ns, to get [`now_ns`]; for events that others stamped with
/// that clock.
#[must_use]
pub fn monotonic_to_now_ns(monotonic_ns: u64, read_at: Instant) -> i128 {
    i128::from(at_ns(read_at)) - i128::from(monotonic_ns)
}

/// Whether events are stamped with the processor's counter (ticks).
pub(crate) fn counts_ticks() -> bool {
    static COUNTS: OnceLock<bool> = OnceLock::new();
    *COUNTS.get_or_init(|| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        sys::ticks_are_steady()
            && std::fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc")
    })
}

/// The same moment on both clocks: ticks of the counter, and ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockAnchor {
    ticks: u64,
    ns: u64,
    /// Length of a tick since the previous anchor, in 2^-32 ns.
    slope: u64,
}

impl ClockAnchor {
    /// Converts ticks between this anchor and the next to ns.
    fn until(&self, next: &Self, ticks: u64) -> u64 {
        (self.ns + scaled(ticks - self.ticks, next.slope)).min(next.ns)
    }
}

/// Two consecutive anchors.
#[derive(Clone, Debug)]
struct ClockInterval {
    from: ClockAnchor,
    to: ClockAnchor,
}

impl Default for ClockInterval {
    /// An interval that contains no ticks.
    fn default() -> Self {
        let nowhere = |ticks| ClockAnchor {
            ticks,
            ns: 0,
            slope: 0,
        };
        Self {
            from: nowhere(u64::MAX),
            to: nowhere(0),
        }
    }
}

/// Number of anchors kept, for a thread that was suspended between reading the counter and writing into its ring.
const KEPT: usize = 64;
/// How often both clocks are read at most, until nothing came between the readings.
const TRIES: usize = 8;

/// The anchors by which ticks are converted to ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Anchors {
    kept: VecDeque<ClockAnchor>,
    /// The interval between the two newest anchors.
    newest: ClockInterval,
    /// The smallest number of ticks that a reading of both clocks took.
    narrowest: Option<u64>,
    /// The largest error of an anchor, ns.
    pub(crate) error_ns: u64,
}

impl Anchors {
    /// Reads both clocks and adds an anchor.
    pub(crate) fn read(&mut self) {
        let (ticks, ns, width) = self.narrow();
        self.narrowest = Some(self.narrowest.map_or(width, |least| least.min(width)));
        self.add(ticks, ns);
        if let Some(last) = self.kept.back() {
            let half = scaled(width, last.slope).div_ceil(2);
            self.error_ns = self.error_ns.max(half);
        }
    }

    /// Reads both clocks until a reading took little time, or the best of several. Returns ticks, ns, and how many
    /// ticks the reading took.
    fn narrow(&self) -> (u64, u64, u64) {
        let mut best = (0, 0, u64::MAX);
        for _ in 0..TRIES {
            let (before, ns, after) = (sys::ticks(), now_ns(), sys::ticks());
            let width = after.saturating_sub(before);
            if width < best.2 {
                best = (before + width / 2, ns, width);
            }
            if self.narrowest.is_some_and(|least| best.2 <= least * 2) {
                break;
            }
        }
        best
    }

    /// Adds an anchor.
    fn add(&mut self, ticks: u64, ns: u64) {
        let slope = match self.kept.back() {
            Some(last) if ticks > last.ticks => {
                let slope =
                    (u128::from(ns.saturating_sub(last.ns)) << 32) / u128::from(ticks - last.ticks);
                u64::try_from(slope).unwrap_or(u64::MAX)
            }
            // The counter was reset, as after a suspend: earlier anchors do not apply any more.
            _ => {
                self.kept.clear();
                0
            }
        };
        if self.kept.len() == 1 {
            // Times before the first anchor are extrapolated with the first slope that is known.
            self.kept[0].slope = slope;
        }
        let anchor = ClockAnchor { ticks, ns, slope };
        self.newest = self
            .kept
            .back()
            .map_or_else(ClockInterval::default, |from| ClockInterval {
                from: *from,
                to: anchor,
            });
        self.kept.push_back(anchor);
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }

    /// Converts ticks to ns: on the line between the anchors around them, or on the nearest line outside of the
    /// anchors.
    #[inline]
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        let ClockInterval { from, to } = &self.newest;
        // Nearly all events were stamped after the last reading but one.
        if ticks >= from.ticks && ticks <= to.ticks {
            from.until(to, ticks)
        } else {
            self.elsewhere(ticks)
        }
    }

    /// Converts ticks that are not in the newest interval.
    fn elsewhere(&self, ticks: u64) -> u64 {
        let Some(last) = self.kept.back() else {
            return 0;
        };
        if ticks > last.ticks {
            return last
                .ns
                .saturating_add(scaled(ticks - last.ticks, last.slope));
        }
        let mut after = last;
        for anchor in self.kept.iter().rev().skip(1) {
            if ticks >= anchor.ticks {
                return anchor.until(after, ticks);
            }
            after = anchor;
        }
        after
            .ns
            .saturating_sub(scaled(after.ticks - ticks, after.slope))
    }
}

/// The length of `ticks` in ns; `slope` is in 2^-32 ns a tick.
fn scaled(ticks: u64, slope: u64) -> u64 {
    u64::try_from((u128::from(ticks) * u128::from(slope)) >> 32).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_goes_on() {
        let (a, b) = (now_ns(), now_ns());
        assert!(a <= b && a > 1_600_000_000_000_000_000);
        let moment = Instant::now();
        assert_eq!(
            monotonic_to_now_ns(5, moment),
            i128::from(at_ns(moment)) - 5
        );
    }

    fn anchored(readings: &[(u64, u64)]) -> Anchors {
        let mut anchors = Anchors::default();
        readings
            .iter()
            .for_each(|(ticks, ns)| anchors.add(*ticks, *ns));
        anchors
    }

    #[test]
    fn between_two_readings_time_is_their_line() {
        let anchors = anchored(&[(1000, 500), (3000, 1500), (4000, 1600)]);
        for (ticks, ns) in [
            (1000, 500),
            (2000, 1000),
            (3000, 1500),
            (3500, 1550),
            (4000, 1600),
        ] {
            assert!(
                anchors.ns(ticks).abs_diff(ns) <= 1,
                "{ticks}: {} is not {ns}",
                anchors.ns(ticks)
            );
        }
        assert!(
            anchors.ns(5000).abs_diff(1700) <= 1,
            "beyond the last as before it"
        );
        assert!(
            anchors.ns(500).abs_diff(250) <= 1,
            "before the first as behind it"
        );
        assert_eq!(anchored(&[]).ns(7), 0);
    }

    #[test]
    fn a_counter_that_begins_again_takes_nothing_with_it() {
        let anchors = anchored(&[(1_000_000, 500), (2_000_000, 1000), (10, 5000), (20, 5010)]);
        assert!(anchors.ns(15).abs_diff(5005) <= 1);
        assert!(anchors.ns(2_000_000) > 5010, "no older line is left");
    }

    proptest! {
        #[test]
        fn time_never_goes_back(
            steps in proptest::collection::vec((1_u64..10_000_000, 0_u64..10_000_000), 2..100),
            mut moments in proptest::collection::vec(0_u64..1_000_000_000, 2..50),
        ) {
            let mut anchors = Anchors::default();
            let (mut ticks, mut ns) = (0, 1 << 60);
            for (step_ticks, step_ns) in steps {
                (ticks, ns) = (ticks + step_ticks, ns + step_ns);
                anchors.add(ticks, ns);
            }
            moments.sort_unstable();
            let times: Vec<u64> = moments.iter().map(|ticks| anchors.ns(*ticks)).collect();
            prop_assert!(times.is_sorted());
        }
    }

    #[test]
    fn ticks_agree_with_the_clock_within_their_error() {
        if !counts_ticks() {
            eprintln!(
                "passed over: the counter of this machine is not what its kernel keeps time with"
            );
            return;
        }
        let mut anchors = Anchors::default();
        anchors.read();
        let samples: Vec<(u64, u64, u64)> = (0..10_000)
            .map(|_| (now_ns(), sys::ticks(), now_ns()))
            .collect();
        anchors.read();
        // Each stamp lies between two readings of the clock, give or take what the anchors may be off.
        let error = anchors.error_ns + 1;
        let outside = samples.iter().filter(|(before, ticks, after)| {
            let ns = anchors.ns(*ticks);
            ns + error < *before || ns > after + error
        });
        assert_eq!(outside.count(), 0, "with an error of {error} ns");
    }
}
