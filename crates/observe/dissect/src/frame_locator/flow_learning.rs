//! Learns connections from their packets: flows are numbered in the order in which they begin, with their SYN. If a connection began
//! before, its offsets count from the first segment with data that is seen. Datagrams between two addresses form a flow without offsets.

use super::{FrameEnds, FrameStreamRange, MOST_CONNECTIONS, TCP, UDP};
use crate::left_out::{Bound, LeftOut};
use crate::sequence_position::Position;
use stackline_events::unit_ids::{self, EventStreamDirection};
use std::collections::HashMap;
use std::net::SocketAddrV4;

const FIN_SYN_RST: u8 = 7;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A flow whose first packet was just seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// The flow's number.
    pub flow: u32,
    /// The end that opened the connection, or sent first.
    pub initiator: SocketAddrV4,
    /// The other end.
    pub responder: SocketAddrV4,
    /// The sequence number of the initiator's first byte; `None` for UDP, or if the SYN was not seen.
    pub first_sequence: Option<u32>,
}

/// The flows that were learned so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Learning {
    known: HashMap<LearningKey, Learned>,
    next: u32,
    /// The flow that the last packet began; see [`super::FrameLocator::began`].
    pub(super) began: Option<Began>,
}

/// The key of a flow: protocol and both addresses in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LearningKey(u8, SocketAddrV4, SocketAddrV4);

/// A flow that was learned.
#[derive(Clone, Copy, Debug)]
struct Learned {
    flow: u32,
    initiator: SocketAddrV4,
    first_sequence: Option<u32>,
    /// How far each direction has come.
    positions: [Option<Position>; 2],
}

/// The fields of a TCP header that locate its data.
#[derive(Clone, Copy)]
struct TcpHeaderSummary {
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    bytes: u64,
}

impl TcpHeaderSummary {
    fn read(data: &[u8]) -> Option<Self> {
        let header = data.first_chunk::<20>()?;
        let number = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        // The header's length is in words of four bytes.
        let bytes = data.get(usize::from(header[12] >> 4) * 4..)?.len() as u64;
        Some(Self {
            sequence: number(4),
            acknowledged: number(8),
            flags: header[13],
            bytes,
        })
    }

    /// Whether the segment is a SYN without ACK, which opens a connection.
    const fn opens(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// Whether the segment is a SYN, with or without ACK.
    const fn has_syn(&self) -> bool {
        self.flags & FIN_SYN_RST == SYN
    }

    /// The sequence number of its first data byte.
    const fn first(&self) -> u32 {
        self.sequence.wrapping_add(self.has_syn() as u32)
    }
}

impl Learning {
    /// The range of a packet. For TCP, `data` begins with the TCP header.
    pub(super) fn range(
        &mut self,
        protocol: u8,
        ends: FrameEnds,
        data: &[u8],
        left_out: &mut LeftOut,
    ) -> Option<FrameStreamRange> {
        let segment = match protocol {
            TCP => Some(TcpHeaderSummary::read(data)?),
            UDP => None,
            _ => return None,
        };
        let key = LearningKey(protocol, ends.from.min(ends.to), ends.from.max(ends.to));
        let known = self.known.get(&key);
        // A SYN with another sequence number between the same addresses opens another connection.
        let again = |known: &Learned| {
            segment.is_some_and(|it| it.opens() && known.first_sequence != Some(it.first()))
        };
        if known.is_none_or(again) {
            let is_left_over = segment.is_some_and(|it| !it.has_syn() && it.bytes == 0);
            if known.is_none() && is_left_over {
                return None;
            }
            if known.is_none() && self.known.len() >= MOST_CONNECTIONS {
                left_out.add(Bound::Flows, 1);
                return None;
            }
            let learned = self.begin(ends, segment);
            self.known.insert(key, learned);
        }
        let known = self.known.get_mut(&key)?;
        let direction = if known.initiator == ends.from {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        };
        let range = FrameStreamRange {
            stream: Some(unit_ids::stream(known.flow, direction)),
            ..FrameStreamRange::default()
        };
        let Some(segment) = segment else {
            return Some(FrameStreamRange {
                bytes: Some(data.len() as u64),
                ..range
            });
        };
        let range = FrameStreamRange {
            bytes: Some(segment.bytes),
            ..range
        };
        let position = &mut known.positions[direction as usize];
        if segment.has_syn() && position.is_none_or(|position| !position.begins_at(segment.first()))
        {
            *position = Some(Position::new(segment.first()));
        }
        if segment.bytes == 0 {
            return Some(range);
        }
        let position = position.get_or_insert_with(|| Position::new(segment.first()));
        let Some(offset) = position.offset(segment.first()) else {
            return Some(range);
        };
        let repeated = offset < position.farthest();
        position.advance(offset + segment.bytes);
        Some(FrameStreamRange {
            offset: Some(offset),
            repeated,
            ..range
        })
    }

    /// Learns a flow from its first packet.
    fn begin(&mut self, ends: FrameEnds, segment: Option<TcpHeaderSummary>) -> Learned {
        let FrameEnds { from, to } = ends;
        // The answer to a SYN shows which end opened the connection; without a SYN, the end with the lower port was connected to.
        let is_back =
            segment.is_some_and(|it| !it.opens() && (it.has_syn() || from.port() < to.port()));
        let (initiator, responder) = if is_back { (to, from) } else { (from, to) };
        let first_sequence = segment.filter(TcpHeaderSummary::has_syn);
        // What acknowledges a SYN names the initiator's first byte.
        let first_sequence =
            first_sequence.map(|it| if is_back { it.acknowledged } else { it.first() });
        let there = first_sequence.map(Position::new);
        let flow = self.next;
        self.next = self.next.saturating_add(1);
        self.began = Some(Began {
            flow,
            initiator,
            responder,
            first_sequence,
        });
        Learned {
            flow,
            initiator,
            first_sequence,
            positions: [there, None],
        }
    }
}
