//! Reads clocks of the kernel: the monotonic clock, the CPU time of a thread, and how well the wall clock is synchronised.

use nix::time::{ClockId, clock_gettime};
use stackline_core::time::NANOS_PER_SECOND;
use stackline_core::trace_index::KernelClock;
use stackline_events::clock;
use std::io;
use std::sync::OnceLock;
use std::time::Instant;

/// Three readings in a row: of one clock, of another, and of the first again.
type ClockReading = (u64, Instant, u64);

/// How often two clocks are read; the closest pair counts.
const READINGS: usize = 50;

/// The monotonic clock, ns since boot.
#[inline]
#[must_use]
#[expect(
    clippy::cast_sign_loss,
    reason = "the monotonic clock is never negative"
)]
pub fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| {
        t.tv_sec() as u64 * NANOS_PER_SECOND + t.tv_nsec() as u64
    })
}

/// What has to be added to the monotonic clock to get the clock of events, ns. Both run at the same speed, so it is measured once,
/// from the closest of many readings: an interruption between two readings would cause an error of half its length.
#[must_use]
pub fn monotonic_to_events_ns() -> i128 {
    static OFFSET: OnceLock<i128> = OnceLock::new();
    *OFFSET.get_or_init(|| {
        let read = || (monotonic_ns(), Instant::now(), monotonic_ns());
        let closer = |a: ClockReading, b: ClockReading| if b.2 - b.0 < a.2 - a.0 { b } else { a };
        let (before, read_at, after) = (1..READINGS).map(|_| read()).fold(read(), closer);
        clock::monotonic_to_now_ns(before + (after - before) / 2, read_at)
    })
}

/// CPU seconds of the calling thread.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of one thread")]
pub fn thread_cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    spent.map_or(0.0, |t| {
        t.tv_sec() as f64 + t.tv_nsec() as f64 / NANOS_PER_SECOND as f64
    })
}

/// What the kernel reports about the synchronisation of the wall clock.
///
/// # Errors
/// When the kernel refuses.
pub fn synchronisation() -> io::Result<KernelClock> {
    stackline_os::adjtimex::read()
}
