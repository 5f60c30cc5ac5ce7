//! The time scale of the emulated network: nanoseconds of the monotonic clock since the network's start. The kernel's
//! timestamps of frames, which are on the real-time clock, are converted to it.

use stackline_core::time::Instant;
use stackline_os::clock::{SystemClock, read_clock};

/// If the real clock has moved more than this against the monotonic one since the last reading, it was set by somebody. In ns.
const SET: u64 = 1_000_000;
/// If two monotonic readings around a reading of the real clock lie closer than this, the thread was not interrupted between. In ns.
const UNDISTURBED: u64 = 3_000;

/// The origin of the network's time, and the offset of the clock that the kernel takes timestamps on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmulatorTimeOrigin {
    /// The origin on the monotonic clock, in ns.
    monotonic: u64,
    /// Real minus monotonic time, in ns, at the last comparison.
    real: u64,
}

impl EmulatorTimeOrigin {
    /// The origin is the present moment.
    pub(crate) fn new() -> Self {
        let mut origin = Self {
            monotonic: read_clock(SystemClock::Monotonic),
            real: 0,
        };
        origin.real = ahead().0;
        origin
    }

    /// The origin on the monotonic clock, in ns.
    pub(crate) const fn monotonic_ns(&self) -> u64 {
        self.monotonic
    }

    /// The present instant of the network's time.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        Instant(read_clock(SystemClock::Monotonic).saturating_sub(self.monotonic))
    }

    /// Compares both clocks again. Returns the present instant, and whether timestamps taken since the last comparison are valid:
    /// they are not if the real clock was set meanwhile.
    pub(crate) fn compare(&mut self) -> (Instant, bool) {
        let (real, monotonic) = ahead();
        let believed = real.abs_diff(self.real) < SET;
        self.real = real;
        (Instant(monotonic.saturating_sub(self.monotonic)), believed)
    }

    /// The instant of a kernel timestamp, given in ns of the real clock; `None` when it lies before the origin.
    pub(crate) fn instant(&self, stamp: u64) -> Option<Instant> {
        stamp
            .checked_sub(self.real)?
            .checked_sub(self.monotonic)
            .map(Instant)
    }
}

/// The real clock minus the monotonic one, and the last reading of the monotonic clock, both in ns.
fn ahead() -> (u64, u64) {
    let mut before = read_clock(SystemClock::Monotonic);
    for _ in 0..3 {
        let real = read_clock(SystemClock::Real);
        let after = read_clock(SystemClock::Monotonic);
        if after - before < UNDISTURBED {
            // The offset to the later reading is the smaller one: so no timestamp seems earlier than it was.
            return (real.saturating_sub(after), after);
        }
        before = after;
    }
    let real = read_clock(SystemClock::Real);
    let after = read_clock(SystemClock::Monotonic);
    (real.saturating_sub(after), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_lies_between_two_readings() {
        let mut origin = EmulatorTimeOrigin::new();
        let before = origin.now();
        let stamp = read_clock(SystemClock::Real);
        let (after, believed) = origin.compare();
        // If the clock is set during the test, there is nothing to check.
        if believed {
            let at = origin.instant(stamp).unwrap();
            assert!(before <= Instant(at.0 + SET) && at <= Instant(after.0 + SET));
        }
        assert_eq!(origin.instant(0), None, "long before zero");
    }
}
