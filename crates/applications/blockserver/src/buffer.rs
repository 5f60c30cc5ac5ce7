//! Memory of a block in whole pages at a page's beginning, as direct reads want it; used again where it can be.

use stackline_blocks::master::ALIGNMENT;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

const PAGE: usize = ALIGNMENT as usize;

/// Memory of a block.
#[derive(Debug, Default)]
pub struct BlockBuffer {
    memory: Vec<u8>,
    length: usize,
}

impl BlockBuffer {
    /// Whole pages for so many bytes; what they hold is left over from before.
    pub fn pages(&mut self, length: usize) -> &mut [u8] {
        self.length = length;
        let whole = length.next_multiple_of(PAGE);
        if self.memory.len() < whole + PAGE {
            self.memory = vec![0; whole + PAGE];
        }
        let range = self.range(whole);
        &mut self.memory[range]
    }

    /// Where the pages are in the memory.
    fn range(&self, length: usize) -> Range<usize> {
        let first = self.memory.as_ptr().addr().wrapping_neg() % PAGE;
        first..first + length
    }

    /// The bytes of the block.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        if self.memory.is_empty() {
            &[]
        } else {
            &self.memory[self.range(self.length)]
        }
    }
}

/// Buffers that nobody uses.
#[derive(Debug, Default)]
pub struct BlockBufferPool(Mutex<Vec<BlockBuffer>>);

/// Most buffers that are kept for later.
const KEPT: usize = 64;

impl BlockBufferPool {
    /// One for a block.
    pub fn take(&self) -> BlockBuffer {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default()
    }

    /// One that is no longer used.
    pub fn give(&self, buffer: BlockBuffer) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_begin_at_a_page() {
        let mut buffer = BlockBuffer::default();
        assert_eq!(buffer.data(), b"");
        for length in [1, 4096, 4097, 49_152, 100] {
            let pages = buffer.pages(length);
            assert_eq!(
                (pages.as_ptr().addr() % PAGE, pages.len()),
                (0, length.next_multiple_of(PAGE))
            );
            pages[0] = 7;
            assert_eq!((buffer.data().len(), buffer.data()[0]), (length, 7));
        }
    }
}
