//! Brings memory into the processor's cache before the kernel copies to or from it in short pieces.
//!
//! The kernel copies with one string instruction a piece, which waits for memory at every packet; independent loads
//! wait for many lines at once. So with memory that is in no cache, in packets of an Ethernet's length, both ends wait
//! less.

use crate::carrier::Place;
use std::ops::Range;

/// Bytes of a cache line; where it is longer, only time is lost.
const LINE: usize = 64;
/// Most bytes for a prefetch: the first lines of more would be evicted before use.
const MOST: usize = 1 << 18;

/// Reads one byte of every line.
pub(crate) fn prefetch(bytes: &[u8]) {
    let mut sum = 0;
    for at in (0..bytes.len()).step_by(LINE) {
        sum ^= bytes[at];
    }
    std::hint::black_box(sum);
}

/// Memory that is about to be written, read after read.
#[derive(Debug, Default)]
pub(crate) struct Prefetcher {
    /// Addresses that have been brought in.
    done: Range<usize>,
}

impl Prefetcher {
    /// Brings in the places that were not brought in for the read before.
    pub(crate) fn places(&mut self, into: &[u8], places: &[Place]) {
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return };
        let Some(memory) = into.get(first.at..last.at + last.length).filter(|memory| memory.len() <= MOST) else {
            return;
        };
        let begin = memory.as_ptr().addr();
        let end = begin + memory.len();
        let from = if self.done.contains(&begin) { self.done.end.min(end) } else { begin };
        prefetch(&memory[from - begin..]);
        self.done = begin..end.max(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(at: usize, length: usize) -> Place {
        Place { at, length }
    }

    #[test]
    fn prefetched_memory_is_not_prefetched_again() {
        let memory = vec![0; 1 << 20];
        let begin = memory.as_ptr().addr();
        let mut warm = Prefetcher::default();
        warm.places(&memory, &[]);
        assert_eq!(warm.done, 0..0);
        warm.places(&memory, &[place(0, 1000), place(1000, 1000)]);
        assert_eq!(warm.done, begin..begin + 2000);
        warm.places(&memory, &[place(1000, 1000), place(2000, 1000)]);
        assert_eq!(warm.done, begin + 1000..begin + 3000);
        // Less than before, then elsewhere, then in no order, then too much.
        warm.places(&memory, &[place(1500, 10)]);
        assert_eq!(warm.done, begin + 1500..begin + 1510);
        warm.places(&memory, &[place(0, 10)]);
        assert_eq!(warm.done, begin..begin + 10);
        warm.places(&memory, &[place(5000, 10), place(0, 10)]);
        warm.places(&memory, &[place(0, 1 << 20)]);
        assert_eq!(warm.done, begin..begin + 10);
    }
}
