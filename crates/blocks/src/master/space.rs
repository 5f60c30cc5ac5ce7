//! Which parts of the servers' disks are given away: always more, in pieces that are remembered before they are used, so
//! that a master that was killed never gives a place away twice.

use crate::wire::data::Disk;
use alloc::vec::Vec;

/// Places begin at multiples of this, as direct reads want it.
pub const ALIGNMENT: u64 = 4096;
/// What is remembered at once, bytes; so much of a disk may be lost when a master is killed.
const PIECE: u64 = 16 << 20;

/// One disk.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// What the server says of it.
    pub(crate) about: Disk,
    /// Given away up to here.
    pub(crate) next: u64,
    /// Remembered up to here.
    pub(crate) remembered: u64,
}

impl Space {
    /// Of which everything below `remembered` may be given away.
    pub(crate) const fn new(about: Disk, remembered: u64) -> Self {
        Self { about, next: remembered, remembered }
    }

    /// Whether that many bytes fit.
    pub(crate) const fn fits(&self, bytes: u32) -> bool {
        let fits = match self.next.checked_add(slot(bytes)) {
            Some(end) => end <= self.about.capacity,
            None => false,
        };
        self.about.up && self.about.writable && fits
    }

    /// A place for that many bytes; whether more has to be remembered before it is used.
    pub(crate) fn take(&mut self, bytes: u32) -> (u64, bool) {
        let at = self.next;
        self.next += slot(bytes);
        let more = self.next > self.remembered;
        if more {
            self.remembered = self.next.saturating_add(PIECE).min(self.about.capacity.max(self.next));
        }
        (at, more)
    }
}

const fn slot(bytes: u32) -> u64 {
    (bytes as u64).next_multiple_of(ALIGNMENT)
}

/// The disks of all servers in an order in which neighbours belong to different servers: the first of each, the second...
pub(crate) fn in_turn(disks: impl Iterator<Item = (u16, u16)>) -> Vec<(u16, u16)> {
    let mut all: Vec<_> = disks.collect();
    all.sort_by_key(|(server, disk)| (*disk, *server));
    all
}
