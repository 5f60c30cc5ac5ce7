//! The incoming byte stream of a PUP connection: keeps bytes and marks in order until they are read, allocates room to the sender, and
//! makes the answers (Ack).

use super::options::PupOptions;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The incoming stream of one end.
#[derive(Debug)]
pub(super) struct PupReceiver {
    options: PupOptions,
    /// Bytes that were not read yet, marks included.
    bytes: VecDeque<u8>,
    /// The number of the next byte that is wanted.
    wanted: u32,
    /// The numbers of the bytes that are marks.
    marks: VecDeque<u32>,
    /// Whether an answer is due.
    is_asked: bool,
    /// The bytes that the last answer allowed, and the number after the last of them.
    allowed: usize,
    limit: u32,
}

/// What is next in the stream.
pub(super) enum PupStreamItem {
    Nothing,
    Data(Vec<u8>),
    Mark(u8),
}

impl PupReceiver {
    pub(super) fn new(options: PupOptions, first: u32) -> Self {
        let (allowed, limit) = (
            usize::from(options.packet),
            first.wrapping_add(u32::from(options.packet)),
        );
        Self {
            options,
            bytes: VecDeque::new(),
            wanted: first,
            marks: VecDeque::new(),
            is_asked: false,
            allowed,
            limit,
        }
    }

    /// Handles data or a mark; `id` is the number of its first byte. Packets after a gap are dropped.
    pub(super) fn receive_data(&mut self, id: u32, data: &[u8], is_mark: bool, asks: bool) {
        self.is_asked |= asks;
        // Below 0, bytes before it are missing: nothing is kept out of order.
        let known = self.wanted.wrapping_sub(id) as i32;
        if known < 0 || known as usize >= data.len() || (is_mark && data.len() != 1) {
            return;
        }
        let new = &data[known as usize..];
        let new = &new[..new.len().min(self.room())];
        if is_mark && !new.is_empty() {
            self.marks.push_back(self.wanted);
        }
        self.bytes.extend(new);
        self.wanted = self.wanted.wrapping_add(new.len() as u32);
    }

    fn room(&self) -> usize {
        self.options.receive_buffer.saturating_sub(self.bytes.len())
    }

    /// Bytes that can be read before the next mark.
    pub(super) fn readable(&self) -> usize {
        let first = self.wanted.wrapping_sub(self.bytes.len() as u32);
        self.marks
            .front()
            .map_or(self.bytes.len(), |mark| mark.wrapping_sub(first) as usize)
    }

    /// Takes a mark, or at most `most` bytes before the next mark.
    pub(super) fn take(&mut self, most: usize) -> PupStreamItem {
        let first = self.wanted.wrapping_sub(self.bytes.len() as u32);
        // A mark has an id of its own, like a byte.
        if self.marks.front() == Some(&first) {
            self.marks.pop_front();
            return self
                .bytes
                .pop_front()
                .map_or(PupStreamItem::Nothing, PupStreamItem::Mark);
        }
        let count = self.readable().min(most);
        if count == 0 {
            return PupStreamItem::Nothing;
        }
        let taken = self.bytes.drain(..count).collect();
        // Answer without being asked if the last answer allowed less than a packet, or less than the buffer of which at most half is left:
        // the sender would otherwise not learn that there is room again.
        let (room, packet, buffer) = (
            self.room(),
            usize::from(self.options.packet),
            self.options.receive_buffer,
        );
        let left = (self.limit.wrapping_sub(self.wanted) as i32).max(0) as usize;
        let is_little = self.allowed < packet
            || (self.allowed < buffer && 2 * left <= buffer && 2 * left <= room);
        self.is_asked |= is_little && room >= packet.min(buffer);
        PupStreamItem::Data(taken)
    }

    /// The answer, if one is due: the number of the next byte wanted, and the data of the Ack (packet size, packets, bytes).
    pub(super) fn poll(&mut self) -> Option<(u32, [u8; 6])> {
        if !core::mem::take(&mut self.is_asked) {
            return None;
        }
        // The answer has 16 bits for it.
        let room = self.room().min(usize::from(u16::MAX));
        let packets = room.div_ceil(usize::from(self.options.packet));
        (self.allowed, self.limit) = (room, self.wanted.wrapping_add(room as u32));
        let [a, b] = self.options.packet.to_be_bytes();
        let [c, d] = (packets as u16).to_be_bytes();
        let [e, f] = (room as u16).to_be_bytes();
        Some((self.wanted, [a, b, c, d, e, f]))
    }
}
