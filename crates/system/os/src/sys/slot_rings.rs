//! Receive and transmit rings of packet sockets (`TPACKET_V2`): memory shared with the kernel, with one slot for each frame.
//!
//! A slot belongs to the kernel or to the caller, as its status word says. Only slots of the caller are read and written.

use super::mapping::Mapping;
use super::socket_option::{set_option, set_value};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a slot: a frame of 1500 bytes with all headers before it, the kernel's own among them.
pub const SLOT: usize = 2048;
/// Bytes of a block, in which the kernel allocates the memory: whole pages, whole slots.
const BLOCK: usize = 64 << 10;
/// Where the bytes of a frame to send begin in its slot: behind the kernel's header, aligned.
const BEGIN: usize = (size_of::<libc::tpacket2_hdr>() + 15) & !15;
/// Where the length of a frame to send is written.
const LENGTH: usize = offset_of!(libc::tpacket2_hdr, tp_len);

/// How the memory of a ring is cut up.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotLayout {
    /// Bytes of a slot.
    pub(super) slot: usize,
    /// Bytes of a block, in which the kernel allocates slots.
    pub(super) block: usize,
    /// How many blocks there are.
    pub(super) blocks: usize,
}

impl SlotLayout {
    /// Slots in a block.
    #[inline]
    pub(super) const fn per_block(self) -> usize {
        self.block / self.slot
    }

    /// Slots in all blocks.
    #[inline]
    pub(super) const fn slots(self) -> usize {
        self.blocks * self.per_block()
    }

    /// Has the kernel make a ring of slots for one direction of a socket.
    pub(super) fn open(self, socket: BorrowedFd<'_>, direction: i32) -> io::Result<Mapping> {
        let number =
            |n: usize| u32::try_from(n).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM));
        let request = libc::tpacket_req {
            tp_block_size: number(self.block)?,
            tp_block_nr: number(self.blocks)?,
            tp_frame_size: number(self.slot)?,
            tp_frame_nr: number(self.slots())?,
        };
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        set_value(socket, libc::SOL_PACKET, direction, &request)?;
        Mapping::new(socket, self.blocks * self.block).inspect_err(|_| {
            // Remove the ring again: all frames would go into a ring that cannot be read.
            let none = libc::tpacket_req {
                tp_block_size: 0,
                tp_block_nr: 0,
                tp_frame_size: 0,
                tp_frame_nr: 0,
            };
            let _ = set_value(socket, libc::SOL_PACKET, direction, &none);
        })
    }
}

/// Slots, used one after the other.
#[derive(Debug)]
struct Slots {
    mapping: Mapping,
    count: usize,
    next: usize,
}

impl Slots {
    /// Slots of at least so many bytes together, for one direction of a socket.
    fn open(socket: BorrowedFd<'_>, direction: i32, bytes: usize) -> io::Result<Self> {
        let layout = SlotLayout {
            slot: SLOT,
            block: BLOCK,
            blocks: bytes.div_ceil(BLOCK).max(1),
        };
        Ok(Self {
            mapping: layout.open(socket, direction)?,
            count: layout.slots(),
            next: 0,
        })
    }

    /// A slot begins with its status.
    #[inline]
    fn status(&self, slot: usize) -> &AtomicU32 {
        self.mapping.word(slot * SLOT)
    }

    #[inline]
    const fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.count { 0 } else { slot + 1 }
    }
}

/// A received frame in its slot.
#[derive(Clone, Copy, Debug)]
pub struct RingSlotFrame<'a> {
    /// What the slot holds, with the virtio-net header if there is one.
    pub bytes: &'a [u8],
    /// Whether `bytes` is the whole frame.
    pub whole: bool,
    /// Whether the whole frame can also be received from the socket, because it is longer than a slot.
    pub in_socket: bool,
    /// The kernel's timestamp, in ns of `CLOCK_REALTIME`.
    pub stamp: u64,
}

