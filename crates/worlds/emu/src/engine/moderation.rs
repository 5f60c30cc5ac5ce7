//! When frames stay unread for a moment, so that many are read and sent together: where small ones come fast and hardly
//! any is answered, so that nobody waits for a single one.
//!
//! A wake-up costs more than a frame, for the emulator and for the program that receives. No clock is read here.

use stackline_core::time::{Duration, Instant};

/// How long frames are counted before it is decided.
const WINDOW: Duration = Duration(1_000_000);
/// So many frames in a window come fast.
const FAST: u64 = 32;
/// One answer for so many frames is hardly any.
const ANSWERED: u64 = 8;
/// The longest pause. It is half of what frames wait anyway: where the emulator does not keep up, the machine has better
/// use for its processors than wake-ups. A pause alone makes frames wait for less than twice its half, so it shrinks again.
const LONGEST: u64 = 1_000_000;

/// Counts small frames, and decides.
#[derive(Debug)]
pub(crate) struct Moderation {
    /// The pause where the emulator keeps up.
    shortest: Duration,
    /// What each host sent and received in this window.
    hosts: Vec<(u64, u64)>,
    /// How long the frames of this window had waited, together, in ns.
    waited: u64,
    since: Instant,
    pause: Option<Duration>,
}

impl Moderation {
    /// Of so many hosts; with a pause of zero it never pauses.
    pub(crate) fn new(shortest: Duration, hosts: usize) -> Self {
        Self {
            shortest,
            hosts: vec![(0, 0); hosts],
            waited: 0,
            since: Instant(0),
            pause: None,
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.shortest, self.hosts.len());
    }

    /// A frame from one host to another that had waited so long.
    #[inline]
    pub(crate) fn count(&mut self, from: u32, to: u32, waited: Duration) {
        self.hosts[from as usize].0 += 1;
        self.hosts[to as usize].1 += 1;
        self.waited += waited.0;
    }

    /// Decides when a window is over.
    #[inline]
    pub(crate) fn end_round(&mut self, now: Instant) {
        if now.since(self.since) >= WINDOW {
            self.pause = self.decide();
            self.hosts.fill((0, 0));
            (self.since, self.waited) = (now, 0);
        }
    }

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

    /// How long frames may stay unread from now on. What was decided long ago does not count.
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
