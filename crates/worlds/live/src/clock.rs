//! The monotonic clock of this host, and waiting for a moment on it.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use stackline_core::time::{Instant, NANOS_PER_SECOND};
use stackline_events::clock as events;
use stackline_monitor::clock::monotonic_ns;

/// The present time of the monotonic clock, ns (since about the host's boot).
#[inline]
#[must_use]
pub fn now() -> Instant {
    Instant(monotonic_ns())
}

/// One moment read on two clocks: the one that events are stamped with, and the monotonic clock in ns. The third value is how far the two
/// readings may be apart, ns: half the shortest of 100 readings.
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

/// The time stamp of events (since 1970) minus the monotonic clock in this process, ns.
#[must_use]
pub fn ahead_of_monotonic_ns() -> i64 {
    let (moment, monotonic_ns, _) = read_clocks();
    i64::try_from(i128::from(events::at_ns(moment)) - i128::from(monotonic_ns)).unwrap_or(0)
}

/// Environment variable for tests: the agent's clock for events runs this many ns ahead of the real time.
pub(crate) const SHIFT: &str = "STACKLINE_CLOCK_AHEAD_NS";

/// A note for the report if [`SHIFT`] is set.
pub(crate) fn describe_clock_shift() -> Option<String> {
    let ahead = std::env::var_os(SHIFT)?;
    Some(format!(
        "{SHIFT}={} is set for this agent: its clock differs from the machine's",
        ahead.to_string_lossy()
    ))
}

/// Identifies the monotonic clock by boot ID and time namespace: processes with the same identity read the same clock. `None` if the
/// clock is shifted for a test.
#[must_use]
pub fn identity() -> Option<String> {
    if std::env::var_os(SHIFT).is_some() {
        return None;
    }
    // A kernel without time namespaces has one clock.
    namespace("time").or_else(|| boot().map(|boot| format!("{boot}/time")))
}

/// Identifies a namespace of this process among all machines: the boot ID and the link in `/proc/self/ns/`.
pub(crate) fn namespace(kind: &str) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    Some(format!("{}/{}", boot()?, link.to_string_lossy()))
}

/// The kernel's random ID of the machine's present boot.
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
    // The caller handles an interrupted sleep; with a valid clock and time there is no other error.
    let _ = clock_nanosleep(
        ClockId::CLOCK_MONOTONIC,
        ClockNanosleepFlags::TIMER_ABSTIME,
        &spec,
    );
}
