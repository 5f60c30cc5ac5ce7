//! A lock-free ring of words from one writing thread to one reading thread. The writer writes whole records, the
//! reader takes what is there.

use crate::sys;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

/// Puts a value on a cache line of its own, so that writer and reader do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct RingCacheLine<T>(T);

/// A ring of words. Only one thread writes, only one reads.
#[derive(Debug, Default)]
pub(crate) struct EventRing {
    words: Box<[AtomicU64]>,
    /// The thread that is woken when the ring is half full.
    reader: Option<Thread>,
    /// Number of words ever written and visible to the reader.
    head: RingCacheLine<AtomicU64>,
    /// Number of records ever lost because there was no room.
    lost: AtomicU64,
    /// Whether the writer has gone.
    closed: AtomicBool,
    /// Number of words ever taken.
    tail: RingCacheLine<AtomicU64>,
    /// Number of lost records that the reader has been informed of.
    reported: AtomicU64,
}

impl EventRing {
    /// A ring of this many words, rounded up to a power of two.
    pub(crate) fn new(words: usize, reader: Option<Thread>) -> Self {
        Self {
            words: sys::zeroed(words.next_power_of_two()),
            reader,
            closed: false.into(),
            ..Self::default()
        }
    }

    const fn size(&self) -> u64 {
        self.words.len() as u64
    }

    /// Number of words ever written: the limit for [`EventRing::take`].
    pub(crate) fn written(&self) -> u64 {
        self.head.0.load(Ordering::Acquire)
    }

    /// Takes the words up to `until`, which end with a whole record. Returns how full the ring was, in 1/1024 of its
    /// size.
    pub(crate) fn take(&self, until: u64, into: &mut Vec<u64>) -> u64 {
        let (tail, mask) = (self.tail.0.load(Ordering::Relaxed), self.words.len() - 1);
        let (from, length) = (tail as usize & mask, (until - tail) as usize);
        let (begin, end) = self.words.split_at(from);
        let first = &end[..length.min(end.len())];
        let second = &begin[..length - first.len()];
        into.extend(
            first
                .iter()
                .chain(second)
                .map(|word| word.load(Ordering::Relaxed)),
        );
        self.tail.0.store(until, Ordering::Release);
        (until - tail) * 1024 / self.size()
    }

    /// Number of records lost since the last call.
    pub(crate) fn lost(&self) -> u64 {
        let lost = self.lost.load(Ordering::Relaxed);
        lost - self.reported.swap(lost, Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// The writing end of a ring.
#[derive(Debug)]
pub(crate) struct EventRingWriter {
    ring: Arc<EventRing>,
    /// Number of words ever written.
    head: u64,
    /// Position up to which words can be written before the reader's position has to be read again.
    limit: u64,
}

impl EventRingWriter {
    /// The writer of a ring that has no other writer.
    pub(crate) const fn new(ring: Arc<EventRing>) -> Self {
        Self {
            ring,
            head: 0,
            limit: 0,
        }
    }

    /// Writes a record of `length` words, or counts it as lost. `record` must put exactly that many words.
    #[inline(always)]
    pub(crate) fn put(&mut self, length: usize, record: impl FnOnce(&mut EventRingSlot<'_>)) {
        if self.head + length as u64 > self.limit && !self.refresh(length as u64) {
            return;
        }
        let words = &*self.ring.words;
        let mut place = EventRingSlot {
            words,
            at: self.head as usize,
        };
        record(&mut place);
        debug_assert_eq!(place.at, self.head as usize + length);
        self.head += length as u64;
        self.ring.head.0.store(self.head, Ordering::Release);
    }

    /// Reads the reader's position, a few times in each round of the ring. Returns whether there is room for `length`
    /// words.
    #[cold]
    #[inline(never)]
    fn refresh(&mut self, length: u64) -> bool {
        let ring = &*self.ring;
        let (tail, size) = (ring.tail.0.load(Ordering::Acquire), ring.size());
        if self.head - tail > size / 2
            && let Some(reader) = &ring.reader
        {
            reader.unpark();
        }
        self.limit = (tail + size).min(self.head + length.max(size / 8));
        let room = self.head + length <= self.limit;
        if !room {
            // A load and a store suffice: this thread alone writes the counter.
            ring.lost
                .store(ring.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        room
    }
}

impl Drop for EventRingWriter {
    fn drop(&mut self) {
        self.ring.closed.store(true, Ordering::Release);
    }
}

/// The place of a record in a ring.
pub(crate) struct EventRingSlot<'r> {
    words: &'r [AtomicU64],
    at: usize,
}

impl EventRingSlot<'_> {
    /// Writes the next word.
    #[inline(always)]
    pub(crate) fn put(&mut self, word: u64) {
        // The length is a power of two, so the masked index is always valid; `get` is needed because the compiler does
        // not know it.
        if let Some(place) = self.words.get(self.at & self.words.len().wrapping_sub(1)) {
            place.store(word, Ordering::Relaxed);
        }
        self.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(words: usize) -> (Arc<EventRing>, EventRingWriter) {
        let ring = Arc::new(EventRing::new(words, None));
        (Arc::clone(&ring), EventRingWriter::new(ring))
    }

    fn take(ring: &EventRing) -> Vec<u64> {
        let mut taken = Vec::new();
        ring.take(ring.written(), &mut taken);
        taken
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let (ring, mut writer) = pair(8);
        for word in 0..3 {
            writer.put(3, |place| (0..3).for_each(|_| place.put(word)));
        }
        assert_eq!(
            (take(&ring), ring.lost(), ring.lost()),
            (vec![0, 0, 0, 1, 1, 1], 1, 0)
        );
        writer.put(8, |place| (0..8).for_each(|word| place.put(word)));
        assert_eq!(take(&ring), [0, 1, 2, 3, 4, 5, 6, 7]);
        writer.put(9, |_| panic!("it can never fit"));
        assert_eq!(
            (take(&ring), ring.lost(), ring.is_closed()),
            (Vec::new(), 1, false)
        );
        drop(writer);
        assert!(ring.is_closed());
    }

    #[test]
    fn two_threads_lose_nothing_unseen() {
        let (ring, mut writer) = pair(64);
        let (mut taken, mut sent) = (Vec::new(), 0_u64);
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                for n in 0..50_000 {
                    writer.put(2, |place| {
                        place.put(n);
                        place.put(!n);
                    });
                }
            });
            while !writer.is_finished() {
                ring.take(ring.written(), &mut taken);
            }
        });
        ring.take(ring.written(), &mut taken);
        for pair in taken.chunks(2) {
            assert_eq!(pair[0], !pair[1]);
            assert!(pair[0] >= sent, "in order");
            sent = pair[0];
        }
        assert_eq!(taken.len() as u64 / 2 + ring.lost(), 50_000);
    }
}
