//! Counts lost, duplicated and reordered datagrams by their sequence numbers. The number of lost ones is never negative
//! and never more than was sent.

use super::UnitLosses;
use alloc::boxed::Box;

/// The number of sequence numbers that the bitmap holds.
const WINDOW: u64 = 1 << 16;
/// Numbers at most this far behind the highest can be distinguished as new or duplicate; the bitmap is cleared a word at a
/// time.
const DISTINGUISHED: u64 = WINDOW - 64;
const WORDS: usize = (WINDOW / 64) as usize;

/// The counts of one stream of datagrams.
#[derive(Debug)]
pub struct Sequence {
    /// A ring bitmap of the numbers that have arrived.
    arrived: Box<[u64; WORDS]>,
    /// One more than the highest number that arrived.
    next: u64,
    /// The number of different sequence numbers that have arrived.
    unique: u64,
    duplicated: u64,
    reordered: u64,
}

impl Default for Sequence {
    fn default() -> Self {
        Self::new()
    }
}

impl Sequence {
    /// A counter of a stream of which nothing has arrived.
    #[must_use]
    pub fn new() -> Self {
        Self {
            arrived: Box::new([0; WORDS]),
            next: 0,
            unique: 0,
            duplicated: 0,
            reordered: 0,
        }
    }

    /// Counts a datagram with that number. Returns true when it had not arrived before.
    #[inline]
    pub fn arrived(&mut self, number: u64) -> bool {
        if number == self.next {
            // In order: the rest of this word still has the bits of a window ago.
            let word = &mut self.arrived[word(number)];
            *word = (*word & (bit(number) - 1)) | bit(number);
            self.next = number + 1;
            self.unique += 1;
            return true;
        }
        if number > self.next {
            self.clear(self.next, number);
            self.next = number + 1;
        } else if self.next - number > DISTINGUISHED {
            // Too late to find out whether it is new: it stays lost.
            self.reordered += 1;
            return false;
        } else if self.arrived[word(number)] & bit(number) != 0 {
            self.duplicated += 1;
            return false;
        } else {
            self.reordered += 1;
        }
        self.arrived[word(number)] |= bit(number);
        self.unique += 1;
        true
    }

    /// Clears the bits of the numbers from `from` to `to`, which are left from a window ago.
    #[inline]
    fn clear(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW {
            self.arrived.fill(0);
            return;
        }
        for number in from..=to {
            self.arrived[word(number)] &= !bit(number);
        }
    }

    /// One more than the highest number that arrived, and how many different numbers have arrived.
    #[must_use]
    pub const fn progress(&self) -> (u64, u64) {
        (self.next, self.unique)
    }

    /// The losses, given that the sender reports to have sent `sent` datagrams.
    #[must_use]
    pub const fn losses(&self, sent: u64) -> UnitLosses {
        UnitLosses {
            lost: sent.saturating_sub(self.unique),
            duplicated: self.duplicated,
            reordered: self.reordered,
        }
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
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    #[test]
    fn in_order_nothing_is_lost() {
        let mut sequence = Sequence::new();
        assert!((0..200_000).all(|n| sequence.arrived(n)));
        assert_eq!(sequence.losses(200_000), UnitLosses::default());
    }

    #[test]
    fn a_gap_filled_later_is_reordering_and_a_repeat_is_a_duplicate() {
        let mut sequence = Sequence::new();
        for n in [0, 2, 1, 1, 4] {
            sequence.arrived(n);
        }
        assert_eq!(
            sequence.losses(5),
            UnitLosses {
                lost: 1,
                duplicated: 1,
                reordered: 1
            }
        );
        // Also one that came in order at first.
        sequence.arrived(0);
        assert_eq!(
            sequence.losses(5),
            UnitLosses {
                lost: 1,
                duplicated: 2,
                reordered: 1
            }
        );
    }

    #[test]
    fn a_number_beyond_the_window_stays_lost() {
        let mut sequence = Sequence::new();
        sequence.arrived(0);
        sequence.arrived(WINDOW + 5);
        assert!(!sequence.arrived(1));
        assert_eq!(sequence.losses(WINDOW + 6).lost, WINDOW + 4);
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(numbers in proptest::collection::vec(0_u64..500, 0..1000)) {
            let mut sequence = Sequence::new();
            let mut set = BTreeSet::new();
            for n in &numbers {
                prop_assert_eq!(sequence.arrived(*n), set.insert(*n));
            }
            let losses = sequence.losses(500);
            prop_assert_eq!(losses.lost, 500 - set.len() as u64);
            prop_assert_eq!(losses.duplicated, (numbers.len() - set.len()) as u64);
        }

        #[test]
        fn hostile_numbers_do_no_harm(numbers in proptest::collection::vec(0..u64::MAX, 0..100), sent in any::<u64>()) {
            let mut sequence = Sequence::new();
            for n in &numbers {
                sequence.arrived(*n);
            }
            prop_assert!(sequence.losses(sent).lost <= sent);
            prop_assert!(sequence.unique <= numbers.len() as u64);
        }
    }
}
