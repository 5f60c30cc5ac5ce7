//! A receive ring of a packet socket (`TPACKET_V2`) whose slots are as long as the socket's frames; the caller can look at many frames at
//! once before it gives them back.
//!
//! The status word at the beginning of a slot says whether it belongs to the kernel or to this process.

use super::mapping::Mapping;
use super::slot_rings::SlotLayout;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes before the frame in a slot: the kernel's header and address, and padding that aligns what follows the Ethernet header.
const BEFORE: usize = 96;
/// Slot lengths are multiples of a cache line, in bytes.
const LINE: usize = 64;
/// Bytes of memory that the kernel allocates at once; more if a slot is longer.
const BLOCK: usize = 1 << 16;

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameRingSlot<'a> {
    /// The frame, cut to the room in its slot.
    pub bytes: &'a [u8],
    /// Length of the whole frame, bytes.
    pub length: usize,
    /// Whether the kernel has dropped frames since the last query.
    pub losing: bool,
}

/// A ring of slots.
#[derive(Debug)]
pub struct FrameRing {
    mapping: Mapping,
    layout: SlotLayout,
    /// The first slot that has not been given back.
    next: usize,
    /// How many slots from there on are taken.
    taken: usize,
}

impl FrameRing {
    /// A ring for frames of up to `room` bytes, at least `slots` of them, on a socket that is not bound yet.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(socket: BorrowedFd<'_>, room: usize, slots: usize) -> io::Result<Self> {
        let slot = (BEFORE + room).next_multiple_of(LINE);
        let block = (slot * (BLOCK / slot).max(1)).next_multiple_of(page());
        let layout = SlotLayout {
            slot,
            block,
            blocks: slots.max(1).div_ceil(block / slot),
        };
        Ok(Self {
            mapping: layout.open(socket, libc::PACKET_RX_RING)?,
            layout,
            next: 0,
            taken: 0,
        })
    }

    /// How many slots there are.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.layout.slots()
    }

    /// The length of all slots together, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slots() * self.layout.slot
    }

    /// Takes the next frame and returns true, if there is one. The frame stays in its slot until the next [`FrameRing::release`].
    #[inline]
    pub fn take(&mut self) -> bool {
        let there = self.taken < self.slots()
            && self.status(self.next + self.taken).load(Ordering::Acquire) & libc::TP_STATUS_USER
                != 0;
        self.taken += usize::from(there);
        there
    }

    /// How many frames are taken.
    #[inline]
    #[must_use]
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Frame `index` of those that are taken.
    ///
    /// # Panics
    /// If `index` is not below [`FrameRing::taken`].
    #[inline]
    #[must_use]
    pub fn frame(&self, index: usize) -> FrameRingSlot<'_> {
        assert!(index < self.taken, "frame {index} of {}", self.taken);
        let (at, slot) = (self.offset(self.next + index), self.layout.slot);
        let Some(header) = self.mapping.read::<libc::tpacket2_hdr>(at) else {
            panic!("no slot at {at}");
        };
        let from = usize::from(header.tp_mac).min(slot);
        let length = (header.tp_snaplen as usize).min(slot - from);
        FrameRingSlot {
            bytes: self.mapping.bytes(at + from, length),
            length: header.tp_len as usize,
            losing: header.tp_status & libc::TP_STATUS_LOSING != 0,
        }
    }

    /// Gives all frames taken back to the kernel.
    #[inline]
    pub fn release(&mut self) {
        for index in 0..self.taken {
            self.status(self.next + index)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + self.taken) % self.slots();
        self.taken = 0;
    }

    /// The offset of a slot in the mapping; slot numbers wrap around.
    #[inline]
    fn offset(&self, number: usize) -> usize {
        let (number, per_block) = (number % self.slots(), self.layout.per_block());
        number / per_block * self.layout.block + number % per_block * self.layout.slot
    }

    /// A slot's status, which is its first field.
    #[inline]
    fn status(&self, number: usize) -> &AtomicU32 {
        self.mapping.word(self.offset(number))
    }
}

fn page() -> usize {
    // SAFETY: takes a number only.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(BLOCK)
}
