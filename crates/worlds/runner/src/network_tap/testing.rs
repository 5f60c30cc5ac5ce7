//! A network and packets for the tests beside it.

use super::packet::{PacketStreams, WirePayload};
use stackline_core::network::{LinkRate, Network, NetworkHost, NetworkLink, NetworkSwitch};
use stackline_dissect::frame_locator::FrameStreamRange;
use stackline_net::{
    EcnMarking, NetworkLocation, NetworkPacket, NodeIndex, PortIndex, SegmentSizes,
};
use std::borrow::Cow;

/// Carries 1460 bytes, a thousand bytes of the stream further on for each number.
pub(super) struct Fake;

impl WirePayload for Fake {
    fn wire(&self, most: usize) -> Cow<'_, [u8]> {
        Cow::Owned(vec![0x45; most.min(100)])
    }

    fn range(packet: &NetworkPacket<Self>, _: &mut PacketStreams) -> Option<FrameStreamRange> {
        let offset = Some(packet.number * 1000);
        Some(FrameStreamRange {
            stream: Some(3),
            offset,
            bytes: Some(1460),
            ..FrameStreamRange::default()
        })
    }
}

pub(super) fn network() -> Network {
    let host = |name: &str| NetworkHost {
        name: name.into(),
        ..NetworkHost::default()
    };
    let link = |a: &str, b: &str| NetworkLink {
        ends: (a.into(), b.into()),
        rate: LinkRate::Constant(1e8),
        ..NetworkLink::default()
    };
    Network {
        name: "wan".into(),
        hosts: vec![host("khons"), host("udjat")],
        switches: vec![NetworkSwitch {
            name: "edge".into(),
            ..NetworkSwitch::default()
        }],
        links: vec![link("khons", "edge"), link("edge", "udjat")],
    }
}

pub(super) fn packet(number: u64) -> NetworkPacket<Fake> {
    let segments = SegmentSizes::one(1500);
    NetworkPacket {
        number,
        from: NodeIndex(0),
        to: NodeIndex(1),
        flow: 7,
        ecn: EcnMarking::NotCapable,
        dscp: 0,
        segments,
        payload: Fake,
    }
}

pub(super) const FIRST: NetworkLocation = NetworkLocation::Port(PortIndex(0));
pub(super) const SECOND: NetworkLocation = NetworkLocation::Port(PortIndex(2));
