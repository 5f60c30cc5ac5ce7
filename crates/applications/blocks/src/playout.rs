//! Playout: blocks that come in any order are given out in the order of their numbers at a steady pace (smooth playout; Tierney et al.
//! 1996, section 2.1).
//!
//! It gathers blocks until `depth` of them are held; from then on one block is due at each interval. A block that is missing when it is due
//! is skipped, or playout stalls until `depth` blocks are held again. It asks for no blocks itself, and the time is an argument.

use alloc::collections::BTreeMap;
use stackline_core::time::{Duration, Instant};

/// What happens when a block is due and has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingBlockPolicy {
    /// It is skipped: the pace is kept.
    Skip,
    /// Playout waits for it: nothing is skipped.
    Wait,
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlayoutStep<T> {
    /// Give out the block with this number.
    Give(u64, T),
    /// The block with this number was due and is skipped.
    Skipped(u64),
    /// Wait until that moment; if there is none, until a block comes.
    Wait(Option<Instant>),
    /// All blocks have been given out or skipped.
    Over,
}

/// The playout of the blocks `next..end`.
#[derive(Clone, Debug)]
pub struct Playout<T> {
    /// The next block to give out.
    next: u64,
    end: u64,
    /// Blocks that came and are not given out yet.
    held: BTreeMap<u64, T>,
    /// How many blocks are held before playout begins.
    depth: usize,
    interval: Duration,
    missing: MissingBlockPolicy,
    /// When the next block is due; `None` while blocks are gathered.
    due: Option<Instant>,
    /// Blocks that came after their turn.
    late: u64,
    /// Blocks that were skipped.
    skipped: u64,
    /// How often playout stopped to wait for a block.
    stalls: u64,
}

impl<T> Playout<T> {
    /// A playout of the blocks `first..end` that begins when `depth` of them are held (all that are left, if they are fewer) and gives out
    /// one per `interval`.
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

    /// Takes a block that came. One whose turn is over, or that is held already, is dropped.
    pub fn came(&mut self, number: u64, block: T) {
        if number < self.next {
            self.late += 1;
        } else if number < self.end {
            self.held.entry(number).or_insert(block);
        }
    }

    /// What to do at that moment. Call it again until it answers [`PlayoutStep::Wait`] or [`PlayoutStep::Over`].
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

    /// Begins, or begins again, when enough blocks are held and, unless missing blocks are skipped, the next block is among them.
    fn gather(&mut self, now: Instant) -> PlayoutStep<T> {
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let whole = self.missing == MissingBlockPolicy::Skip || self.held.contains_key(&self.next);
        if self.held.len() < self.depth.clamp(1, left) || !whole {
            return PlayoutStep::Wait(None);
        }
        self.due = Some(now);
        self.step(now)
    }

    /// Goes on to the next block, which is due one interval after this one.
    fn pass(&mut self, due: Instant) {
        self.next += 1;
        self.due = Some(due + self.interval);
    }

    /// The numbers of blocks that came after their turn, of blocks that were skipped, and of stalls.
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
