//! Brings memory into the processor's cache before the kernel copies to or from it in short pieces.
//!
//! The kernel copies with one string instruction a piece, which waits for memory at every packet; independent loads
//! wait for many lines at once. So with memory that is in no cache, in packets of an Ethernet's length, both ends wait
//! less. Short memory that is used again and again is there already, and is left alone.

use crate::carrier::PayloadPlace;
use std::ops::Range;

/// Bytes of a cache line. Where lines are longer, the only harm is that each is read more than once.
const LINE: usize = 64;
/// Most bytes that are brought in: of more, the first lines would be evicted before use.
const MOST: usize = 1 << 18;

/// Reads one byte of every line.
fn prefetch(bytes: &[u8]) {
    let mut sum = 0;
    for at in (0..bytes.len()).step_by(LINE) {
        sum ^= bytes[at];
    }
    std::hint::black_box(sum);
}

/// Prefetches memory that is about to be read or written, call after call, and remembers which was prefetched last.
#[derive(Debug, Default)]
pub(crate) struct Prefetcher {
    /// Addresses that have been brought in, and are probably still in the cache.
    done: Range<usize>,
}

impl Prefetcher {
    /// Brings in the memory from the first to the last of these places, unless it is too much.
    pub(crate) fn places(&mut self, into: &[u8], places: &[PayloadPlace]) {
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return;
        };
        if let Some(memory) = into
            .get(first.at..last.at + last.length)
            .filter(|memory| memory.len() <= MOST)
        {
            self.bring(memory);
        }
    }

    /// Brings in the part of `memory` that is not in the cache yet: nothing where short memory is used again and again.
    pub(crate) fn bring(&mut self, memory: &[u8]) {
        let begin = memory.as_ptr().addr();
        let end = begin + memory.len();
        let follows = (self.done.start..=self.done.end).contains(&begin);
        let from = if follows {
            self.done.end.min(end)
        } else {
            begin
        };
        prefetch(&memory[from - begin..]);
        let all = self.done.start..end.max(self.done.end);
        self.done = if follows && all.len() <= MOST {
            all
        } else {
            begin..end
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(at: usize, length: usize) -> PayloadPlace {
        PayloadPlace { at, length }
    }

    #[test]
    fn prefetched_memory_is_not_prefetched_again() {
        let memory = vec![0; 1 << 20];
        let begin = memory.as_ptr().addr();
        let mut warm = Prefetcher::default();
        warm.places(&memory, &[]);
        assert_eq!(warm.done, 0..0);
        warm.places(&memory, &[place(1000, 1000), place(2000, 1000)]);
        assert_eq!(warm.done, begin + 1000..begin + 3000);
        // What follows, what was there, what begins in it.
        for (at, length, end) in [(3000, 1000, 4000), (1500, 10, 4000), (3500, 1000, 4500)] {
            warm.places(&memory, &[place(at, length)]);
            assert_eq!(warm.done, begin + 1000..begin + end);
        }
        // Before it, elsewhere, in no order, too much.
        warm.places(&memory, &[place(0, 10)]);
        assert_eq!(warm.done, begin..begin + 10);
        warm.places(&memory, &[place(5000, 10)]);
        warm.places(&memory, &[place(6000, 10), place(0, 10)]);
        warm.places(&memory, &[place(0, 1 << 20)]);
        assert_eq!(warm.done, begin + 5000..begin + 5010);
    }

    #[test]
    fn of_long_memory_only_the_last_part_counts_as_there() {
        let memory = vec![0; 1 << 20];
        let begin = memory.as_ptr().addr();
        let mut warm = Prefetcher::default();
        memory
            .chunks(1 << 16)
            .take(4)
            .for_each(|part| warm.bring(part));
        assert_eq!(warm.done, begin..begin + MOST);
        warm.bring(&memory[MOST..][..1000]);
        assert_eq!(warm.done, begin + MOST..begin + MOST + 1000);
    }
}
