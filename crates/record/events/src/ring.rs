//! Words from one thread to one other, without a lock: the one writes whole records, the other takes what is there.

use crate::sys;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

/// What one thread writes and the other reads lies in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct RingCacheLine<T>(T);

/// A ring of words. Only one thread writes, only one reads.
#[derive(Debug, Default)]
pub(crate) struct EventRing {
    words: Box<[AtomicU64]>,
    /// Who is woken when it is half full.
    reader: Option<Thread>,
    /// Words ever written, as the reader may see them.
    head: RingCacheLine<AtomicU64>,
    /// Records there was no room for, ever.
    lost: AtomicU64,
    /// Whether the writer is gone.
    closed: AtomicBool,
    /// Words ever taken.
    tail: RingCacheLine<AtomicU64>,
    /// Records lost that were reported to the reader.
    reported: AtomicU64,
}

impl EventRing {
    /// For so many words, rounded up to a power of two.
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

    /// How far the writer got: what [`EventRing::take`] may take.
    pub(crate) fn written(&self) -> u64 {
        self.head.0.load(Ordering::Acquire)
    }

    /// Takes everything up to there, whole records. How full the ring was, in parts of 1024.
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

    /// Records lost since the last call.
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
    /// Words written.
    head: u64,
    /// Words up to which may be written before the reader's position has to be read again.
    limit: u64,
}

impl EventRingWriter {
    /// That of a ring that has no other.
    pub(crate) const fn new(ring: Arc<EventRing>) -> Self {
        Self {
            ring,
            head: 0,
            limit: 0,
        }
    }

    /// Writes a record of `length` words, or counts it as lost. The record puts exactly that many.
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

    /// Reads the reader's position, a few times a round; whether there is room for so many words.
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
            // Nobody else writes it.
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

/// Where the words of a record go.
pub(crate) struct EventRingSlot<'r> {
    words: &'r [AtomicU64],
    at: usize,
}

impl EventRingSlot<'_> {
    /// The next word.
    #[inline(always)]
    pub(crate) fn put(&mut self, word: u64) {
        // As long as a power of two, so always within; the mask says so to nobody else.
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
