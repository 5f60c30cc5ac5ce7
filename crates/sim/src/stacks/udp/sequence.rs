//! Counts datagrams by their numbers as the live world does: lost, duplicated, reordered.

use crate::stacks::Losses;

/// Numbers the bitmap holds.
const WINDOW: u64 = 1 << 16;
/// Numbers this far behind the highest are told apart; a word of the bitmap is cleared at a time.
const TOLD_APART: u64 = WINDOW - 64;
const WORDS: usize = (WINDOW / 64) as usize;

/// What has arrived so far. The bitmap is taken when the first number is out of order.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    seen: Option<Box<[u64; WORDS]>>,
    /// One more than the highest number that arrived.
    next: u64,
    /// Different numbers that arrived.
    unique: u64,
    duplicated: u64,
    reordered: u64,
}

impl Sequence {
    /// A datagram of that number arrived. True when it had not arrived before.
    pub(super) fn arrived(&mut self, number: u64) -> bool {
        if number == self.next && self.seen.is_none() {
            self.next += 1;
            self.unique += 1;
            return true;
        }
        let next = self.next;
        // Everything before the first number out of order has arrived.
        let seen = self.seen.get_or_insert_with(|| Box::new([u64::MAX; WORDS]));
        if number >= next {
            (next..=number.min(next + WINDOW - 1)).for_each(|n| seen[word(n)] &= !bit(n));
            self.next = number + 1;
        } else if next - number > TOLD_APART {
            // Too late to tell whether it is new: it stays lost.
            self.reordered += 1;
            return false;
        } else if seen[word(number)] & bit(number) != 0 {
            self.duplicated += 1;
            return false;
        } else {
            self.reordered += 1;
        }
        seen[word(number)] |= bit(number);
        self.unique += 1;
        true
    }

    /// What is known when the sender says it sent `sent`.
    pub(super) const fn losses(&self, sent: u64) -> Losses {
        Losses { lost: sent.saturating_sub(self.unique), duplicated: self.duplicated, reordered: self.reordered }
    }
}

const fn word(number: u64) -> usize {
    ((number / 64) % (WINDOW / 64)) as usize
}

const fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn in_order_nothing_is_lost_and_nothing_is_kept() {
        let mut sequence = Sequence::default();
        assert!((0..200_000).all(|n| sequence.arrived(n)));
        assert_eq!(sequence.losses(200_000), Losses::default());
        assert!(sequence.seen.is_none());
    }

    #[test]
    fn a_gap_filled_later_is_reordering_and_a_repeat_is_a_duplicate() {
        let mut sequence = Sequence::default();
        for n in [0, 2, 1, 1, 0, 4] {
            sequence.arrived(n);
        }
        assert_eq!(sequence.losses(5), Losses { lost: 1, duplicated: 2, reordered: 1 });
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(numbers in proptest::collection::vec(0_u64..500, 0..1000)) {
            let mut sequence = Sequence::default();
            let mut set = BTreeSet::new();
            for n in &numbers {
                prop_assert_eq!(sequence.arrived(*n), set.insert(*n));
            }
            let losses = sequence.losses(500);
            prop_assert_eq!(losses.lost, 500 - set.len() as u64);
            prop_assert_eq!(losses.duplicated, (numbers.len() - set.len()) as u64);
        }
    }
}
