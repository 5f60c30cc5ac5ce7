//! What is read of a packet: its bytes, which bytes of which stream it carries, what distinguishes it from the others.

use stackline_dissect::frame_locator::{FrameLocator, FrameStreamRange};
use stackline_events::unit_ids::{self, EventStreamDirection};
use stackline_net::{NetworkPacket, NodeIndex};
use std::borrow::Cow;

/// What has to be known beside a packet to find its range.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketStreams {
    /// The flow of the simulator's first pair; the others follow.
    pub(crate) first: u32,
    /// The node of each pair's initiator.
    pub(crate) initiators: Vec<NodeIndex>,
    /// What real programs' packets are known by.
    pub(crate) frames: FrameLocator,
}

impl PacketStreams {
    /// The flow of a pair and the direction from a node.
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

/// A payload that can show itself.
pub(crate) trait WirePayload: Sized {
    /// Its bytes from the network layer's header on, as they are on the wire, at most so many.
    fn wire(&self, most: usize) -> Cow<'_, [u8]>;
    /// Which bytes of which stream it carries; nothing when it carries none, or that cannot be known.
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
            bytes: Some(carried.bytes),
            // The simulated protocols emit themselves what they send again.
            repeated: false,
        })
    }
}

/// What distinguishes a packet from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) flow: u32,
    pub(super) number: u64,
}

impl Identity {
    pub(super) fn of<P>(packet: &NetworkPacket<P>) -> Self {
        Self {
            from: packet.from.0,
            to: packet.to.0,
            flow: packet.flow,
            number: packet.number,
        }
    }
}
