//! A blast that is arriving: which of its packets are here, what was asked about it, and when its silence is worth a word.
//!
//! It decides nothing: what a packet changes and what is answered, its [receiver](super::receiver) says.

use super::marks::Marks;
use super::options::Blast;
use stackline_core::time::{Duration, Instant};

/// A receiver that has heard nothing more of a blast says so again after twice as long, up to this.
const HUSH_LONGEST: Duration = Duration(1_000_000_000);
/// A blast that is arriving.
#[derive(Clone, Debug)]
pub(super) struct Landing {
    pub(super) blast: Blast,
    pub(super) marks: Marks,
    pub(super) round: u16,
    /// The last round that was asked about, and its check.
    pub(super) asked: Option<u16>,
    pub(super) check: u32,
    /// When the last packet came, and when it was said unasked that something is missing, how often.
    pub(super) heard: Instant,
    pub(super) said: Instant,
    pub(super) hushed: u32,
    /// Whether it is complete, and waits for the driver's verdict.
    pub(super) complete: bool,
    pub(super) unchecked: bool,
}

impl Landing {
    /// One of so many packets whose first one came now, in that round.
    pub(super) fn new(now: Instant, blast: Blast, round: u16, packets: u32) -> Self {
        let marks = Marks::none(packets);
        let (heard, said) = (now, now);
        let (asked, check, hushed, complete, unchecked) = (None, 0, 0, false, false);
        Self { blast, marks, round, asked, check, heard, said, hushed, complete, unchecked }
    }

    /// Packets of it came.
    pub(super) const fn hear(&mut self, now: Instant) {
        (self.heard, self.said, self.hushed) = (now, now, 0);
    }

    /// When it is said unasked that something is missing, where that is done after `hush` at first.
    pub(super) fn says_at(&self, hush: Duration) -> Instant {
        self.said + wait(hush, self.hushed)
    }
}

fn wait(hush: Duration, times: u32) -> Duration {
    Duration(hush.0.saturating_mul(1 << times.min(16)).min(HUSH_LONGEST.0.max(hush.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn silence_is_told_ever_more_seldom_until_something_comes() {
        let blast = Blast { number: 0, start: 0, length: 3000, last: false };
        let mut landing = Landing::new(Instant(MS), blast, 0, 3);
        let hush = Duration(10 * MS);
        let waits: alloc::vec::Vec<u64> = (0..9)
            .map(|_| {
                let at = landing.says_at(hush);
                let waited = at - landing.said;
                (landing.said, landing.hushed) = (at, landing.hushed + 1);
                waited.0 / MS
            })
            .collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        landing.hear(Instant(9000 * MS));
        assert_eq!(landing.says_at(hush), Instant(9010 * MS));
        assert_eq!(landing.says_at(Duration(2000 * MS)), Instant(11_000 * MS));
    }
}
