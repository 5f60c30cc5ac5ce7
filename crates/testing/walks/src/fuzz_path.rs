//! The path that the fuzz walks of [`crate::blast`] and [`crate::ikp`] share: bytes that choose each step, packets in transit
//! to both sides, and headers that are forged from them. It holds no machine and checks nothing.

use stackline_proto::blast::BlastHeader;
use std::collections::VecDeque;

/// A packet in transit: its header, its body if it is not data, and the number of bytes behind the header.
pub(crate) type FuzzPacket = (BlastHeader, Vec<u8>, usize);

/// Two sides and the packets between them.
pub(crate) struct FuzzPath<'a> {
    bytes: std::slice::Iter<'a, u8>,
    /// Packets in transit to each side.
    in_transit: [VecDeque<FuzzPacket>; 2],
    /// The last header sent by either machine.
    last: BlastHeader,
}

impl<'a> FuzzPath<'a> {
    pub(crate) fn new(bytes: &'a [u8], last: BlastHeader) -> Self {
        Self {
            bytes: bytes.iter(),
            in_transit: [VecDeque::new(), VecDeque::new()],
            last,
        }
    }

    /// The next step; `None` when the bytes are used up.
    pub(crate) fn step(&mut self) -> Option<u8> {
        self.bytes.next().copied()
    }

    /// The next byte, zero when they are used up.
    pub(crate) fn next(&mut self) -> u8 {
        self.step().unwrap_or(0)
    }

    /// Packets in transit to that side.
    pub(crate) const fn to(&self, side: usize) -> &VecDeque<FuzzPacket> {
        &self.in_transit[side]
    }

    /// Whether nothing is in transit.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_transit.iter().all(VecDeque::is_empty)
    }

    /// A machine sends a packet to that side.
    pub(crate) fn send(&mut self, side: usize, packet: FuzzPacket) {
        self.last = packet.0;
        self.in_transit[side].push_back(packet);
    }

    /// The next packet that reaches that side, or is lost.
    pub(crate) fn take(&mut self, side: usize) -> Option<FuzzPacket> {
        self.in_transit[side].pop_front()
    }

    pub(crate) fn duplicate(&mut self, side: usize) {
        let copy = self.in_transit[side].front().cloned();
        self.in_transit[side].extend(copy);
    }

    pub(crate) fn reorder(&mut self, side: usize) {
        let first = self.take(side);
        self.in_transit[side].extend(first);
    }

    /// Drops the oldest packets to that side above `most`.
    pub(crate) fn bound(&mut self, side: usize, most: usize) {
        let excess = self.in_transit[side].len().saturating_sub(most);
        self.in_transit[side].drain(..excess);
    }

    /// Any header, and some bytes behind it.
    pub(crate) fn any_header(&mut self) -> Option<(BlastHeader, Vec<u8>)> {
        let bytes: Vec<u8> = (0..40).map(|_| self.next()).collect();
        Some((BlastHeader::read(&bytes)?, bytes))
    }

    /// The last header with one byte changed, and by what.
    pub(crate) fn corrupt_header(&mut self) -> Option<(BlastHeader, u8)> {
        let (which, value) = (self.next(), self.next());
        let mut bytes = self.last.write();
        bytes[usize::from(which & 31)] ^= value;
        Some((BlastHeader::read(&bytes)?, value))
    }
}
