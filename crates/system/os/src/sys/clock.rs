//! Reads the system's clocks with little overhead.

use std::mem::zeroed;

/// A clock of the system.
#[derive(Clone, Copy, Debug)]
pub enum SystemClock {
    /// `CLOCK_MONOTONIC`, which is never set.
    Monotonic,
    /// `CLOCK_REALTIME`, the clock of the kernel's timestamps of frames.
    Real,
    /// Processor time of this thread.
    Thread,
}

/// Reads a clock, in ns.
#[inline]
#[must_use]
pub fn read_clock(clock: SystemClock) -> u64 {
    let id = match clock {
        SystemClock::Monotonic => libc::CLOCK_MONOTONIC,
        SystemClock::Real => libc::CLOCK_REALTIME,
        SystemClock::Thread => libc::CLOCK_THREAD_CPUTIME_ID,
    };
    // SAFETY: timespec is plain data, for which all bytes zero is a value.
    let mut time: libc::timespec = unsafe { zeroed() };
    // SAFETY: the pointer is to a live value; these clocks are always there.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
