//! Blocks that come in any order, given out in theirs at a steady pace (smooth playout; Tierney et al. 1996, section 2.1).
//!
//! It waits until so many blocks are held, then one is due at each interval. A block that is not there when it is due is
//! skipped, or waited for until as many are held as at the beginning. It asks for nothing; time is an argument.

use alloc::collections::BTreeMap;
use stackline_core::time::{Duration, Instant};

/// What is done about a block that is due and not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingBlockPolicy {
    /// It is left out: the pace is kept.
    Skip,
    /// It is waited for: nothing is left out.
    Wait,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlayoutStep<T> {
    /// The block of that number is due.
    Give(u64, T),
    /// The block of that number was due and is left out.
    Skipped(u64),
    /// Nothing before that moment; without one, before a block comes.
    Wait(Option<Instant>),
    /// All has been given out.
    Over,
}

/// Blocks `next..end`.
#[derive(Clone, Debug)]
pub struct Playout<T> {
    next: u64,
    end: u64,
    held: BTreeMap<u64, T>,
    depth: usize,
    interval: Duration,
    missing: MissingBlockPolicy,
    /// When the next one is due; nothing while blocks are gathered.
    due: Option<Instant>,
    /// Blocks that came behind their turn, that were left out, and how often all stood still.
    late: u64,
    skipped: u64,
    stalls: u64,
}

impl<T> Playout<T> {
    /// For the blocks `first..end`, begun when `depth` of them are held (all of them, if they are fewer), one each `interval`.
    #[must_use]
    pub const fn new(
        first: u64,
        end: u64,
        depth: usize,
        interval: Duration,
        missing: MissingBlockPolicy,
    ) -> Self {
        let held = BTreeMap::new();
        Self {
            next: first,
            end,
            held,
            depth,
            interval,
            missing,
            due: None,
            late: 0,
            skipped: 0,
            stalls: 0,
        }
    }

    /// A block came. One whose turn is over, or that is held already, is dropped.
    pub fn came(&mut self, number: u64, block: T) {
        if number < self.next {
            self.late += 1;
        } else if number < self.end {
            self.held.entry(number).or_insert(block);
        }
    }

    /// What is to be done at that moment; to be asked again until it says to wait, or that all is over.
    pub fn step(&mut self, now: Instant) -> PlayoutStep<T> {
        if self.next >= self.end {
            return PlayoutStep::Over;
        }
        let Some(due) = self.due else {
            return self.gather(now);
        };
        if now < due {
            return PlayoutStep::Wait(Some(due));
        }
        let number = self.next;
        match (self.held.remove(&number), self.missing) {
            (Some(block), _) => {
                self.pass(due);
                PlayoutStep::Give(number, block)
            }
            (None, MissingBlockPolicy::Skip) => {
                self.skipped += 1;
                self.pass(due);
                PlayoutStep::Skipped(number)
            }
            (None, MissingBlockPolicy::Wait) => {
                self.stalls += 1;
                self.due = None;
                self.gather(now)
            }
        }
    }

    /// Begins when enough is held, the next block among it.
    fn gather(&mut self, now: Instant) -> PlayoutStep<T> {
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let whole = self.missing == MissingBlockPolicy::Skip || self.held.contains_key(&self.next);
        if self.held.len() < self.depth.clamp(1, left) || !whole {
            return PlayoutStep::Wait(None);
        }
        self.due = Some(now);
        self.step(now)
    }

    fn pass(&mut self, due: Instant) {
        self.next += 1;
        self.due = Some(due + self.interval);
    }

    /// Blocks that came behind their turn, that were left out, and how often all stood still.
    #[must_use]
    pub const fn counts(&self) -> (u64, u64, u64) {
        (self.late, self.skipped, self.stalls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const INTERVAL: Duration = Duration(10);

    fn playout(missing: MissingBlockPolicy) -> Playout<&'static str> {
        Playout::new(0, 4, 2, INTERVAL, missing)
    }

    #[test]
    fn blocks_come_in_any_order_and_are_given_out_in_theirs() {
        let mut playout = playout(MissingBlockPolicy::Skip);
        assert_eq!(playout.step(Instant(0)), PlayoutStep::Wait(None));
        playout.came(1, "b");
        assert_eq!(
            playout.step(Instant(3)),
            PlayoutStep::Wait(None),
            "one is not enough to begin"
        );
        playout.came(0, "a");
        assert_eq!(playout.step(Instant(5)), PlayoutStep::Give(0, "a"));
        assert_eq!(
            playout.step(Instant(5)),
            PlayoutStep::Wait(Some(Instant(15)))
        );
        playout.came(3, "d");
        playout.came(2, "c");
        let given: Vec<_> = [15, 25, 35, 45].map(|at| playout.step(Instant(at))).into();
        assert_eq!(
            given,
            [
                PlayoutStep::Give(1, "b"),
                PlayoutStep::Give(2, "c"),
                PlayoutStep::Give(3, "d"),
                PlayoutStep::Over
            ]
        );
        assert_eq!(playout.counts(), (0, 0, 0));
    }

    #[test]
    fn what_is_not_there_is_skipped_and_comes_too_late() {
        let mut playout = playout(MissingBlockPolicy::Skip);
        playout.came(0, "a");
        playout.came(2, "c");
        assert_eq!(playout.step(Instant(0)), PlayoutStep::Give(0, "a"));
        assert_eq!(playout.step(Instant(10)), PlayoutStep::Skipped(1));
        playout.came(1, "b");
        assert_eq!(playout.step(Instant(20)), PlayoutStep::Give(2, "c"));
        assert_eq!(playout.counts(), (1, 1, 0));
    }

    #[test]
    fn or_it_is_waited_for_until_enough_is_held_again() {
        let mut playout = playout(MissingBlockPolicy::Wait);
        playout.came(0, "a");
        playout.came(2, "c");
        assert_eq!(playout.step(Instant(0)), PlayoutStep::Give(0, "a"));
        assert_eq!(playout.step(Instant(10)), PlayoutStep::Wait(None));
        playout.came(3, "d");
        assert_eq!(
            playout.step(Instant(20)),
            PlayoutStep::Wait(None),
            "the one that is due is not among them"
        );
        playout.came(1, "b");
        assert_eq!(playout.step(Instant(30)), PlayoutStep::Give(1, "b"));
        assert_eq!(playout.step(Instant(40)), PlayoutStep::Give(2, "c"));
        assert_eq!(playout.counts(), (0, 0, 1));
    }

    #[test]
    fn a_late_look_gives_what_was_due_at_once_and_keeps_the_pace() {
        let mut playout = playout(MissingBlockPolicy::Skip);
        for (number, block) in [(0, "a"), (1, "b"), (2, "c")] {
            playout.came(number, block);
        }
        assert_eq!(playout.step(Instant(0)), PlayoutStep::Give(0, "a"));
        assert_eq!(playout.step(Instant(25)), PlayoutStep::Give(1, "b"));
        assert_eq!(playout.step(Instant(25)), PlayoutStep::Give(2, "c"));
        assert_eq!(
            playout.step(Instant(25)),
            PlayoutStep::Wait(Some(Instant(30)))
        );
    }
}
