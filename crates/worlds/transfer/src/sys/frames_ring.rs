//! Memory shared with the kernel into which a packet socket's frames are put: `TPACKET_V2`.
//!
//! A slot belongs to the kernel until its status passes it to this process, and back.

use super::{length, option};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes before the frame in a slot: the kernel's header and address, aligned so that what follows the Ethernet header is.
const BEFORE: usize = 96;
/// Slots begin where cache lines do.
const LINE: usize = 64;
/// Bytes of memory that the kernel allocates at once, where a slot is not longer.
const BLOCK: usize = 1 << 16;

/// A frame that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RxRingFrame<'a> {
    /// What there was room for.
    pub(crate) bytes: &'a [u8],
    /// Bytes of the frame as it came.
    pub(crate) length: usize,
    /// Whether the kernel has dropped frames since the last query.
    pub(crate) losing: bool,
}

/// A ring of slots.
pub(crate) struct RxRingMapping {
    map: NonNull<u8>,
    slot: usize,
    block: usize,
    blocks: usize,
    /// The first slot that has not been given back, and how many from there on are looked at.
    next: usize,
    taken: usize,
}

// SAFETY: the memory is reached through this value alone (and by the kernel, whatever thread that is for).
unsafe impl Send for RxRingMapping {}

impl RxRingMapping {
    /// A ring for frames of up to `room` bytes, at least `slots` of them, on a socket that is not bound yet.
    pub(crate) fn new(fd: BorrowedFd<'_>, room: usize, slots: usize) -> io::Result<Self> {
        let slot = (BEFORE + room).next_multiple_of(LINE);
        let block = (slot * (BLOCK / slot).max(1)).next_multiple_of(page());
        let blocks = slots.max(1).div_ceil(block / slot);
        let number =
            |n: usize| u32::try_from(n).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM));
        let request = libc::tpacket_req {
            tp_block_size: number(block)?,
            tp_block_nr: number(blocks)?,
            tp_frame_size: number(slot)?,
            tp_frame_nr: number(blocks * (block / slot))?,
        };
        option::set(
            fd,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as i32,
        )?;
        let size = size_of::<libc::tpacket_req>() as libc::socklen_t;
        let name = libc::PACKET_RX_RING;
        // SAFETY: the pointer is to a live request of that length.
        let done = unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_PACKET,
                name,
                (&raw const request).cast(),
                size,
            )
        };
        length(done as isize)?;
        Ok(Self {
            map: map(fd, block * blocks)?,
            slot,
            block,
            blocks,
            next: 0,
            taken: 0,
        })
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.blocks * (self.block / self.slot)
    }

    /// Bytes of all slots.
    pub(crate) fn bytes(&self) -> usize {
        self.slots() * self.slot
    }

    /// Takes the next frame if there is one: it stays where it is until the next [`RxRingMapping::release`].
    pub(crate) fn take(&mut self) -> bool {
        let there = self.taken < self.slots()
            && self.status(self.next + self.taken).load(Ordering::Acquire) & libc::TP_STATUS_USER
                != 0;
        self.taken += usize::from(there);
        there
    }

    /// How many frames are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Frame `index` of those that are taken.
    pub(crate) fn slot(&self, index: usize) -> RxRingFrame<'_> {
        assert!(index < self.taken, "frame {index} of {}", self.taken);
        let at = self.at(self.next + index);
        // SAFETY: the slot is this process's until it is released, which takes `&mut self`; the header is plain data.
        let header = unsafe { at.cast::<libc::tpacket2_hdr>().read() };
        let from = usize::from(header.tp_mac).min(self.slot);
        let length = (header.tp_snaplen as usize).min(self.slot - from);
        // SAFETY: the bytes lie inside the slot, which nobody writes as long as it is this process's.
        let bytes = unsafe { std::slice::from_raw_parts(at.as_ptr().add(from), length) };
        RxRingFrame {
            bytes,
            length: header.tp_len as usize,
            losing: header.tp_status & libc::TP_STATUS_LOSING != 0,
        }
    }

    /// Gives all frames taken back to the kernel.
    pub(crate) fn release(&mut self) {
        for index in 0..self.taken {
            self.status(self.next + index)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + self.taken) % self.slots();
        self.taken = 0;
    }

    /// Where a slot begins; numbers wrap.
    fn at(&self, number: usize) -> NonNull<u8> {
        let (number, per_block) = (number % self.slots(), self.block / self.slot);
        let offset = number / per_block * self.block + number % per_block * self.slot;
        // SAFETY: the number is below that of the slots, so that the offset lies inside the map.
        unsafe { self.map.add(offset) }
    }

    /// A slot's status, which is its first field.
    fn status(&self, number: usize) -> &AtomicU32 {
        // SAFETY: slots are aligned to more than four bytes and mapped as long as this value lives; kernel and process
        // both read and write the status as a whole.
        unsafe { AtomicU32::from_ptr(self.at(number).as_ptr().cast()) }
    }
}

impl Drop for RxRingMapping {
    fn drop(&mut self) {
        // SAFETY: this is what was mapped, and nothing borrowed from it outlives the ring.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.block * self.blocks) };
    }
}

fn page() -> usize {
    // SAFETY: takes a number only.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(BLOCK)
}

fn map(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new map wherever the kernel likes; it touches no memory of this process.
    let map = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            access,
            libc::MAP_SHARED,
            fd.as_raw_fd(),
            0,
        )
    };
    if map == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(map.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}
