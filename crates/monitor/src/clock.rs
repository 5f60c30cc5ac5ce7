//! Clocks of the kernel: the monotonic one, the CPU time of a thread, how well the wall clock is synchronised. It only reads.

use nix::time::{ClockId, clock_gettime};
use stackline_core::time::NANOS_PER_SECOND;
use stackline_core::trace::KernelClock;
use std::io;

/// The monotonic clock, ns since boot.
#[inline]
#[must_use]
#[expect(clippy::cast_sign_loss, reason = "the monotonic clock is never negative")]
pub fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * NANOS_PER_SECOND + t.tv_nsec() as u64)
}

/// CPU seconds of the calling thread.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of one thread")]
pub fn thread_cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    spent.map_or(0.0, |t| t.tv_sec() as f64 + t.tv_nsec() as f64 / NANOS_PER_SECOND as f64)
}

/// What the kernel reports about the synchronisation of the wall clock.
///
/// # Errors
/// When the kernel refuses.
pub fn synchronisation() -> io::Result<KernelClock> {
    crate::sys::adjtimex::read()
}
