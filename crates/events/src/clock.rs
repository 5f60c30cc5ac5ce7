//! The time an event is stamped with: ns since 1970 where this process started to record, going on with the monotonic clock
//! from there, so that no step of the wall clock tears events apart.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

fn origin() -> &'static (Instant, u64) {
    static ORIGIN: OnceLock<(Instant, u64)> = OnceLock::new();
    ORIGIN.get_or_init(|| {
        let (before, wall, after) = (Instant::now(), SystemTime::now(), Instant::now());
        let since = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        // The wall was read between the two.
        (before + (after - before) / 2, since)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on() {
        let (a, b) = (now_ns(), now_ns());
        assert!(a <= b && a > 1_600_000_000_000_000_000);
        let moment = Instant::now();
        assert_eq!(monotonic_to_now_ns(5, moment), i128::from(at_ns(moment)) - 5);
    }
}
