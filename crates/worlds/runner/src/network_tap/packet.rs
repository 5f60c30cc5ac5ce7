//! What the recorder reads from a packet: its bytes, the range of a stream that it carries, and its identity.

use stackline_dissect::frame_locator::{FrameLocator, FrameStreamRange};
use stackline_events::unit_ids::{self, EventStreamDirection};
use stackline_net::{NetworkPacket, NodeIndex};
use std::borrow::Cow;

/// What is needed beside a packet to find the range that it carries. A "pair" is an initiator and a responder of a
/// simulated run.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketStreams {
    /// The flow number of the simulator's first pair; the other pairs follow.
    pub(crate) first: u32,
    /// By pair: the node of its initiator.
    pub(crate) initiators: Vec<NodeIndex>,
    /// Finds ranges in the frames of real programs.
    pub(crate) frames: FrameLocator,
}

impl PacketStreams {
    /// The flow of a pair, and the direction of a packet that `from` sends.
    fn of_pair(&self, pair: u32, from: NodeIndex) -> Option<(u32, EventStreamDirection)> {
        let initiator = self.initiators.get(pair as usize)?;
        Some((
            self.first + pair,
            if *initiator == from {
                EventStreamDirection::There
            } else {
                EventStreamDirection::Back
            },
        ))
    }
}

/// A payload of a network packet whose bytes can be captured and whose range can be found.
pub(crate) trait WirePayload: Sized {
    /// The bytes of the packet as on the wire, from the network layer's header on, at most `most`.
    fn wire(&self, most: usize) -> Cow<'_, [u8]>;
    /// Which bytes of which stream the packet carries; `None` when it carries none or this cannot be known.
    fn range(packet: &NetworkPacket<Self>, streams: &mut PacketStreams)
    -> Option<FrameStreamRange>;
}

impl WirePayload for &[u8] {
    fn wire(&self, most: usize) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self[..self.len().min(most)])
    }

    fn range(
        packet: &NetworkPacket<Self>,
        streams: &mut PacketStreams,
    ) -> Option<FrameStreamRange> {
        streams.frames.range(packet.payload, packet.segments.count)
    }
}

impl WirePayload for stackline_sim::SimDatagram {
    fn wire(&self, most: usize) -> Cow<'_, [u8]> {
        let mut bytes = self.bytes();
        bytes.truncate(most);
        Cow::Owned(bytes)
    }

    fn range(
        packet: &NetworkPacket<Self>,
        streams: &mut PacketStreams,
    ) -> Option<FrameStreamRange> {
        let carried = packet.payload.data()?;
        let (flow, direction) = streams.of_pair(carried.pair, packet.from)?;
        Some(FrameStreamRange {
            unit: carried.unit,
            stream: Some(unit_ids::stream(flow, direction)),
            offset: carried.offset,
            bytes: carried.bytes,
            // Simulated protocols emit events of their own for what they send again.
            repeated: false,
        })
    }
}

/// The identity of a packet within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) flow: u32,
    pub(super) number: u64,
}

impl Identity {
    pub(super) fn from_packet<P>(packet: &NetworkPacket<P>) -> Self {
        Self {
            from: packet.from.0,
            to: packet.to.0,
            flow: packet.flow,
            number: packet.number,
        }
    }
}
