//! The memory cache of a disk server, bounded in bytes. A block that was not asked for lately is dropped first (second-chance algorithm).

use super::DiskExtent;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// One cached block.
struct BlockCacheSlot<B> {
    spot: DiskExtent,
    block: B,
    /// Whether it was asked for since the hand last passed it.
    asked: bool,
}

/// The cache of a server.
pub(crate) struct Cache<B> {
    /// The bound, bytes.
    most: u64,
    /// Bytes of all cached blocks.
    bytes: u64,
    /// The index in `slots` of each cached place.
    by_spot: BTreeMap<DiskExtent, usize>,
    slots: Vec<BlockCacheSlot<B>>,
    /// The index of the slot that is examined next when room is needed.
    hand: usize,
}

impl<B: Clone> Cache<B> {
    /// A cache of at most `most` bytes.
    pub(crate) const fn new(most: u64) -> Self {
        Self {
            most,
            bytes: 0,
            by_spot: BTreeMap::new(),
            slots: Vec::new(),
            hand: 0,
        }
    }

    /// The block at a place, if it is cached.
    pub(crate) fn get(&mut self, spot: &DiskExtent) -> Option<B> {
        let slot = &mut self.slots[*self.by_spot.get(spot)?];
        slot.asked = true;
        Some(slot.block.clone())
    }

    /// Adds a block, unless it is larger than the whole cache.
    pub(crate) fn put(&mut self, spot: DiskExtent, block: B) {
        self.forget(&spot);
        let bytes = u64::from(spot.length);
        if bytes > self.most {
            return;
        }
        while self.bytes + bytes > self.most {
            self.make_room();
        }
        self.bytes += bytes;
        self.by_spot.insert(spot, self.slots.len());
        self.slots.push(BlockCacheSlot {
            spot,
            block,
            asked: false,
        });
    }

    /// Drops one block: the first, from the hand on, that was not asked for since the hand last passed it.
    fn make_room(&mut self) {
        loop {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            match self.slots.get_mut(self.hand) {
                Some(slot) if slot.asked => slot.asked = false,
                Some(_) => return self.remove(self.hand),
                None => return,
            }
            self.hand += 1;
        }
    }

    fn remove(&mut self, at: usize) {
        let slot = self.slots.swap_remove(at);
        self.by_spot.remove(&slot.spot);
        self.bytes -= u64::from(slot.spot.length);
        if let Some(moved) = self.slots.get(at) {
            self.by_spot.insert(moved.spot, at);
        }
    }

    /// Drops the block of a place, because the disk has other data there.
    pub(crate) fn forget(&mut self, spot: &DiskExtent) {
        if let Some(at) = self.by_spot.get(spot) {
            self.remove(*at);
        }
    }

    /// Bytes of blocks that it holds.
    #[cfg(test)]
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn spot(offset: u64) -> DiskExtent {
        DiskExtent {
            disk: 0,
            offset,
            length: 100,
        }
    }

    #[test]
    fn what_was_asked_for_stays_longer() {
        let mut cache = Cache::new(300);
        for offset in 0..3 {
            cache.put(spot(offset), offset);
        }
        assert_eq!(cache.get(&spot(0)), Some(0));
        cache.put(spot(3), 3);
        assert_eq!(
            (
                cache.get(&spot(0)),
                cache.get(&spot(1)),
                cache.get(&spot(3))
            ),
            (Some(0), None, Some(3))
        );
        assert_eq!(cache.bytes(), 300);
    }

    #[test]
    fn what_is_written_anew_is_not_served_from_memory() {
        let mut cache = Cache::new(300);
        cache.put(spot(1), 1);
        cache.forget(&spot(1));
        assert_eq!((cache.get(&spot(1)), cache.bytes()), (None, 0));
    }

    #[test]
    fn a_cache_of_nothing_keeps_nothing() {
        let mut cache = Cache::new(0);
        cache.put(spot(1), 1);
        assert_eq!((cache.get(&spot(1)), cache.bytes()), (None, 0));
    }
}