/// Frames that the kernel has received.
#[derive(Debug)]
pub struct ReceiveRing(Slots);

impl ReceiveRing {
    /// A ring of at least so many bytes. Frames longer than a slot wait in the socket, as before.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        set_option(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, 1)?;
        Slots::open(socket, libc::PACKET_RX_RING, bytes).map(Self)
    }

    /// The next frame, behind a virtio-net header of so many bytes.
    #[inline]
    #[must_use]
    pub fn next(&self, before: usize) -> Option<RingSlotFrame<'_>> {
        let slot = self.0.next;
        let status = self.0.status(slot).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let header: libc::tpacket2_hdr = self.0.mapping.read(slot * SLOT)?;
        let begin = usize::from(header.tp_mac).saturating_sub(before);
        let length = (header.tp_snaplen as usize + before).min(SLOT.saturating_sub(begin));
        Some(RingSlotFrame {
            bytes: self.0.mapping.bytes(slot * SLOT + begin, length),
            whole: header.tp_snaplen == header.tp_len,
            in_socket: status & libc::TP_STATUS_COPY != 0,
            stamp: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
        })
    }

    /// Returns the next frame's slot to the kernel.
    #[inline]
    pub fn release(&mut self) {
        self.0
            .status(self.0.next)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.0.next = self.0.after(self.0.next);
    }
}

/// Frames for the kernel to send.
#[derive(Debug)]
pub struct TransmitRing {
    slots: Slots,
    /// The first slot that was put and that the kernel has not sent yet.
    first: usize,
    /// How many such slots there are.
    put: usize,
}

impl TransmitRing {
    /// Longest frame that fits a slot, with its virtio-net header.
    pub const LONGEST: usize = SLOT - BEGIN;

    /// A ring of at least so many bytes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Ok(Self {
            slots: Slots::open(socket, libc::PACKET_TX_RING, bytes)?,
            first: 0,
            put: 0,
        })
    }

    /// Writes a frame, given in two parts, to the next slot. Returns false if the slot is not free or too short.
    #[inline]
    pub fn put(&mut self, parts: [&[u8]; 2]) -> bool {
        let slot = self.slots.next;
        let [first, second] = parts;
        let length = first.len() + second.len();
        if length > Self::LONGEST
            || self.put == self.slots.count
            || self.slots.status(slot).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE
        {
            return false;
        }
        // The status read just above says that the slot belongs to this process.
        let room = self.slots.mapping.bytes_mut(slot * SLOT, SLOT);
        room[LENGTH..LENGTH + 4].copy_from_slice(&(length as u32).to_ne_bytes());
        let (to_first, rest) = room[BEGIN..].split_at_mut(first.len());
        to_first.copy_from_slice(first);
        rest[..second.len()].copy_from_slice(second);
        self.slots
            .status(slot)
            .store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.slots.next = self.slots.after(slot);
        self.put += 1;
        true
    }

    /// Has the kernel send the frames that were put. Returns how many were sent; the others stay, and an error concerns the first of them.
    pub fn send(&mut self, socket: BorrowedFd<'_>) -> (usize, io::Result<()>) {
        // SAFETY: no address and no bytes: the kernel takes them from the ring.
        let done = unsafe { libc::send(socket.as_raw_fd(), null(), 0, libc::MSG_DONTWAIT) };
        let result = super::length(done).map(drop);
        let unsent = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT;
        let before = self.put;
        while self.put > 0 && self.slots.status(self.first).load(Ordering::Acquire) & unsent == 0 {
            self.first = self.slots.after(self.first);
            self.put -= 1;
        }
        (before - self.put, result)
    }

    /// Removes the frames that were put and not sent.
    pub fn take_back(&mut self) {
        self.slots.next = self.first;
        let mut slot = self.first;
        for _ in 0..std::mem::take(&mut self.put) {
            self.slots
                .status(slot)
                .store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
            slot = self.slots.after(slot);
        }
    }
}
