//! Buffers for the frames of one receive call, refilled as frames are taken.
//!
//! Each slot has a small buffer and behind it the tail of a large one, so small frames stay in small buffers and only a
//! long frame has its beginning copied.

use super::buffer::{Buffer, LARGE, SMALL};
use super::header::VIRTIO;
use crate::sys::packet::{self, BATCH, Received};
use std::io;
use std::os::fd::BorrowedFd;

/// Slots for one batch.
pub(crate) struct ReceiveBatch {
    slots: Vec<(Buffer, Buffer)>,
    received: [Received; BATCH],
}

/// A received frame.
pub(crate) struct ReceivedFrame {
    pub(crate) buffer: Buffer,
    pub(crate) length: usize,
    /// Timestamp in ns of the real clock.
    pub(crate) stamp: Option<u64>,
}

impl ReceiveBatch {
    pub(crate) fn new() -> Self {
        let slots = (0..BATCH).map(|_| (Buffer::holding(SMALL), Buffer::holding(LARGE))).collect();
        Self { slots, received: [Received::default(); BATCH] }
    }

    /// Receives at most a batch of frames; returns how many. Without a virtio-net header from the kernel, its room is
    /// left empty.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, header: bool) -> io::Result<usize> {
        let skip = if header { 0 } else { VIRTIO };
        let rooms = self.slots.iter_mut().map(|(small, large)| [&mut small[skip..], &mut large[SMALL..]]);
        let count = packet::receive(socket, rooms, &mut self.received)?;
        for ((small, _), received) in self.slots.iter_mut().zip(&mut self.received).take(count) {
            small[..skip].fill(0);
            received.length += skip;
        }
        Ok(count)
    }

    /// Takes the frame of that slot; `None` for one longer than any packet.
    pub(crate) fn take(&mut self, slot: usize) -> Option<ReceivedFrame> {
        let Received { length, stamp } = self.received[slot];
        let (small, large) = &mut self.slots[slot];
        let buffer = if length <= SMALL {
            std::mem::replace(small, Buffer::holding(SMALL))
        } else if length <= LARGE {
            large[..SMALL].copy_from_slice(small);
            std::mem::replace(large, Buffer::holding(LARGE))
        } else {
            return None;
        };
        Some(ReceivedFrame { buffer, length, stamp })
    }
}
