//! Rings of packet sockets (`TPACKET_V2`): frames in memory that is shared with the kernel, a slot each.
//!
//! It decides nothing. A slot belongs to the kernel or to the caller, as its status says; only the caller's are touched.

use super::packet::set_option;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a slot: a frame of 1500 bytes with all headers before it, the kernel's own among them.
pub(crate) const SLOT: usize = 2048;
/// The kernel allocates the memory in such pieces: whole pages, whole slots.
const BLOCK: usize = 64 << 10;
/// Where the bytes of a frame to send begin in its slot: behind the kernel's header, aligned.
const BEGIN: usize = (size_of::<libc::tpacket2_hdr>() + 15) & !15;

/// Memory shared with the kernel.
pub(crate) struct RingMapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value alone, wherever that is.
unsafe impl Send for RingMapping {}

impl RingMapping {
    pub(crate) fn new(socket: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
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

    /// The place of a value; `None` outside the memory.
    pub(crate) fn at<T>(&self, offset: usize) -> Option<*mut T> {
        let fits = offset.checked_add(size_of::<T>())? <= self.length
            && offset.is_multiple_of(align_of::<T>());
        // SAFETY: inside the mapping, as checked just now.
        fits.then(|| unsafe { self.start.as_ptr().add(offset).cast() })
    }

    /// Bytes that the caller owns; empty outside the memory.
    pub(crate) fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        match offset.checked_add(length) {
            // SAFETY: inside the mapping; the kernel does not write to what the caller owns.
            Some(end) if end <= self.length => unsafe {
                std::slice::from_raw_parts(self.start.as_ptr().add(offset), length)
            },
            _ => &[],
        }
    }
}

impl Drop for RingMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by this value, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Slots, used one after the other.
struct Slots {
    mapping: RingMapping,
    count: usize,
    next: usize,
}

impl Slots {
    /// Slots of at least so many bytes together, for one direction of a socket.
    fn open(socket: BorrowedFd<'_>, direction: i32, bytes: usize) -> io::Result<Self> {
        let blocks = bytes.div_ceil(BLOCK).max(1);
        let count = blocks * (BLOCK / SLOT);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: count as u32,
        };
        set_option(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as i32,
        )?;
        set_ring(socket, direction, &request)?;
        let mapping = RingMapping::new(socket, blocks * BLOCK).inspect_err(|_| {
            // A ring that nobody can read would keep all frames to itself.
            let none = libc::tpacket_req {
                tp_block_size: 0,
                tp_block_nr: 0,
                tp_frame_size: 0,
                tp_frame_nr: 0,
            };
            let _ = set_ring(socket, direction, &none);
        })?;
        Ok(Self {
            mapping,
            count,
            next: 0,
        })
    }

    fn header(&self, slot: usize) -> *mut libc::tpacket2_hdr {
        self.mapping.at(slot * SLOT).unwrap_or(null_mut())
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: a slot begins with its status, aligned; both sides write it whole.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.header(slot)).tp_status) }
    }

    const fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.count { 0 } else { slot + 1 }
    }
}

/// Sets a ring up, or takes it away where its request is zero.
pub(crate) fn set_ring<T>(socket: BorrowedFd<'_>, direction: i32, request: &T) -> io::Result<()> {
    // SAFETY: the pointer is to a value of that length, alive for the call.
    let done = unsafe {
        let length = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            direction,
            std::ptr::from_ref(request).cast(),
            length,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A received frame in its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingSlotFrame<'a> {
    /// What the slot holds, with the virtio-net header if there is one.
    pub(crate) bytes: &'a [u8],
    /// Whether that is all of it.
    pub(crate) whole: bool,
    /// Whether the whole frame waits in the socket too.
    pub(crate) in_socket: bool,
    /// The kernel's timestamp, in ns of `CLOCK_REALTIME`.
    pub(crate) stamp: u64,
}

/// Frames that the kernel has received.
pub(crate) struct ReceiveRing(Slots);

impl ReceiveRing {
    /// A ring of at least so many bytes. Frames longer than a slot wait in the socket, as before.
    pub(crate) fn open(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        set_option(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, 1)?;
        Slots::open(socket, libc::PACKET_RX_RING, bytes).map(Self)
    }

    /// The next frame, behind a virtio-net header of so many bytes.
    #[inline]
    pub(crate) fn next(&self, before: usize) -> Option<RingSlotFrame<'_>> {
        let slot = self.0.next;
        let status = self.0.status(slot).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours, and the kernel has written its header.
        let header = unsafe { self.0.header(slot).read() };
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
    pub(crate) fn release(&mut self) {
        self.0
            .status(self.0.next)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.0.next = self.0.after(self.0.next);
    }
}

/// Frames for the kernel to send.
pub(crate) struct TransmitRing {
    slots: Slots,
    /// The first of those that were put and not settled.
    first: usize,
    put: usize,
}

impl TransmitRing {
    /// Longest frame that fits a slot, with its virtio-net header.
    pub(crate) const LONGEST: usize = SLOT - BEGIN;

    pub(crate) fn open(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Ok(Self {
            slots: Slots::open(socket, libc::PACKET_TX_RING, bytes)?,
            first: 0,
            put: 0,
        })
    }

    /// Writes a frame, given in two parts, to the next slot; false when that is not free, or too short.
    #[inline]
    pub(crate) fn put(&mut self, parts: [&[u8]; 2]) -> bool {
        let slot = self.slots.next;
        let length = parts[0].len() + parts[1].len();
        if length > Self::LONGEST
            || self.put == self.slots.count
            || self.slots.status(slot).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE
        {
            return false;
        }
        let header = self.slots.header(slot);
        // SAFETY: the slot is ours; the parts fit behind its header, and cannot overlap memory that nobody can borrow.
        unsafe {
            (*header).tp_len = length as u32;
            let to = header.cast::<u8>().add(BEGIN);
            to.copy_from_nonoverlapping(parts[0].as_ptr(), parts[0].len());
            to.add(parts[0].len())
                .copy_from_nonoverlapping(parts[1].as_ptr(), parts[1].len());
        }
        self.slots
            .status(slot)
            .store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.slots.next = self.slots.after(slot);
        self.put += 1;
        true
    }

    /// Has the kernel send what was put; returns how many went. The others stay; an error concerns the first of them.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> (usize, io::Result<()>) {
        // SAFETY: no address and no bytes: the kernel takes them from the ring.
        let done = unsafe { libc::send(socket.as_raw_fd(), null(), 0, libc::MSG_DONTWAIT) };
        let result = if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        };
        let unsent = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT;
        let before = self.put;
        while self.put > 0 && self.slots.status(self.first).load(Ordering::Acquire) & unsent == 0 {
            self.first = self.slots.after(self.first);
            self.put -= 1;
        }
        (before - self.put, result)
    }

    /// Takes out what was put and did not go.
    pub(crate) fn take_back(&mut self) {
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
