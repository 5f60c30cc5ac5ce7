//! Allocation of space on the servers' disks. The master stores how far a disk may be allocated before it uses that space, in pieces, so
//! that a master that was killed never allocates a place twice.
//!
//! Space that a load reserved and did not commit comes back as holes. The loader may still be writing there, so a hole is used again only
//! after [`REST`]. The stored end of a disk's allocation never decreases: a disk that is used further belongs to another master.

use crate::limits;
use crate::wire::server_messages::DiskInfo;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Places begin at multiples of this many bytes, as direct I/O requires.
pub const ALIGNMENT: u64 = 4096;
/// How far ahead of the allocation the stored end moves, bytes. At most this much of a disk may be lost when a master is killed.
const PIECE: u64 = 16 << 20;
/// How long after the end of a load its unused places stay unused: a server may still be writing what that load sent.
pub(crate) const REST: Duration = Duration(60_000_000_000);

/// An unused part of a disk below the end of its allocation; its beginning is the key in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    /// Its end, bytes.
    end: u64,
    /// From when on it may be allocated.
    from: Instant,
}

/// The space of one disk.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// What the server says of the disk.
    pub(crate) about: DiskInfo,
    /// The end of the allocated space, bytes. Everything below it is allocated or a hole.
    pub(crate) next: u64,
    /// The end of the space that is stored as allocated, bytes.
    pub(crate) remembered: u64,
    /// The holes below `next`, by their beginning, bytes.
    holes: BTreeMap<u64, Hole>,
    /// Whether the disk's state was read from the master's store and the disk has not come since the master was started.
    pub(crate) is_recalled: bool,
}

impl Space {
    /// A disk on which everything below `remembered` counts as allocated.
    pub(crate) const fn new(about: DiskInfo, remembered: u64) -> Self {
        Self {
            about,
            next: remembered,
            remembered,
            holes: BTreeMap::new(),
            is_recalled: false,
        }
    }

    /// Whether a block of that many bytes can be placed here.
    pub(crate) fn fits(&self, bytes: u32, now: Instant) -> bool {
        let behind = self
            .next
            .checked_add(slot(bytes))
            .is_some_and(|end| end <= self.about.capacity);
        self.about.up && self.about.writable && (behind || self.hole(bytes, now).is_some())
    }

    /// The beginning of the first hole that can take that many bytes.
    fn hole(&self, bytes: u32, now: Instant) -> Option<u64> {
        // A disk may come back smaller: a hole may lie behind its end.
        let (slot, capacity) = (slot(bytes), self.about.capacity);
        let fits = |at: u64, hole: &Hole| {
            hole.from <= now && hole.end - at >= slot && at + slot <= capacity
        };
        self.holes
            .iter()
            .find(|(at, hole)| fits(**at, hole))
            .map(|(at, _)| *at)
    }

    /// Bytes that are allocated, without the holes.
    pub(crate) fn used(&self) -> u64 {
        self.next
            - self
                .holes
                .iter()
                .map(|(at, hole)| hole.end - at)
                .sum::<u64>()
    }

    /// Whether it has holes that may not be used yet.
    pub(crate) fn rests(&self, now: Instant) -> bool {
        self.holes.values().any(|hole| hole.from > now)
    }

    /// Makes a part of the disk a hole, which may be used from the moment `from` on.
    pub(crate) fn give_back(&mut self, begin: u64, end: u64, from: Instant) {
        let (mut begin, mut end) = (begin, end.min(self.next));
        // The first page of a disk holds no blocks.
        let is_within = begin < end && begin >= ALIGNMENT;
        let overlaps = self
            .holes
            .range(..end)
            .next_back()
            .is_some_and(|(_, hole)| hole.end > begin);
        // A place that comes back twice must not be allocated twice.
        if !is_within || overlaps {
            return;
        }
        // Adjacent holes of the same moment are merged, so that few have to be recorded.
        if let Some((before, hole)) = self
            .holes
            .range(..begin)
            .next_back()
            .map(|(at, hole)| (*at, *hole))
            && hole.end == begin
            && hole.from == from
        {
            begin = before;
        }
        if let Some(hole) = self
            .holes
            .get(&end)
            .copied()
            .filter(|hole| hole.from == from)
        {
            self.holes.remove(&end);
            end = hole.end;
        }
        // Beyond the limit the place stays allocated: it is lost, but never used twice.
        if self.holes.len() < limits::MOST_HOLES || self.holes.contains_key(&begin) {
            self.holes.insert(begin, Hole { end, from });
        }
    }

    /// Lowers `next` past usable holes at the end, so that parts that came back at different moments become one again.
    fn shrink(&mut self, now: Instant) {
        while let Some((at, hole)) = self.holes.last_key_value().map(|(at, hole)| (*at, *hole))
            && hole.end == self.next
            && hole.from <= now
        {
            self.holes.remove(&at);
            self.next = at;
        }
    }

    /// Handles that the disk came for the first time since the master was started. The known blocks end at `filled`, and the disk says that
    /// its space is used up to `used`. What was allocated beyond both was never written, so it becomes a hole.
    pub(crate) fn came(&mut self, filled: u64, used: u64, from: Instant) {
        let behind = filled
            .max(used)
            .max(ALIGNMENT)
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(self.next);
        self.give_back(behind, self.next, from);
    }

    /// Allocates a place for that many bytes. Returns its offset, and whether a new end of the allocation has to be stored before it is
    /// used.
    pub(crate) fn take(&mut self, bytes: u32, now: Instant) -> (u64, bool) {
        self.is_recalled = false;
        self.shrink(now);
        if let Some(at) = self.hole(bytes, now)
            && let Some(hole) = self.holes.remove(&at)
        {
            let rest = at + slot(bytes);
            if rest < hole.end {
                self.holes.insert(rest, hole);
            }
            return (at, false);
        }
        let at = self.next;
        self.next += slot(bytes);
        let more = self.next > self.remembered;
        if more {
            self.remembered = self
                .next
                .saturating_add(PIECE)
                .min(self.about.capacity.max(self.next));
        }
        (at, more)
    }
}

/// The space that a block of that many bytes takes on a disk.
pub(crate) const fn slot(bytes: u32) -> u64 {
    (bytes as u64).next_multiple_of(ALIGNMENT)
}

/// The disks of all servers, as (server, disk), ordered so that neighbours belong to different servers: first disk 0 of every server, then
/// disk 1 of every server, and so on.
pub(crate) fn in_turn(disks: impl Iterator<Item = (u16, u16)>) -> Vec<(u16, u16)> {
    let mut all: Vec<_> = disks.collect();
    all.sort_by_key(|(server, disk)| (*disk, *server));
    all
}
