//! Naps of a receiver in the middle of a long transfer: instead of being woken for every message it sleeps for a fixed short
//! time, so that the sender need not wake it (an interrupt to another processor each time) and many messages are there then.
//!
//! A nap is worth it where it brings much and costs the sender nothing: it gets shorter where a good part of what was granted
//! comes meanwhile, and is left out for a while where little comes.

use std::time::Duration;

/// Longest and shortest nap. The kernel adds its timer slack, 50 us where nobody changed it.
const LONGEST: Duration = Duration::from_micros(100);
const SHORTEST: Duration = Duration::from_micros(10);
/// A nap that brought less was none.
const LITTLE: u64 = 192 << 10;
/// With less than that to come, nobody naps.
pub(crate) const REST: u64 = 1 << 20;
/// So many waits at most without another try.
const LONGEST_PAUSE: u32 = 1 << 10;

/// What naps have brought.
#[derive(Debug)]
pub(crate) struct Naps {
    time: Duration,
    /// Bytes that came since the last wait, and whether that was a nap.
    came: u64,
    napped: bool,
    /// Waits until the next try, and how many it will be after another failure.
    pause: u32,
    next_pause: u32,
}

impl Naps {
    pub(crate) const fn new() -> Self {
        Self { time: LONGEST, came: 0, napped: false, pause: 0, next_pause: 1 }
    }

    /// So many bytes came.
    pub(crate) const fn came(&mut self, bytes: u64) {
        self.came += bytes;
    }

    /// Nothing is there: how long to nap before waiting, where the peer may send `granted` bytes without an answer.
    pub(crate) fn next(&mut self, granted: u64) -> Option<Duration> {
        self.learn(granted);
        self.came = 0;
        self.pause = self.pause.saturating_sub(u32::from(!self.napped));
        self.napped = self.pause == 0;
        self.napped.then_some(self.time)
    }

    fn learn(&mut self, granted: u64) {
        if !self.napped {
            return;
        }
        if self.came < LITTLE || (self.came > granted / 4 && self.time <= SHORTEST) {
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause).min(LONGEST_PAUSE);
            self.napped = false;
            return;
        }
        self.next_pause = 1;
        if self.came > granted / 4 {
            self.time /= 2;
        } else if self.came < granted / 8 {
            self.time = (self.time * 2).min(LONGEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTED: u64 = 4 << 20;

    #[test]
    fn naps_that_bring_much_go_on_and_those_that_bring_too_much_get_shorter() {
        let mut naps = Naps::new();
        assert_eq!(naps.next(GRANTED), Some(LONGEST));
        naps.came(GRANTED / 8);
        assert_eq!(naps.next(GRANTED), Some(LONGEST));
        naps.came(GRANTED / 2);
        assert_eq!(naps.next(GRANTED), Some(LONGEST / 2));
        naps.came(GRANTED / 10);
        assert_eq!(naps.next(GRANTED), Some(LONGEST));
    }

    #[test]
    fn naps_that_bring_little_are_tried_ever_more_seldom() {
        let mut naps = Naps::new();
        let mut tries = 0;
        for _ in 0..10_000 {
            tries += u32::from(naps.next(GRANTED).is_some());
            naps.came(LITTLE / 2);
        }
        assert!((10..30).contains(&tries), "{tries}");
        while naps.next(GRANTED).is_none() {}
        naps.came(LITTLE);
        assert!(naps.next(GRANTED).is_some());
    }

    #[test]
    fn little_that_is_granted_is_never_slept_over() {
        let mut naps = Naps::new();
        let mut tries = 0;
        for _ in 0..1000 {
            tries += u32::from(naps.next(400 << 10).is_some());
            naps.came(400 << 10);
        }
        assert!(tries < 30, "{tries}");
    }
}
