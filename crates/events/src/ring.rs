//! Words from one thread to one other, without a lock: the one writes whole records, the other takes what is there.

use std::sync::atomic::{AtomicU64, Ordering};

/// A ring of words. Only one thread writes, only one reads.
#[derive(Debug)]
pub(crate) struct Ring {
    words: Box<[AtomicU64]>,
    /// Words ever written, as the reader may see them.
    head: AtomicU64,
    /// Words ever taken.
    tail: AtomicU64,
    /// Records there was no room for.
    lost: AtomicU64,
    /// Whether the writer is gone.
    closed: std::sync::atomic::AtomicBool,
}

impl Ring {
    /// For so many words, rounded up to a power of two.
    pub(crate) fn new(words: usize) -> Self {
        let words = (0..words.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
        let (head, tail, lost) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self { words, head, tail, lost, closed: false.into() }
    }

    /// Writes a record of `length` words, or counts it as lost.
    #[inline]
    pub(crate) fn put(&self, length: usize, record: impl FnOnce(&mut dyn FnMut(u64))) {
        let head = self.head.load(Ordering::Relaxed);
        let used = head - self.tail.load(Ordering::Acquire);
        if used + length as u64 > self.words.len() as u64 {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mask = self.words.len() - 1;
        let mut at = head;
        record(&mut |word| {
            self.words[at as usize & mask].store(word, Ordering::Relaxed);
            at += 1;
        });
        self.head.store(at, Ordering::Release);
    }

    /// Takes everything that is there, whole records.
    pub(crate) fn take(&self, into: &mut Vec<u64>) {
        let (tail, head) = (self.tail.load(Ordering::Relaxed), self.head.load(Ordering::Acquire));
        let mask = self.words.len() - 1;
        into.extend((tail..head).map(|at| self.words[at as usize & mask].load(Ordering::Relaxed)));
        self.tail.store(head, Ordering::Release);
    }

    /// Records lost since it was last asked.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let ring = Ring::new(8);
        for word in 0..3 {
            ring.put(3, |put| (0..3).for_each(|_| put(word)));
        }
        let mut taken = Vec::new();
        ring.take(&mut taken);
        assert_eq!((taken, ring.lost(), ring.lost()), (vec![0, 0, 0, 1, 1, 1], 1, 0));
        ring.put(8, |put| (0..8).for_each(put));
        let mut taken = Vec::new();
        ring.take(&mut taken);
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn two_threads_lose_nothing_unseen() {
        let ring = Ring::new(64);
        let (mut taken, mut sent) = (Vec::new(), 0_u64);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..50_000).for_each(|n| ring.put(2, |put| (put(n), put(!n)).1)));
            while !writer.is_finished() {
                ring.take(&mut taken);
            }
        });
        ring.take(&mut taken);
        for pair in taken.chunks(2) {
            assert_eq!(pair[0], !pair[1]);
            assert!(pair[0] >= sent, "in order");
            sent = pair[0];
        }
        assert_eq!(taken.len() as u64 / 2 + ring.lost(), 50_000);
    }
}
