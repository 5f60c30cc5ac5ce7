//! Instants of the emulated network: the monotonic clock since its start, and the kernel's timestamps of frames on that
//! scale.

use stackline_core::time::Instant;
use stackline_os::clock::{SystemClock, read_clock};

/// If the real clock has moved more than this against the monotonic one since the last reading, it was set.
const SET: u64 = 1_000_000;
/// Greatest distance of two monotonic readings around one of the real clock that counts as uninterrupted.
const UNDISTURBED: u64 = 3_000;

/// Zero of the network's time, and the offset of the timestamp clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmulatorTimeOrigin {
    monotonic: u64,
    /// Real minus monotonic time.
    real: u64,
}

impl EmulatorTimeOrigin {
    /// Now is zero.
    pub(crate) fn new() -> Self {
        let mut origin = Self {
            monotonic: read_clock(SystemClock::Monotonic),
            real: 0,
        };
        origin.real = ahead().0;
        origin
    }

    /// Zero on the monotonic clock, ns.
    pub(crate) const fn monotonic_ns(&self) -> u64 {
        self.monotonic
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        Instant(read_clock(SystemClock::Monotonic).saturating_sub(self.monotonic))
    }

    /// Now, and whether timestamps before it are valid: not if the real clock was set meanwhile.
    pub(crate) fn compare(&mut self) -> (Instant, bool) {
        let (real, monotonic) = ahead();
        let believed = real.abs_diff(self.real) < SET;
        self.real = real;
        (Instant(monotonic.saturating_sub(self.monotonic)), believed)
    }

    /// The instant of a stamp; `None` when it lies before zero.
    pub(crate) fn instant(&self, stamp: u64) -> Option<Instant> {
        stamp
            .checked_sub(self.real)?
            .checked_sub(self.monotonic)
            .map(Instant)
    }
}

/// Offset of the real clock to the monotonic one, and the latter's last reading.
fn ahead() -> (u64, u64) {
    let mut before = read_clock(SystemClock::Monotonic);
    for _ in 0..3 {
        let real = read_clock(SystemClock::Real);
        let after = read_clock(SystemClock::Monotonic);
        if after - before < UNDISTURBED {
            // The later reading: no timestamp may seem earlier than it was.
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
