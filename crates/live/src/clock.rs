//! The monotonic clock of this host, and waiting for a moment on it.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use stackline_core::time::{Instant, NANOS_PER_SECOND};

/// Now, in ns since the host's boot.
#[must_use]
#[expect(clippy::cast_sign_loss, reason = "the monotonic clock is never negative")]
pub fn now() -> Instant {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(Instant(0), |t| Instant(t.tv_sec() as u64 * NANOS_PER_SECOND + t.tv_nsec() as u64))
}

/// Waits until `moment`; returns early when a signal comes, so the caller looks at its flags and calls again.
#[expect(clippy::cast_possible_wrap, reason = "nanoseconds since boot fit for 292 years")]
pub fn sleep_until(moment: Instant) {
    let spec = TimeSpec::new((moment.0 / NANOS_PER_SECOND) as i64, (moment.0 % NANOS_PER_SECOND) as i64);
    // An interrupted sleep is the caller's business; there is no other error with a valid clock and time.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &spec);
}
