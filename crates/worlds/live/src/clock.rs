//! The monotonic clock of this host, and waiting for a moment on it.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use stackline_core::time::{Instant, NANOS_PER_SECOND};
use stackline_events::clock as events;
use stackline_monitor::clock::monotonic_ns;

/// Now, in ns since the host's boot.
#[inline]
#[must_use]
pub fn now() -> Instant {
    Instant(monotonic_ns())
}

/// The same moment as events have it and on the monotonic clock, in ns, and how far the two may be apart, ns.
#[must_use]
pub(crate) fn read_clocks() -> (std::time::Instant, u64, u64) {
    let read = || {
        let before = std::time::Instant::now();
        let middle = now().0;
        let after = std::time::Instant::now();
        (
            before + (after - before) / 2,
            middle,
            (after - before).as_nanos() as u64,
        )
    };
    let best = (0..100).map(|_| read()).min_by_key(|(.., width)| *width);
    let (moment, monotonic_ns, width) = best.unwrap_or_else(read);
    (moment, monotonic_ns, width.div_ceil(2))
}

/// How far the time of events is ahead of the monotonic clock in this process, ns.
#[must_use]
pub fn ahead_of_monotonic_ns() -> i64 {
    let (moment, monotonic_ns, _) = read_clocks();
    i64::try_from(i128::from(events::at_ns(moment)) - i128::from(monotonic_ns)).unwrap_or(0)
}

/// Set for an agent whose clock is to be ahead, in ns, of what it is: for tests.
pub(crate) const SHIFT: &str = "STACKLINE_CLOCK_AHEAD_NS";

/// Says so where it is set.
pub(crate) fn describe_clock_shift() -> Option<String> {
    let ahead = std::env::var_os(SHIFT)?;
    Some(format!(
        "{SHIFT}={} is set for this agent: its clock differs from the machine's",
        ahead.to_string_lossy()
    ))
}

/// Names the monotonic clock: the machine since its boot, and the time namespace. Who has the same name has the same clock.
#[must_use]
pub fn identity() -> Option<String> {
    if std::env::var_os(SHIFT).is_some() {
        return None;
    }
    // A kernel without time namespaces has one clock.
    namespace("time").or_else(|| boot().map(|boot| format!("{boot}/time")))
}

/// Names a namespace of this process, on all machines.
pub(crate) fn namespace(kind: &str) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    Some(format!("{}/{}", boot()?, link.to_string_lossy()))
}

fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Waits until `moment`; returns early when a signal comes, so the caller checks its flags and calls again.
#[expect(
    clippy::cast_possible_wrap,
    reason = "nanoseconds since boot fit in i64 for 292 years"
)]
pub fn sleep_until(moment: Instant) {
    let spec = TimeSpec::new(
        (moment.0 / NANOS_PER_SECOND) as i64,
        (moment.0 % NANOS_PER_SECOND) as i64,
    );
    // An interrupted sleep is the caller's business; there is no other error with a valid clock and time.
    let _ = clock_nanosleep(
        ClockId::CLOCK_MONOTONIC,
        ClockNanosleepFlags::TIMER_ABSTIME,
        &spec,
    );
}
