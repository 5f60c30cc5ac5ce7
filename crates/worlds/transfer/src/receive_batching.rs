//! Decides on short sleeps of a receiver in the middle of a long transfer. It sleeps instead of being woken for every message, so that
//! the sender need not wake it (an interrupt to another processor each time) and many messages are read at once.
//!
//! A sleep pays if much data arrives meanwhile and the sender never has to wait for the receiver: the sleep gets shorter when a large
//! part of the grant (what the peer may send without an answer) arrives meanwhile, and is skipped for some waits when little arrives.

use std::time::Duration;

/// Longest sleep. The kernel adds its timer slack, 50 us by default.
const LONGEST: Duration = Duration::from_micros(100);
/// Shortest sleep.
const SHORTEST: Duration = Duration::from_micros(10);
/// A sleep during which fewer bytes arrived did not pay.
const LEAST_BYTES: u64 = 192 << 10;
/// If fewer bytes than this are still expected, the receiver does not sleep.
pub(crate) const LEAST_REMAINING: u64 = 1 << 20;
/// Most waits after which a sleep is tried again.
const LONGEST_PAUSE: u32 = 1 << 10;

/// The length of the next sleep, adapted to what earlier sleeps brought.
#[derive(Debug)]
pub(crate) struct ReceiveBatching {
    /// How long the next sleep is.
    time: Duration,
    /// Bytes received since the last wait.
    bytes: u64,
    /// Whether the last wait was a sleep.
    slept: bool,
    /// Waits until a sleep is tried again.
    pause: u32,
    /// The value of `pause` after the next sleep that does not pay; doubled each time.
    next_pause: u32,
}

impl ReceiveBatching {
    pub(crate) const fn new() -> Self {
        Self {
            time: LONGEST,
            bytes: 0,
            slept: false,
            pause: 0,
            next_pause: 1,
        }
    }

    /// Counts bytes that were received.
    pub(crate) const fn received(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Called when nothing is available: how long to sleep before waiting, if at all. `granted` is the number of bytes that the peer may
    /// send without an answer.
    pub(crate) fn next_sleep(&mut self, granted: u64) -> Option<Duration> {
        self.adapt(granted);
        self.bytes = 0;
        self.pause = self.pause.saturating_sub(u32::from(!self.slept));
        self.slept = self.pause == 0;
        self.slept.then_some(self.time)
    }

    /// Adapts the length of sleeps to what the last one brought.
    fn adapt(&mut self, granted: u64) {
        if !self.slept {
            return;
        }
        if self.bytes < LEAST_BYTES || (self.bytes > granted / 4 && self.time <= SHORTEST) {
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause).min(LONGEST_PAUSE);
            self.slept = false;
            return;
        }
        self.next_pause = 1;
        if self.bytes > granted / 4 {
            self.time /= 2;
        } else if self.bytes < granted / 8 {
            self.time = (self.time * 2).min(LONGEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTED: u64 = 4 << 20;

    #[test]
    fn the_sleep_adapts_to_what_it_brings() {
        let mut batching = ReceiveBatching::new();
        assert_eq!(batching.next_sleep(GRANTED), Some(LONGEST));
        batching.received(GRANTED / 8);
        assert_eq!(batching.next_sleep(GRANTED), Some(LONGEST));
        batching.received(GRANTED / 2);
        assert_eq!(batching.next_sleep(GRANTED), Some(LONGEST / 2));
        batching.received(GRANTED / 10);
        assert_eq!(batching.next_sleep(GRANTED), Some(LONGEST));
    }

    #[test]
    fn sleeps_that_bring_little_become_rarer() {
        let mut batching = ReceiveBatching::new();
        let mut tries = 0;
        for _ in 0..10_000 {
            tries += u32::from(batching.next_sleep(GRANTED).is_some());
            batching.received(LEAST_BYTES / 2);
        }
        assert!((10..30).contains(&tries), "{tries}");
        while batching.next_sleep(GRANTED).is_none() {}
        batching.received(LEAST_BYTES);
        assert!(batching.next_sleep(GRANTED).is_some());
    }

    #[test]
    fn small_grants_stop_the_sleep() {
        let mut batching = ReceiveBatching::new();
        let mut tries = 0;
        for _ in 0..1000 {
            tries += u32::from(batching.next_sleep(400 << 10).is_some());
            batching.received(400 << 10);
        }
        assert!(tries < 30, "{tries}");
    }
}
