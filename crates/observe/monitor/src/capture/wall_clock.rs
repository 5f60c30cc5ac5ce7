//! Converts times of the wall clock, with which the kernel stamps packets, to the clock of events.
//!
//! Both clocks follow the kernel's own time, so their difference changes only when the wall clock is set. The closest pair of
//! readings is kept until a later one shows that it was set. Packets stamped before that and read after it are off by that step.

use stackline_events::clock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Each reading is repeated this often; the closest pair counts.
const TRIES: usize = 3;
/// The rounding error of both clocks together, which are read in whole ns.
const ROUNDING_NS: u64 = 2;

/// How far the clock of events is ahead of the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wall {
    ahead_ns: i64,
    /// The largest error of that, ns.
    error_ns: u64,
}

impl Wall {
    /// Reads both clocks together.
    pub(super) fn read() -> Self {
        let once = || {
            let (before, wall, after) = (Instant::now(), SystemTime::now(), Instant::now());
            let width = after - before;
            let wall_ns = wall
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_nanos() as u64);
            let ahead_ns = clock::at_ns(before + width / 2)
                .wrapping_sub(wall_ns)
                .cast_signed();
            Self {
                ahead_ns,
                error_ns: (width / 2).as_nanos() as u64,
            }
        };
        (1..TRIES).map(|_| once()).fold(once(), Self::closer)
    }

    /// The reading with the smaller error.
    fn closer(self, other: Self) -> Self {
        if other.error_ns < self.error_ns {
            other
        } else {
            self
        }
    }

    /// Combines this reading with a later one: the later one counts if the wall clock was set, else the closer one.
    pub(super) fn renewed(self, now: Self) -> Self {
        let was_set =
            self.ahead_ns.abs_diff(now.ahead_ns) > self.error_ns + now.error_ns + ROUNDING_NS;
        if was_set { now } else { self.closer(now) }
    }

    /// A time of the wall clock on the clock of events, ns.
    #[inline]
    pub(super) const fn event_ns(self, wall_ns: u64) -> u64 {
        wall_ns.saturating_add_signed(self.ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_reading_is_kept_until_the_wall_is_set() {
        let first = Wall {
            ahead_ns: -500,
            error_ns: 40,
        };
        assert_eq!(
            first
                .renewed(Wall {
                    ahead_ns: -450,
                    error_ns: 60
                })
                .ahead_ns,
            -500
        );
        assert_eq!(
            first
                .renewed(Wall {
                    ahead_ns: -510,
                    error_ns: 20
                })
                .ahead_ns,
            -510
        );
        assert_eq!(
            first
                .renewed(Wall {
                    ahead_ns: 90_000,
                    error_ns: 60
                })
                .ahead_ns,
            90_000
        );
        assert_eq!(first.event_ns(2_000), 1_500);
    }
}
