//! The time an event is stamped with: ns since 1970 where this process first read it, going on with the monotonic clock from
//! there, so that no step of the wall clock tears events apart.
//!
//! Reading that clock takes 22 ns, the processor's counter 10. So an event is stamped with the counter where the processor
//! says that it is steady and the kernel keeps its own time with it (which it does only as long as it finds the counters of
//! all cores equal). The thread that drains reads both clocks again and again and turns counts into ns between two such
//! [`Anchors`]; what happens between them (another speed after a migration, a suspended machine) cannot go beyond them.

use crate::sys;
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment of the monotonic clock, and what it is in ns since 1970.
static ORIGIN: OnceLock<(Instant, u64)> = OnceLock::new();

/// Takes its origin from elsewhere, so that several processes of one machine stamp alike; false when the clock goes already.
pub fn begin(moment: Instant, ns: u64) -> bool {
    ORIGIN.set((moment, ns)).is_ok()
}

/// How often both clocks are read, at most, until no other program ran in between.
const ORIGIN_READS: usize = 16;
/// Two readings of a clock that lie no further apart were not interrupted.
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

/// A moment of the monotonic clock and of the wall clock, which was read in between, and for how long that was.
fn read_both() -> (Duration, Instant, u64) {
    let (before, wall, after) = (Instant::now(), SystemTime::now(), Instant::now());
    let since = wall
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    let took = after - before;
    (took, before + took / 2, since)
}

/// The present, in ns since 1970.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    at_ns(Instant::now())
}

/// What it is at a moment of the monotonic clock.
#[inline]
#[must_use]
pub fn at_ns(moment: Instant) -> u64 {
    let (origin, wall) = origin();
    match moment.checked_duration_since(*origin) {
        Some(since) => wall + since.as_nanos() as u64,
        None => wall.saturating_sub((*origin - moment).as_nanos() as u64),
    }
}

/// What has to be added to the monotonic clock, in ns, to get [`now_ns`]: for events that others stamped with it.
#[must_use]
pub fn monotonic_to_now_ns(monotonic_ns: u64, read_at: Instant) -> i128 {
    i128::from(at_ns(read_at)) - i128::from(monotonic_ns)
}

/// Whether events are stamped with the processor's counter.
pub(crate) fn counts_ticks() -> bool {
    static COUNTS: OnceLock<bool> = OnceLock::new();
    *COUNTS.get_or_init(|| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        sys::ticks_are_steady()
            && std::fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc")
    })
}

/// The same moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockAnchor {
    ticks: u64,
    ns: u64,
    /// ns in a tick since the anchor before, in parts of 2^32.
    slope: u64,
}

impl ClockAnchor {
    /// A stamp between this one and the next.
    fn until(&self, next: &Self, ticks: u64) -> u64 {
        (self.ns + scaled(ticks - self.ticks, next.slope)).min(next.ns)
    }
}

/// Two anchors with none between.
#[derive(Clone, Debug)]
struct ClockInterval {
    from: ClockAnchor,
    to: ClockAnchor,
}

impl Default for ClockInterval {
    /// One on which nothing lies.
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

/// As many anchors as are remembered, for a thread that was held up between its stamp and its ring.
const KEPT: usize = 64;
/// A reading of both clocks is tried again this often until nothing came between.
const TRIES: usize = 8;

/// What turns ticks into ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Anchors {
    kept: VecDeque<ClockAnchor>,
    newest: ClockInterval,
    /// Least ticks that a reading of both clocks took.
    narrowest: Option<u64>,
    /// How far an anchor may be off, ns.
    pub(crate) error_ns: u64,
}

impl Anchors {
    /// Reads both clocks.
    pub(crate) fn read(&mut self) {
        let (ticks, ns, width) = self.narrow();
        self.narrowest = Some(self.narrowest.map_or(width, |least| least.min(width)));
        self.add(ticks, ns);
        if let Some(last) = self.kept.back() {
            let half = scaled(width, last.slope).div_ceil(2);
            self.error_ns = self.error_ns.max(half);
        }
    }

    /// A reading that nothing came between, or the best of some.
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

    fn add(&mut self, ticks: u64, ns: u64) {
        let slope = match self.kept.back() {
            Some(last) if ticks > last.ticks => {
                let slope =
                    (u128::from(ns.saturating_sub(last.ns)) << 32) / u128::from(ticks - last.ticks);
                u64::try_from(slope).unwrap_or(u64::MAX)
            }
            // The counter began again, as after a suspend: so does the line through it.
            _ => {
                self.kept.clear();
                0
            }
        };
        if self.kept.len() == 1 {
            // Nothing is known before the first anchor but what came after it.
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

    /// What a stamp is in ns: on the line between the anchors around it, on the nearest line where there is but one.
    #[inline]
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        let ClockInterval { from, to } = &self.newest;
        // Nearly all of them were taken since the last reading but one.
        if ticks >= from.ticks && ticks <= to.ticks {
            from.until(to, ticks)
        } else {
            self.elsewhere(ticks)
        }
    }

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
