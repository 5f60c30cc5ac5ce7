//! Gives each unit id (a number or a text) a *place*: a number from 0, in order of appearance.

use crate::lifelines::Id;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A fast hasher for whole numbers (multiplication by the golden ratio), instead of SipHash. It does not resist chosen keys.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }
    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }
}

/// A hash map with whole numbers as keys.
pub(crate) type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Bits of an id within its page. A page has the places of 32 neighbouring ids: that keeps the map of pages small, and ids far
/// apart waste little memory.
const PAGE: u32 = 5;
/// Marks an id without a place.
const NONE: u32 = u32::MAX;

/// All ids so far, with their places.
#[derive(Debug, Default)]
pub(crate) struct UnitIdIndex {
    /// By upper bits of a numeric id: its page in `slots`.
    pages: ByNumber<i64, u32>,
    /// By page, then by lower bits of the id: the place of the id, or [`NONE`].
    slots: Vec<[u32; 1 << PAGE]>,
    /// By textual id: its place.
    texts: HashMap<Box<str>, u32>,
    /// The ids by their places.
    names: Vec<Id>,
}

impl UnitIdIndex {
    /// The place of a numeric id; a new id gets the next place.
    #[inline]
    pub(crate) fn place_of_number(&mut self, id: i64) -> u32 {
        let next = self.slots.len() as u32;
        let page = *self.pages.entry(id >> PAGE).or_insert(next);
        if page == next {
            self.slots.push([NONE; 1 << PAGE]);
        }
        let slot = &mut self.slots[page as usize][(id & ((1 << PAGE) - 1)) as usize];
        if *slot == NONE {
            *slot = self.names.len() as u32;
            self.names.push(Id::Number(id));
        }
        *slot
    }

    /// The place of a textual id; a new id gets the next place.
    pub(crate) fn place_of_text(&mut self, id: &str) -> u32 {
        if let Some(place) = self.texts.get(id) {
            return *place;
        }
        let place = self.names.len() as u32;
        self.texts.insert(id.into(), place);
        self.names.push(Id::Text(id.into()));
        place
    }

    pub(crate) const fn len(&self) -> usize {
        self.names.len()
    }

    /// The ids themselves, by their places.
    pub(crate) fn into_names(self) -> Vec<Id> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_one_place() {
        let mut ids = UnitIdIndex::default();
        let numbers = [5, -5, i64::MIN, i64::MAX, 5, 6].map(|id| ids.place_of_number(id));
        assert_eq!(numbers, [0, 1, 2, 3, 0, 4]);
        assert_eq!(
            (
                ids.place_of_text("5 "),
                ids.place_of_text("x"),
                ids.place_of_text("5 ")
            ),
            (5, 6, 5)
        );
        assert_eq!(ids.into_names()[3], Id::Number(i64::MAX));
    }
}
