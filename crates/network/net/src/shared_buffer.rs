//! A buffer that all ports of a switch share: it counts the bytes in use and holds no packets.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use stackline_core::time::Instant;

/// Bytes in use, and when each part becomes free.
#[derive(Clone, Debug)]
pub(crate) struct SharedBuffer {
    /// The size of the buffer in bytes.
    limit: u64,
    /// Bytes in use, including those whose release has come but was not settled.
    used: u64,
    /// When bytes become free, and how many; the earliest first.
    releases: BinaryHeap<Reverse<(Instant, u64)>>,
}

impl SharedBuffer {
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            releases: BinaryHeap::new(),
        }
    }

    /// Reserves that many bytes. Returns false when there is no room.
    pub(crate) fn take(&mut self, now: Instant, bytes: u64) -> bool {
        self.settle(now);
        let room = self.used + bytes <= self.limit;
        if room {
            self.used += bytes;
        }
        room
    }

    /// Frees the bytes whose release has come by now.
    fn settle(&mut self, now: Instant) {
        while let Some(Reverse((at, freed))) = self.releases.peek().copied() {
            if at > now {
                break;
            }
            self.used -= freed;
            self.releases.pop();
        }
    }

    /// Whether more than half of the buffer is in use.
    pub(crate) fn half_full(&mut self, now: Instant) -> bool {
        self.settle(now);
        self.used > self.limit / 2
    }

    /// Schedules bytes that were taken to become free at that instant.
    pub(crate) fn release(&mut self, at: Instant, bytes: u64) {
        self.releases.push(Reverse((at, bytes)));
    }
}
