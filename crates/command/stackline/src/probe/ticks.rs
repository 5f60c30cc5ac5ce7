//! When probes are due: at multiples of the interval. A multiple that passes while a probe goes on is skipped and counted.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of the day, ms since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, millis)
}

/// A time in ms.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A probe that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeTick {
    /// When it is due, ms since 1970.
    pub(super) due_ms: u64,
    /// Multiples of the interval before it at which no probe was made.
    pub(super) skipped: u64,
}

/// The probe after the one that was due at `last_ms`, now that it is made.
pub(super) const fn next_tick(last_ms: u64, now_ms: u64, every_ms: u64) -> ProbeTick {
    let every_ms = if every_ms == 0 { 1 } else { every_ms };
    let next = (last_ms / every_ms)
        .saturating_add(1)
        .saturating_mul(every_ms);
    let due_ms = now_ms.div_ceil(every_ms).saturating_mul(every_ms);
    if next > now_ms.saturating_add(every_ms) {
        // The clock was set back.
        return ProbeTick { due_ms, skipped: 0 };
    }
    if next >= now_ms {
        return ProbeTick {
            due_ms: next,
            skipped: 0,
        };
    }
    ProbeTick {
        due_ms,
        skipped: (due_ms - next) / every_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_due_at_multiples_and_those_that_pass_are_counted() {
        let tick = |due_ms, skipped| ProbeTick { due_ms, skipped };
        // The first probe, at 130 ms, is at no multiple.
        assert_eq!(next_tick(130, 140, 100), tick(200, 0));
        assert_eq!(next_tick(200, 260, 100), tick(300, 0));
        assert_eq!(next_tick(200, 300, 100), tick(300, 0));
        // At 300 and 400 the probe of 200 still went on.
        assert_eq!(next_tick(200, 401, 100), tick(500, 2));
        assert_eq!(next_tick(200, 400, 100), tick(400, 1));
        // A clock that was set back by an hour, and one that was set ahead.
        assert_eq!(next_tick(3_600_200, 210, 100), tick(300, 0));
        assert_eq!(next_tick(200, 3_600_250, 100), tick(3_600_300, 36_000));
        assert_eq!(next_tick(5, 6, 0), tick(6, 0));
    }
}
