//! Memory for blocks, in whole pages and page-aligned, as direct I/O requires. Buffers are reused.

use stackline_blocks::master::ALIGNMENT;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

const PAGE: usize = ALIGNMENT as usize;

/// Memory for one block.
#[derive(Debug, Default)]
pub struct BlockBuffer {
    memory: Vec<u8>,
    /// Bytes of the block.
    length: usize,
}

impl BlockBuffer {
    /// Whole pages for `length` bytes. Their content is undefined: what the buffer last held.
    pub fn pages(&mut self, length: usize) -> &mut [u8] {
        self.length = length;
        let whole = length.next_multiple_of(PAGE);
        if self.memory.len() < whole + PAGE {
            self.memory = vec![0; whole + PAGE];
        }
        let range = self.range(whole);
        &mut self.memory[range]
    }

    /// The aligned range of `length` bytes in the memory.
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

/// Buffers that are not in use.
#[derive(Debug, Default)]
pub struct BlockBufferPool(Mutex<Vec<BlockBuffer>>);

/// The largest number of buffers that are kept.
const KEPT: usize = 64;

impl BlockBufferPool {
    /// Takes a buffer from the pool, or a new one.
    pub fn take(&self) -> BlockBuffer {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default()
    }

    /// Gives a buffer back that is no longer used.
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
