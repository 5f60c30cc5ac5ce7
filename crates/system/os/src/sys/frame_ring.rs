//! A receive ring (`TPACKET_V2`) of slots as long as a socket's frames are, of which many can be looked at at once.
//!
//! A slot belongs to the kernel until its status passes it to this process, and back.

use super::mapping::Mapping;
use super::slot_rings::SlotLayout;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes before the frame in a slot: the kernel's header and address, aligned so that what follows the Ethernet header is.
const BEFORE: usize = 96;
/// Slots begin where cache lines do.
const LINE: usize = 64;
/// Bytes of memory that the kernel allocates at once, where a slot is not longer.
const BLOCK: usize = 1 << 16;

/// A frame that came.
#[derive(Clone, Copy, Debug)]
pub struct FrameRingSlot<'a> {
    /// What there was room for.
    pub bytes: &'a [u8],
    /// Bytes of the frame as it came.
    pub length: usize,
    /// Whether the kernel has dropped frames since the last query.
    pub losing: bool,
}

/// A ring of slots.
#[derive(Debug)]
pub struct FrameRing {
    mapping: Mapping,
    layout: SlotLayout,
    /// The first slot that has not been given back, and how many from there on are looked at.
    next: usize,
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

    /// Bytes of all slots.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slots() * self.layout.slot
    }

    /// Takes the next frame if there is one: it stays where it is until the next [`FrameRing::release`].
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
    /// When so many are not taken.
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

    /// Where a slot begins; numbers wrap.
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
