//! Interrupt moderation in software: decides when received frames stay unread for a pause, so that many are read and sent together.
//!
//! It pauses where small frames come fast and hardly any is answered, so that nobody waits for a single one. A wake-up costs more
//! than a frame, for the emulator and for the program that receives. This file reads no clock: its callers pass the time.

use stackline_core::time::{Duration, Instant};

/// How long frames are counted before the next decision, in ns.
const WINDOW: Duration = Duration(1_000_000);
/// Frames come fast if a window has at least this many.
const FAST: u64 = 32;
/// Hardly any frame is answered if there is at most one answer for this many frames.
const ANSWERED: u64 = 8;
/// The longest pause, in ns. A pause is half of the mean time that frames waited anyway: where the emulator does not keep up, the
/// machine has better use for its processors than wake-ups. Where frames wait for the pause alone, their mean wait is at
/// most the pause, so the next pause is shorter.
const LONGEST: u64 = 1_000_000;

/// Counts small frames (single packets, no trains) in windows, and decides on the pause.
#[derive(Debug)]
pub(crate) struct Moderation {
    /// The pause where the emulator keeps up; the least of all pauses.
    shortest: Duration,
    /// The number of frames that each host sent and received in this window.
    hosts: Vec<(u64, u64)>,
    /// The sum of the times that the frames of this window had waited until they were read, in ns.
    waited: u64,
    /// When this window began.
    since: Instant,
    /// What was decided at the end of the last window.
    pause: Option<Duration>,
}

impl Moderation {
    /// For `hosts` hosts. With `shortest` zero it never pauses.
    pub(crate) fn new(shortest: Duration, hosts: usize) -> Self {
        Self {
            shortest,
            hosts: vec![(0, 0); hosts],
            waited: 0,
            since: Instant(0),
            pause: None,
        }
    }

    /// Starts anew, as after a restart of the network.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.shortest, self.hosts.len());
    }

    /// Counts a frame from one host to another, which had waited for `waited` when it was read.
    #[inline]
    pub(crate) fn count(&mut self, from: u32, to: u32, waited: Duration) {
        self.hosts[from as usize].0 += 1;
        self.hosts[to as usize].1 += 1;
        self.waited += waited.0;
    }

    /// Decides on the pause if the window is over, and begins the next window.
    #[inline]
    pub(crate) fn end_round(&mut self, now: Instant) {
        if now.since(self.since) >= WINDOW {
            self.pause = self.decide();
            self.hosts.fill((0, 0));
            (self.since, self.waited) = (now, 0);
        }
    }

    /// The pause for what was counted in this window. An answer is a frame received by a host for one that it sent.
    fn decide(&self) -> Option<Duration> {
        let frames: u64 = self.hosts.iter().map(|(sent, _)| sent).sum();
        let answered: u64 = self
            .hosts
            .iter()
            .map(|(sent, received)| sent.min(received))
            .sum();
        if self.shortest == Duration::ZERO || frames < FAST || answered * ANSWERED > frames {
            return None;
        }
        let half = self.waited / frames / 2;
        Some(Duration(half.min(LONGEST).max(self.shortest.0)))
    }

    /// How long frames may stay unread from now on. A decision is valid until two windows after it.
    #[inline]
    pub(crate) fn pause(&self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        self.pause
            .filter(|_| now().since(self.since) < Duration(2 * WINDOW.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration(50_000);

    /// The pause after a window with so many frames each way, each of which had waited so long.
    fn after(there: u64, back: u64, waited: Duration) -> Option<Duration> {
        let mut moderation = Moderation::new(SHORT, 3);
        (0..there).for_each(|_| moderation.count(0, 2, waited));
        (0..back).for_each(|_| moderation.count(2, 0, waited));
        moderation.end_round(Instant(WINDOW.0));
        moderation.pause(|| Instant(WINDOW.0))
    }

    #[test]
    fn it_pauses_where_frames_come_fast_in_one_direction() {
        assert_eq!(after(FAST, 0, SHORT), Some(SHORT));
        assert_eq!(after(100, 5, SHORT), Some(SHORT));
        assert_eq!(after(FAST - 1, 0, SHORT), None, "slow");
        assert_eq!(after(1000, 1000, SHORT), None, "calls");
        assert_eq!(
            after(1000, 500, SHORT),
            None,
            "a stream and its acknowledgements"
        );
    }

    #[test]
    fn it_pauses_for_longer_where_frames_wait_anyway() {
        assert_eq!(after(1000, 0, Duration(300_000)), Some(Duration(150_000)));
        assert_eq!(
            after(1000, 0, Duration(40_000_000)),
            Some(Duration(LONGEST))
        );
    }

    #[test]
    fn a_decision_is_soon_forgotten() {
        let mut moderation = Moderation::new(SHORT, 2);
        (0..FAST).for_each(|_| moderation.count(0, 1, SHORT));
        assert_eq!(moderation.pause(|| Instant(0)), None, "nothing was decided");
        moderation.end_round(Instant(WINDOW.0));
        assert_eq!(moderation.pause(|| Instant(3 * WINDOW.0 - 1)), Some(SHORT));
        assert_eq!(moderation.pause(|| Instant(3 * WINDOW.0)), None);
        moderation.end_round(Instant(4 * WINDOW.0));
        assert_eq!(
            moderation.pause(|| Instant(4 * WINDOW.0)),
            None,
            "nothing came"
        );
    }

    #[test]
    fn without_a_pause_it_never_pauses() {
        let mut moderation = Moderation::new(Duration::ZERO, 2);
        (0..1000).for_each(|_| moderation.count(0, 1, Duration(LONGEST)));
        moderation.end_round(Instant(WINDOW.0));
        assert_eq!(moderation.pause(|| Instant(WINDOW.0)), None);
    }
}
