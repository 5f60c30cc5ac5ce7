//! Memory for frames, taken and returned without an allocator: a small size for Ethernet packets, a large one for the
//! longest train of segments.
//!
//! Free buffers belong to the thread that dropped them, so a frame carries no pointer to a pool. Last in, first out:
//! the next buffer is most likely still in the cache.

use std::cell::RefCell;
use std::mem::take;
use std::ops::{Deref, DerefMut};

/// Bytes of a small buffer: a frame of 1500 bytes with all headers before it.
pub(crate) const SMALL: usize = 2048;

/// Bytes of a large buffer: the longest IPv4 packet (65535 bytes) with all headers before it, and some spare bytes.
pub(crate) const LARGE: usize = 65_664;

/// A buffer of [`SMALL`] or [`LARGE`] bytes that returns to the pool of the thread that drops it.
pub(crate) struct PooledBuffer(Box<[u8]>);

/// A thread's free buffers, by size, and the number of bytes in use.
#[derive(Default)]
struct FrameBufferPool {
    small: Vec<Box<[u8]>>,
    large: Vec<Box<[u8]>>,
    /// Bytes of all buffers that are in use.
    taken: usize,
}

thread_local! {
    static POOL: RefCell<FrameBufferPool> = const { RefCell::new(FrameBufferPool { small: Vec::new(), large: Vec::new(), taken: 0 }) };
}

impl PooledBuffer {
    /// Takes a buffer for `bytes` bytes, at most [`LARGE`], from the pool. It still has the contents of its last use.
    pub(crate) fn holding(bytes: usize) -> Self {
        let size = if bytes <= SMALL { SMALL } else { LARGE };
        POOL.with_borrow_mut(|pool| {
            pool.taken += size;
            let free = if size == SMALL {
                &mut pool.small
            } else {
                &mut pool.large
            };
            Self(
                free.pop()
                    .unwrap_or_else(|| vec![0; size].into_boxed_slice()),
            )
        })
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let bytes = take(&mut self.0);
        // A thread that is ending has no pool any more; then the allocator frees the buffer.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            pool.taken = pool.taken.saturating_sub(bytes.len());
            if bytes.len() == SMALL {
                pool.small.push(bytes)
            } else {
                pool.large.push(bytes)
            }
        });
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Bytes of all buffers that this thread has taken and not returned.
pub(crate) fn taken() -> usize {
    POOL.with_borrow(|pool| pool.taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back() {
        let before = taken();
        let (small, large) = (PooledBuffer::holding(60), PooledBuffer::holding(SMALL + 1));
        assert_eq!((small.len(), large.len()), (SMALL, LARGE));
        assert_eq!(taken(), before + SMALL + LARGE);
        let address = large.as_ptr();
        drop((small, large));
        assert_eq!(taken(), before);
        assert_eq!(
            PooledBuffer::holding(LARGE).as_ptr(),
            address,
            "the same memory again"
        );
    }
}
