//! A set of packets of one blast, by index: packets that have arrived, or that are to be sent.
//!
//! Sets of up to 64 packets need no memory on the heap.

use alloc::vec::Vec;

/// The most packets of a blast.
pub const MOST: u32 = 1 << 15;

/// A set of indices below a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    /// The bits of indices below 64.
    first: u64,
    /// The bits of further indices, 64 in a word.
    rest: Vec<u64>,
    bound: u32,
    /// The number of indices in the set.
    count: u32,
}

impl Bitmap {
    /// An empty set for indices below `bound`.
    #[must_use]
    pub fn none(bound: u32) -> Self {
        // The first 64 indices are in `first`.
        let words = (bound.saturating_sub(1) / 64) as usize;
        Self {
            first: 0,
            rest: alloc::vec![0; words],
            bound,
            count: 0,
        }
    }

    /// The number of indices in the set.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The bound of the indices.
    #[must_use]
    pub const fn bound(&self) -> u32 {
        self.bound
    }

    /// Whether all indices are in the set.
    #[must_use]
    pub const fn all(&self) -> bool {
        self.count == self.bound
    }

    fn word(&self, index: u32) -> u64 {
        match index / 64 {
            0 => self.first,
            word => self.rest.get(word as usize - 1).copied().unwrap_or(0),
        }
    }

    /// Whether an index is in the set.
    #[must_use]
    #[inline]
    pub fn has(&self, index: u32) -> bool {
        index < self.bound && self.word(index) >> (index % 64) & 1 == 1
    }

    /// Adds an index. Returns false when it was in the set already, or is not below the bound.
    #[inline]
    pub fn put(&mut self, index: u32) -> bool {
        if index >= self.bound || self.has(index) {
            return false;
        }
        let word = match index / 64 {
            0 => &mut self.first,
            word => &mut self.rest[word as usize - 1],
        };
        *word |= 1 << (index % 64);
        self.count += 1;
        true
    }

    /// Adds `count` indices from `first` on. Returns false, with nothing changed, when one of them was in the set
    /// already or is not below the bound.
    pub fn put_row(&mut self, first: u32, count: u32) -> bool {
        let free = first
            .checked_add(count)
            .is_some_and(|end| end <= self.bound)
            && self
                .next(first, true)
                .is_none_or(|taken| taken - first >= count);
        if free {
            (first..first + count).for_each(|index| {
                self.put(index);
            });
        }
        free
    }

    /// Removes all indices from `index` on.
    pub fn cut(&mut self, index: u32) {
        for at in index..self.bound {
            if self.has(at) {
                let word = if at < 64 {
                    &mut self.first
                } else {
                    &mut self.rest[at as usize / 64 - 1]
                };
                *word &= !(1 << (at % 64));
                self.count -= 1;
            }
        }
    }

    /// The first index from `from` on that is in the set or, if `inside` is false, that is not.
    #[must_use]
    pub fn next(&self, from: u32, inside: bool) -> Option<u32> {
        let mut at = from;
        while at < self.bound {
            let word = if inside {
                self.word(at)
            } else {
                !self.word(at)
            } >> (at % 64);
            if word == 0 {
                at = (at / 64 + 1) * 64;
                continue;
            }
            let found = at + word.trailing_zeros();
            // Bits beyond the bound are clear, so a search for absent indices may end there.
            return (found < self.bound).then_some(found);
        }
        None
    }

    /// The last index in the set.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        let words = core::iter::once(&self.first).chain(&self.rest);
        let (number, word) = words.enumerate().filter(|(_, word)| **word != 0).last()?;
        Some(number as u32 * 64 + 63 - word.leading_zeros())
    }

    /// Encodes the missing indices for an answer: the first one, and a bit for each missing index, from the byte of the
    /// first one on (bit `i % 8` of byte `i / 8`). `None` when nothing is missing.
    #[must_use]
    pub fn missing(&self) -> Option<(u32, Vec<u8>)> {
        let first = self.next(0, false)?;
        let mut bytes = Vec::new();
        let mut at = first;
        while let Some(index) = self.next(at, false) {
            let place = (index / 8 - first / 8) as usize;
            bytes.resize(place + 1, 0);
            bytes[place] |= 1 << (index % 8);
            at = index + 1;
        }
        Some((first, bytes))
    }

    /// Decodes the set encoded by [`Bitmap::missing`]; indices beyond the bound are left out.
    #[must_use]
    pub fn from_answer(first: u32, bytes: &[u8], bound: u32) -> Self {
        let mut bitmap = Self::none(bound);
        for (place, byte) in bytes.iter().enumerate() {
            // `first` comes from the network: it may be any number.
            let base = (first / 8).saturating_add(place as u32).saturating_mul(8);
            if base >= bound {
                break;
            }
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                bitmap.put(base + bit);
            }
        }
        bitmap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_is_a_set(bound in 1_u32..400, puts in prop::collection::vec(0_u32..420, 0..200), cut in 0_u32..420) {
            let mut bitmap = Bitmap::none(bound);
            let mut model = alloc::collections::BTreeSet::new();
            for index in puts {
                prop_assert_eq!(bitmap.put(index), index < bound && model.insert(index));
            }
            let missing: Vec<u32> = (0..bound).filter(|index| !model.contains(index)).collect();
            match bitmap.missing() {
                Some((first, bytes)) => {
                    prop_assert_eq!(first, missing[0]);
                    let read = Bitmap::from_answer(first, &bytes, bound);
                    prop_assert_eq!(read.count() as usize, missing.len());
                    prop_assert!(missing.iter().all(|index| read.has(*index)));
                    prop_assert_eq!(read.last(), missing.last().copied());
                }
                None => prop_assert!(missing.is_empty() && bitmap.all()),
            }
            prop_assert_eq!(bitmap.next(cut, true), model.range(cut..).next().copied());
            bitmap.cut(cut);
            model.retain(|index| *index < cut);
            prop_assert_eq!(bitmap.count() as usize, model.len());
            prop_assert!((0..420).all(|index| bitmap.has(index) == model.contains(&index)));
        }
    }
}
