//! The memory of a received stream: the memory that was posted (given by a receive in progress), and a bounded ring, called staging, for
//! bytes that came before a receive was posted for them.
//!
//! A position is the offset of a byte in the stream. A peer may only send as far as it was granted, so two positions never share a byte
//! of the ring. Memory may also be posted or sent *round*: used as a ring for a stream longer than itself, whose bytes are not read.

use std::ops::Range;

/// Bytes that memory used round has beyond the length of a round: so a run or a packet that begins just before the end of a round fits.
pub const TAIL: usize = 1 << 16;

/// Bytes that came before a receive was posted for them.
#[derive(Debug)]
pub(crate) struct Staging {
    /// Empty until the first use, then of `capacity` bytes; position p is at index p modulo `capacity`.
    ring: Vec<u8>,
    capacity: usize,
    /// The position behind the furthest byte that was ever stored.
    high: u64,
}

/// Memory of a receive for the stream from position `base` on.
#[derive(Debug)]
pub(crate) struct Posted<'a> {
    pub(crate) into: &'a mut [u8],
    /// The position of the first byte that it receives.
    pub(crate) base: u64,
    /// How many bytes of the stream it receives.
    bytes: u64,
    /// Bytes of a round: position p and p + `round` are at the same place.
    round: usize,
    /// A position that is at the first byte of the memory.
    origin: u64,
}

impl<'a> Posted<'a> {
    /// Memory that is as long as what it receives.
    pub(crate) const fn once(into: &'a mut [u8], base: u64) -> Self {
        let round = into.len();
        Self {
            bytes: into.len() as u64,
            into,
            base,
            round,
            origin: base,
        }
    }

    /// Memory that receives `bytes` bytes round and round. Its last [`TAIL`] bytes receive the rest of a packet that begins just before
    /// the end of a round.
    pub(crate) fn round(into: &'a mut [u8], base: u64, bytes: u64) -> Self {
        let round = into.len().saturating_sub(TAIL).max(1);
        Self {
            into,
            base,
            bytes,
            round,
            origin: 0,
        }
    }

    /// The position behind its last byte.
    pub(crate) const fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes)
    }

    /// The offset in the memory of a stream position; `None` when the memory does not receive that position.
    pub(crate) fn place(&self, position: u64) -> Option<usize> {
        position
            .checked_sub(self.base)
            .filter(|from| *from < self.bytes)?;
        usize::try_from((position - self.origin) % self.round as u64).ok()
    }

    /// How many bytes of the stream, from a position on, lie one behind the other in the memory.
    pub(crate) fn room(&self, position: u64) -> usize {
        let left = usize::try_from(self.end().saturating_sub(position)).unwrap_or(usize::MAX);
        self.place(position)
            .map_or(0, |at| (self.into.len() - at).min(left))
    }
}

impl Staging {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            ring: Vec::new(),
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            high: 0,
        }
    }

    /// The two parts of the ring that hold `bytes` bytes from `position` on; the second may be empty.
    fn parts(&self, position: u64, bytes: usize) -> [Range<usize>; 2] {
        let at = (position % self.capacity as u64) as usize;
        let first = bytes.min(self.capacity - at);
        [at..at + first, 0..bytes - first]
    }

    /// Stores bytes of the stream. Bytes beyond the capacity are not stored.
    fn put(&mut self, position: u64, bytes: &[u8]) {
        if bytes.is_empty() || bytes.len() > self.capacity {
            return;
        }
        if self.ring.is_empty() {
            self.ring = vec![0; self.capacity];
        }
        let [first, second] = self.parts(position, bytes.len());
        let (head, tail) = bytes.split_at(first.len());
        self.ring[first].copy_from_slice(head);
        self.ring[second].copy_from_slice(tail);
        self.high = self.high.max(position + bytes.len() as u64);
    }

    /// Shows the ring's `bytes` bytes from `position` on, in one or two parts.
    fn each(&self, position: u64, bytes: usize, mut see: impl FnMut(&[u8])) {
        if bytes == 0 || self.ring.is_empty() {
            return;
        }
        self.parts(position, bytes)
            .into_iter()
            .filter(|part| !part.is_empty())
            .for_each(|part| see(&self.ring[part]));
    }

    /// Copies what has arrived of a newly posted receive into its memory. Gaps are copied too: their bytes arrive later and overwrite them.
    pub(crate) fn unload(&self, posted: &mut Posted<'_>) {
        let bytes = self.high.min(posted.end()).saturating_sub(posted.base) as usize;
        let mut position = posted.base;
        self.each(position, bytes, |mut part| {
            while let Some(at) = posted.place(position).filter(|_| !part.is_empty()) {
                let (now, later) = part.split_at(posted.room(position).min(part.len()));
                posted.into[at..at + now.len()].copy_from_slice(now);
                position += now.len() as u64;
                part = later;
            }
        });
    }
}

/// Stores bytes of the stream: those that the posted memory receives there, the others in the staging ring.
pub(crate) fn store_bytes(
    posted: &mut Posted<'_>,
    staging: &mut Staging,
    position: u64,
    bytes: &[u8],
) {
    let inside = posted.room(position).min(bytes.len());
    if let Some(at) = posted.place(position) {
        posted.into[at..at + inside].copy_from_slice(&bytes[..inside]);
    }
    staging.put(position + inside as u64, &bytes[inside..]);
}

/// Shows `bytes` bytes of the stream from `position` on, in order.
pub(crate) fn for_each_piece(
    posted: &Posted<'_>,
    staging: &Staging,
    position: u64,
    bytes: usize,
    mut see: impl FnMut(&[u8]),
) {
    let inside = posted.room(position).min(bytes);
    if let Some(at) = posted.place(position) {
        see(&posted.into[at..at + inside]);
    }
    staging.each(position + inside as u64, bytes - inside, see);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_where_they_were_put_across_every_edge() {
        let mut memory = vec![0; 10];
        let mut posted = Posted::once(&mut memory, 95);
        let mut staging = Staging::new(8);
        let bytes: Vec<u8> = (0..15).collect();
        // 95..105 are posted, 105..110 wrap around the end of the ring at 112.
        store_bytes(&mut posted, &mut staging, 95, &bytes[..7]);
        store_bytes(&mut posted, &mut staging, 102, &bytes[7..15]);
        let mut seen = Vec::new();
        for_each_piece(&posted, &staging, 97, 13, |part| {
            seen.extend_from_slice(part)
        });
        assert_eq!(seen, bytes[2..]);
        assert_eq!(memory, bytes[..10]);
        let mut next = vec![0xff; 7];
        staging.unload(&mut Posted::once(&mut next, 105));
        assert_eq!(next, [10, 11, 12, 13, 14, 0xff, 0xff]);
    }

    #[test]
    fn the_ring_wraps() {
        let mut staging = Staging::new(8);
        let mut none = Posted::once(&mut [], 5);
        store_bytes(&mut none, &mut staging, 5, &[1, 2, 3, 4, 5, 6, 7, 8]);
        let mut memory = [0; 8];
        staging.unload(&mut Posted::once(&mut memory, 5));
        assert_eq!(memory, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
