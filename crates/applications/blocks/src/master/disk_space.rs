//! Which parts of the servers' disks are given away: in pieces that are remembered before they are used, so that a master that was
//! killed never gives a place away twice.
//!
//! What a load reserved and did not commit comes back as holes. Whoever reserved them may still be writing there, so they are used again
//! only after [`REST`]. What was remembered of a disk never becomes less: a disk that is used further is another master's.

use crate::limits;
use crate::wire::server_messages::DiskInfo;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Places begin at multiples of this, as direct reads want it.
pub const ALIGNMENT: u64 = 4096;
/// What is remembered at once, bytes; so much of a disk may be lost when a master is killed.
const PIECE: u64 = 16 << 20;
/// How long after a load has ended its places are not given to others: a server may still be taking what that load sent.
pub(crate) const REST: Duration = Duration(60_000_000_000);

/// A part of a disk that is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    end: u64,
    /// From when on it may be given away.
    from: Instant,
}

/// One disk.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// What the server says of it.
    pub(crate) about: DiskInfo,
    /// Given away up to here.
    pub(crate) next: u64,
    /// Remembered up to here.
    pub(crate) remembered: u64,
    /// Below `next` and free, by where they begin.
    holes: BTreeMap<u64, Hole>,
    /// Whether it has not come since the master was started.
    pub(crate) is_recalled: bool,
}

impl Space {
    /// Of which everything below `remembered` may be given away.
    pub(crate) const fn new(about: DiskInfo, remembered: u64) -> Self {
        Self {
            about,
            next: remembered,
            remembered,
            holes: BTreeMap::new(),
            is_recalled: false,
        }
    }

    /// Whether that many bytes fit.
    pub(crate) fn fits(&self, bytes: u32, now: Instant) -> bool {
        let behind = self
            .next
            .checked_add(slot(bytes))
            .is_some_and(|end| end <= self.about.capacity);
        self.about.up && self.about.writable && (behind || self.hole(bytes, now).is_some())
    }

    /// The first hole for that many bytes.
    fn hole(&self, bytes: u32, now: Instant) -> Option<u64> {
        let (slot, capacity) = (slot(bytes), self.about.capacity);
        let fits = |at: u64, hole: &Hole| {
            hole.from <= now && hole.end - at >= slot && at + slot <= capacity
        };
        self.holes
            .iter()
            .find(|(at, hole)| fits(**at, hole))
            .map(|(at, _)| *at)
    }

    /// Bytes that are given away and did not come back.
    pub(crate) fn used(&self) -> u64 {
        self.next
            - self
                .holes
                .iter()
                .map(|(at, hole)| hole.end - at)
                .sum::<u64>()
    }

    /// Whether it would have more room after a while.
    pub(crate) fn rests(&self, now: Instant) -> bool {
        self.holes.values().any(|hole| hole.from > now)
    }

    /// A part that nobody uses any more; it is given away from a moment on.
    pub(crate) fn give_back(&mut self, begin: u64, end: u64, from: Instant) {
        let (mut begin, mut end) = (begin, end.min(self.next));
        let is_within = begin < end && begin >= ALIGNMENT;
        let overlaps = self
            .holes
            .range(..end)
            .next_back()
            .is_some_and(|(_, hole)| hole.end > begin);
        if !is_within || overlaps {
            return;
        }
        // Neighbours of the same moment are one, so that few have to be known.
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
        if self.holes.len() < limits::MOST_HOLES || self.holes.contains_key(&begin) {
            self.holes.insert(begin, Hole { end, from });
        }
    }

    /// Holes at the end that may be used are no holes: so parts that came back at different moments are one again.
    fn shrink(&mut self, now: Instant) {
        while let Some((at, hole)) = self.holes.last_key_value().map(|(at, hole)| (*at, *hole))
            && hole.end == self.next
            && hole.from <= now
        {
            self.holes.remove(&at);
            self.next = at;
        }
    }

    /// It came first since the master was started. Blocks are known up to `filled`, and the disk says that it holds some up to `used`;
    /// what was remembered behind both was never written.
    pub(crate) fn came(&mut self, filled: u64, used: u64, from: Instant) {
        let behind = filled
            .max(used)
            .max(ALIGNMENT)
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(self.next);
        self.give_back(behind, self.next, from);
    }

    /// A place for that many bytes; whether more has to be remembered before it is used.
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

pub(crate) const fn slot(bytes: u32) -> u64 {
    (bytes as u64).next_multiple_of(ALIGNMENT)
}

/// The disks of all servers in an order in which neighbours belong to different servers: the first of each, the second...
pub(crate) fn in_turn(disks: impl Iterator<Item = (u16, u16)>) -> Vec<(u16, u16)> {
    let mut all: Vec<_> = disks.collect();
    all.sort_by_key(|(server, disk)| (*disk, *server));
    all
}
