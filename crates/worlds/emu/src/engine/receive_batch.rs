//! Buffers for the frames of one receive call (`recvmmsg`, or a copy out of a receive ring), replaced as frames are taken.
//!
//! Each slot has a small buffer and behind it the tail of a large one, so small frames stay in small buffers and only a
//! long frame has its beginning copied.

use super::buffer::{LARGE, PooledBuffer, SMALL};
use super::header::VIRTIO;
use stackline_os::frame_batch::{BATCH, ReceivedPacketInfo, receive_frames};
use stackline_os::slot_rings::ReceiveRing;
use std::io;
use std::os::fd::BorrowedFd;

/// Most frames that are copied out of a ring at once.
pub(crate) const FROM_RING: usize = 64;

/// Slots for one batch, and the frames that were received.
pub(crate) struct ReceiveBatch {
    /// A small and a large buffer for each frame of a batch.
    slots: Vec<(PooledBuffer, PooledBuffer)>,
    /// Length and timestamp of the frame in each slot.
    received: [ReceivedPacketInfo; BATCH],
    /// The received frames, until the caller takes them.
    pub(crate) frames: Vec<ReceivedFrame>,
    /// Number of frames that were dropped because they are longer than any packet.
    pub(crate) too_long: u64,
    /// Number of frames that were dropped because the kernel had no room for the whole of them.
    pub(crate) cut: u64,
}

/// A received frame.
pub(crate) struct ReceivedFrame {
    /// The virtio-net header and the frame.
    pub(crate) buffer: PooledBuffer,
    /// Bytes of both together.
    pub(crate) length: usize,
    /// The kernel's timestamp in ns of the real clock, if timestamps are on.
    pub(crate) stamp: Option<u64>,
}

impl ReceiveBatch {
    pub(crate) fn new() -> Self {
        let slots = (0..BATCH)
            .map(|_| (PooledBuffer::holding(SMALL), PooledBuffer::holding(LARGE)))
            .collect();
        let received = [ReceivedPacketInfo::default(); BATCH];
        Self {
            slots,
            received,
            frames: Vec::with_capacity(FROM_RING.max(BATCH)),
            too_long: 0,
            cut: 0,
        }
    }

    /// Receives at most `most` frames and at most a batch; returns how many. If the kernel puts no virtio-net header before frames
    /// (`header` is false), the bytes of the header are zero.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        header: bool,
        most: usize,
    ) -> io::Result<usize> {
        let skip = if header { 0 } else { VIRTIO };
        let rooms = self
            .slots
            .iter_mut()
            .take(most)
            .map(|(small, large)| [&mut small[skip..], &mut large[SMALL..]]);
        let count = receive_frames(socket, rooms, &mut self.received)?;
        for slot in 0..count {
            self.slots[slot].0[..skip].fill(0);
            self.received[slot].length += skip;
            match self.take(slot) {
                Some(frame) => self.frames.push(frame),
                None => self.too_long += 1,
            }
        }
        Ok(count)
    }

    /// Copies at most [`FROM_RING`] frames out of a ring, up to the first that waits in the socket because it is too long for a slot.
    /// Returns how many slots were taken, cut frames included.
    pub(crate) fn copy_from(&mut self, ring: &mut ReceiveRing, stamps: bool) -> usize {
        let mut count = 0;
        while count < FROM_RING
            && let Some(seen) = ring.next(VIRTIO)
            && !seen.in_socket
        {
            if seen.whole {
                let mut buffer = PooledBuffer::holding(SMALL);
                let length = seen.bytes.len();
                buffer[..length].copy_from_slice(seen.bytes);
                self.frames.push(ReceivedFrame {
                    buffer,
                    length,
                    stamp: stamps.then_some(seen.stamp),
                });
            } else {
                self.cut += 1;
            }
            count += 1;
            ring.release();
        }
        count
    }

    /// Takes the frame of that slot, which gets a new buffer; `None` for a frame longer than any packet.
    fn take(&mut self, slot: usize) -> Option<ReceivedFrame> {
        let ReceivedPacketInfo { length, stamp } = self.received[slot];
        let (small, large) = &mut self.slots[slot];
        let buffer = if length <= SMALL {
            std::mem::replace(small, PooledBuffer::holding(SMALL))
        } else if length <= LARGE {
            large[..SMALL].copy_from_slice(small);
            std::mem::replace(large, PooledBuffer::holding(LARGE))
        } else {
            return None;
        };
        Some(ReceivedFrame {
            buffer,
            length,
            stamp,
        })
    }
}
