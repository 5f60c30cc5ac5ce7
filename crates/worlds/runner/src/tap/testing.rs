//! A network and packets for the tests beside it.

use super::packet::{Streams, Wire};
use stackline_core::network::{Host, Link, Network, Rate, Switch};
use stackline_dissect::frames::Range;
use stackline_net::{Ecn, Node, Packet, Place, Port, Segments};
use std::borrow::Cow;

/// Carries 1460 bytes, a thousand bytes of the stream further on for each number.
pub(super) struct Fake;

impl Wire for Fake {
    fn wire(&self, most: usize) -> Cow<'_, [u8]> {
        Cow::Owned(vec![0x45; most.min(100)])
    }

    fn range(packet: &Packet<Self>, _: &mut Streams) -> Option<Range> {
        let offset = Some(packet.number * 1000);
        Some(Range {
            stream: Some(3),
            offset,
            bytes: Some(1460),
            ..Range::default()
        })
    }
}

pub(super) fn network() -> Network {
    let host = |name: &str| Host {
        name: name.into(),
        ..Host::default()
    };
    let link = |a: &str, b: &str| Link {
        ends: (a.into(), b.into()),
        rate: Rate::Constant(1e8),
        ..Link::default()
    };
    Network {
        name: "wan".into(),
        hosts: vec![host("khons"), host("udjat")],
        switches: vec![Switch {
            name: "edge".into(),
            ..Switch::default()
        }],
        links: vec![link("khons", "edge"), link("edge", "udjat")],
    }
}

pub(super) fn packet(number: u64) -> Packet<Fake> {
    let segments = Segments::one(1500);
    Packet {
        number,
        from: Node(0),
        to: Node(1),
        flow: 7,
        ecn: Ecn::NotCapable,
        segments,
        payload: Fake,
    }
}

pub(super) const FIRST: Place = Place::Port(Port(0));
pub(super) const SECOND: Place = Place::Port(Port(2));
