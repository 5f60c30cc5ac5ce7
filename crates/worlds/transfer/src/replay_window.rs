//! The replay window of a sealed connection: each packet number is accepted once, and numbers older than the window never (RFC 4303,
//! 3.4.3).

/// Numbers in the window.
const SIZE: u64 = 1 << 14;

/// Which of the last [`SIZE`] numbers were seen.
pub(crate) struct ReplayWindow {
    /// The highest number seen.
    highest: u64,
    /// One bit for each number in the window, at its remainder by [`SIZE`].
    seen: Vec<u64>,
}

impl ReplayWindow {
    /// A window in which no number was seen. Numbers begin with 1.
    pub(crate) fn new() -> Self {
        Self {
            highest: 0,
            seen: vec![0; (SIZE / 64) as usize],
        }
    }

    /// The index of a number's word in `seen`, and its bit in that word.
    fn word(number: u64) -> (usize, u64) {
        ((number % SIZE / 64) as usize, 1 << (number % 64))
    }

    /// Whether a number is acceptable: not marked, and not older than the window.
    pub(crate) fn is_fresh(&self, number: u64) -> bool {
        if number > self.highest {
            return true;
        }
        let (word, bit) = Self::word(number);
        number != 0 && self.highest - number < SIZE && self.seen[word] & bit == 0
    }

    /// Marks a number, which has to be fresh, as seen.
    pub(crate) fn mark(&mut self, number: u64) {
        if number > self.highest {
            if number - self.highest >= SIZE {
                self.seen.fill(0);
            } else {
                for passed in self.highest + 1..=number {
                    let (word, bit) = Self::word(passed);
                    self.seen[word] &= !bit;
                }
            }
            self.highest = number;
        }
        let (word, bit) = Self::word(number);
        self.seen[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_before_the_window_are_not_fresh() {
        let mut window = ReplayWindow::new();
        window.mark(SIZE + 10);
        assert!(
            !window.is_fresh(10)
                && window.is_fresh(11)
                && !window.is_fresh(0)
                && window.is_fresh(u64::MAX)
        );
        window.mark(u64::MAX);
        assert!(
            !window.is_fresh(11) && !window.is_fresh(u64::MAX) && window.is_fresh(u64::MAX - 1)
        );
    }

    proptest! {
        #[test]
        fn every_number_counts_once(steps in prop::collection::vec((0_u64..3 * SIZE, any::<bool>()), 1..300)) {
            let (mut window, mut marked, mut highest) = (ReplayWindow::new(), BTreeSet::new(), 0);
            for (number, near) in steps {
                let number = if near { highest + number % 5 } else { number };
                let fresh = number > 0 && number + SIZE > highest && !marked.contains(&number);
                prop_assert_eq!(window.is_fresh(number), fresh);
                if fresh {
                    window.mark(number);
                    marked.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
