//! Memory that is shared with the kernel, into which a packet socket puts frames and from which it takes frames.
//!
//! It is divided into slots or blocks, each of which belongs to the kernel or to the caller, as its status word says. Only those of the
//! caller may be read and written.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU32;

/// Memory shared with the kernel.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value alone, wherever that is.
unsafe impl Send for Mapping {}

/// Structures that the kernel writes and for which any bytes are a value.
///
/// # Safety
/// Every bit pattern has to be a value.
pub(super) unsafe trait KernelRecord: Copy {}

// SAFETY: integers and arrays of them.
unsafe impl KernelRecord for libc::tpacket2_hdr {}
// SAFETY: as above, and a union of such.
unsafe impl KernelRecord for libc::tpacket3_hdr {}
// SAFETY: as above.
unsafe impl KernelRecord for libc::tpacket_block_desc {}
// SAFETY: as above.
unsafe impl KernelRecord for libc::sockaddr_ll {}

impl Mapping {
    /// The memory of a packet socket's ring.
    pub(super) fn new(socket: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                length,
                access,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The address of a value at an offset; `None` outside the memory or if it is not aligned.
    #[inline]
    fn at<T>(&self, offset: usize) -> Option<*mut T> {
        let fits = offset.checked_add(size_of::<T>())? <= self.length
            && offset.is_multiple_of(align_of::<T>());
        // SAFETY: inside the mapping, as checked just now.
        fits.then(|| unsafe { self.start.as_ptr().add(offset).cast() })
    }

    /// The status word at an offset, which says whether a slot or a block belongs to the kernel.
    ///
    /// # Panics
    /// Outside the memory.
    #[inline]
    pub(super) fn word(&self, offset: usize) -> &AtomicU32 {
        let Some(word) = self.at::<u32>(offset) else {
            panic!("no word at {offset} of {}", self.length);
        };
        // SAFETY: inside the mapping and aligned; the kernel and this process both read and write it as a whole.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// Copies a structure of the kernel out of a slot or block of the caller; `None` outside the memory.
    #[inline]
    pub(super) fn read<T: KernelRecord>(&self, offset: usize) -> Option<T> {
        // SAFETY: inside the mapping and aligned; any bytes are a value of this type.
        self.at::<T>(offset).map(|record| unsafe { record.read() })
    }

    /// Bytes of a slot or block of the caller; empty outside the memory.
    #[inline]
    pub(super) fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        match offset.checked_add(length) {
            // SAFETY: inside the mapping; the kernel does not write to what the caller owns.
            Some(end) if end <= self.length => unsafe {
                std::slice::from_raw_parts(self.start.as_ptr().add(offset), length)
            },
            _ => &[],
        }
    }

    /// The same, to be written.
    #[inline]
    pub(super) fn bytes_mut(&mut self, offset: usize, length: usize) -> &mut [u8] {
        match offset.checked_add(length) {
            // SAFETY: inside the mapping; the kernel neither reads nor writes what the caller owns.
            Some(end) if end <= self.length => unsafe {
                std::slice::from_raw_parts_mut(self.start.as_ptr().add(offset), length)
            },
            _ => &mut [],
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by this value, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
