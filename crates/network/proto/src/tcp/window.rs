//! The receive window: it grows with what the application takes in a round trip, as Linux sizes its receive buffer, or
//! it is fixed.

use stackline_core::time::{Duration, Instant};

/// The first window, in bytes.
pub(super) const FIRST: u64 = 64 << 10;
/// The largest window by default, in bytes.
// The default maximum of Linux's `tcp_rmem`.
pub(super) const LARGEST: u64 = 6 << 20;
/// The largest window without window scaling, in bytes.
pub(super) const UNSCALED: u64 = 65_535;

/// The size of the receive window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tuning {
    /// The largest window at present, in bytes.
    pub(super) clamp: u64,
    /// The part of `clamp` that is offered; it grows with arriving segments.
    threshold: u64,
    fixed: bool,
    /// The most bytes taken in a round trip so far.
    space: u64,
    /// The place up to which the application had read when this round trip began.
    from: u64,
    /// When this round trip began.
    since: Instant,
    /// Round trip time measured by the receiver, smoothed, in ns; 0 before the first sample.
    rtt: u64,
    /// The timestamp echoed by the last sample.
    last_echo: u32,
}

impl Tuning {
    pub(super) fn new(fixed: Option<u64>, segment: u32) -> Self {
        let clamp = fixed.unwrap_or(FIRST);
        // A sender's initial window: more cannot come in the first round trip.
        let space = (10 * u64::from(segment)).min(clamp);
        let fixed = fixed.is_some();
        Self {
            clamp,
            threshold: clamp,
            fixed,
            space,
            from: 1,
            since: Instant(0),
            rtt: 0,
            last_echo: 0,
        }
    }

    /// The number of bits by which windows are shifted so that the largest one fits into 16 bits.
    pub(super) fn scale(fixed: Option<u64>) -> u8 {
        let largest = fixed.unwrap_or(LARGEST);
        // RFC 7323, section 2.3: at most 14 bits.
        (0..14)
            .find(|scale| UNSCALED << scale >= largest)
            .unwrap_or(14)
    }

    /// Begins the first round trip when the connection is open.
    pub(super) const fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// Takes a round-trip sample from a full segment that echoes the receiver's own timestamp of `age` ago.
    pub(super) fn echo(&mut self, echo: u32, age: Duration) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let sample = age.0.max(1);
        self.rtt = if self.rtt == 0 || sample < self.rtt {
            sample
        } else {
            self.rtt - self.rtt / 8 + sample / 8
        };
    }

    /// Round trip time measured by the receiver.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        if self.rtt == 0 {
            None
        } else {
            Some(Duration(self.rtt))
        }
    }

    /// Opens the window further when a segment arrives. Returns whether it was opened.
    pub(super) fn arrived(&mut self, segment: u32) -> bool {
        let establish = self.threshold < self.clamp;
        if establish {
            // Two segments for each that arrived, as `tcp_grow_window` of Linux.
            self.threshold = self.clamp.min(self.threshold + 2 * u64::from(segment));
        }
        establish
    }

    /// Notes that the application has taken everything before `taken`. `waiting` bytes can still be taken, `beyond`
    /// bytes have arrived behind gaps.
    pub(super) fn took(&mut self, now: Instant, taken: u64, waiting: u64, beyond: u64) {
        if self.fixed || self.rtt == 0 || now.since(self.since).0 < self.rtt {
            return;
        }
        // What still waits shows that the application is behind: it needs no larger window.
        let copied = (taken - self.from).saturating_sub(waiting);
        if copied > self.space {
            self.grow(copied, beyond);
        }
        (self.from, self.since) = (taken, now);
    }

    /// Enlarges the window by the bytes behind gaps.
    pub(super) fn gap(&mut self, beyond: u64) {
        if !self.fixed {
            self.grow(self.space, beyond);
        }
    }

    /// Grows the window: what was taken in a round trip was sent one round trip earlier, and the sender may have
    /// doubled its rate since.
    fn grow(&mut self, copied: u64, beyond: u64) {
        let window = copied * 2;
        // `copied` is never below `space`: `took` compares them, `gap` passes `space` itself.
        let rise = window * (copied - self.space) / self.space.max(1);
        self.space = copied;
        self.clamp = self.clamp.max((window + 2 * rise + beyond).min(LARGEST));
    }

    /// The window to offer with `held` bytes in the buffer. A silly window (less than a segment) is not offered, unless
    /// `silly` allows it.
    pub(super) fn offer(&self, held: u64, segment: u32, silly: bool) -> u64 {
        let free = self.clamp.saturating_sub(held);
        if !silly && free < (self.clamp / 16).min(u64::from(segment)) {
            0
        } else {
            free.min(self.threshold)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_with_its_reader_up_to_its_largest() {
        let mut tuning = Tuning::new(None, 1448);
        tuning.begin(Instant(0));
        tuning.echo(1, Duration(100));
        let (mut now, mut taken, mut rate) = (0, 1, 14_480);
        let mut windows = alloc::vec::Vec::new();
        for _ in 0..9 {
            now += 100;
            taken += rate;
            rate *= 2;
            tuning.took(Instant(now), taken, 0, 0);
            windows.push(tuning.clamp);
        }
        assert_eq!(windows[0], FIRST);
        assert!(
            windows
                .iter()
                .zip(1..)
                .all(|(window, n)| *window >= (14_480 << n).min(LARGEST)),
            "{windows:?}"
        );
        assert_eq!(windows[8], LARGEST);
    }

    #[test]
    fn a_fixed_window_stays_and_a_silly_one_is_zero() {
        let mut tuning = Tuning::new(Some(10_000), 1448);
        tuning.echo(1, Duration(100));
        tuning.took(Instant(1000), 100_000, 0, 0);
        assert_eq!(
            (
                tuning.clamp,
                tuning.offer(0, 1448, false),
                tuning.offer(9_600, 1448, false)
            ),
            (10_000, 10_000, 0)
        );
        assert_eq!(tuning.offer(9_600, 1448, true), 400);
    }

    #[test]
    fn scales_reach_the_largest_window() {
        assert_eq!(
            [None, Some(1), Some(65_536), Some(1 << 30)].map(Tuning::scale),
            [7, 0, 1, 14]
        );
    }
}
