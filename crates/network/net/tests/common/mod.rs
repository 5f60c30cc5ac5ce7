//! Small networks and a log of everything that happens in them.
#![allow(dead_code, reason = "not every test file uses everything")]

use stackline_core::network::{LinkRate, Network as Plan, NetworkHost, NetworkLink, NetworkSwitch};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{
    EcnMarking, NetworkEvent, NetworkLocation, NetworkPacket, NodeIndex, PacketNetwork,
    PacketPayload, SegmentSizes, Tap,
};

pub(crate) const MS: u64 = 1_000_000;

/// Segments by their numbers: what a cut or a copy must keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<u64>);

impl PacketPayload for Numbers {
    fn split(&mut self, at: u32) -> Self {
        Self(self.0.split_off(at as usize))
    }
    fn mark(&mut self) {}
    fn set_dscp(&mut self, _: u8) {}
    fn again(&self) -> Self {
        self.clone()
    }
}

/// One line for each event.
#[derive(Debug, Default)]
pub(crate) struct Log(pub(crate) Vec<(Instant, String)>);

impl Tap<Numbers> for Log {
    const ON: bool = true;
    fn record(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<Numbers>,
    ) {
        let place = match place {
            NetworkLocation::Port(port) => format!("port {}", port.0),
            NetworkLocation::Host(node) => format!("host {}", node.0),
        };
        self.0
            .push((at, format!("{place} {what:?} {:?}", packet.payload.0)));
    }
}

impl Log {
    /// In the order of time.
    pub(crate) fn sorted(mut self) -> Vec<String> {
        self.0.sort_by_key(|(at, _)| *at);
        self.0
            .into_iter()
            .map(|(at, line)| format!("{at} {line}"))
            .collect()
    }
}

pub(crate) fn host(name: &str) -> NetworkHost {
    NetworkHost {
        name: name.into(),
        ..NetworkHost::default()
    }
}

pub(crate) fn switch(name: &str) -> NetworkSwitch {
    NetworkSwitch {
        name: name.into(),
        ..NetworkSwitch::default()
    }
}

pub(crate) fn link(ends: &str, mbit_s: f64, delay_ms: f64) -> NetworkLink {
    let (from, to) = ends.split_once('-').expect("FROM-TO");
    NetworkLink {
        ends: (from.into(), to.into()),
        rate: if mbit_s > 0.0 {
            LinkRate::Constant(mbit_s * 1e6)
        } else {
            LinkRate::Unlimited
        },
        delay: Duration::from_seconds(delay_ms / 1e3),
        ..NetworkLink::default()
    }
}

/// Two hosts and one link.
pub(crate) fn pair(link: NetworkLink) -> Plan {
    Plan {
        hosts: vec![host("a"), host("b")],
        links: vec![link],
        ..Plan::default()
    }
}

pub(crate) fn build(plan: &Plan) -> PacketNetwork<Numbers, Log> {
    PacketNetwork::new(plan, Seed::root(1), Log::default())
}

/// A packet of one segment.
pub(crate) fn packet(from: u32, to: u32, bytes: u32, number: u64) -> NetworkPacket<Numbers> {
    NetworkPacket {
        number: 0,
        from: NodeIndex(from),
        to: NodeIndex(to),
        flow: 0,
        ecn: EcnMarking::NotCapable,
        dscp: 0,
        segments: SegmentSizes::one(bytes),
        payload: Numbers(vec![number]),
    }
}

/// A train of full segments: 40 bytes of header, 1460 behind it.
pub(crate) fn train(from: u32, to: u32, count: u32, first: u64) -> NetworkPacket<Numbers> {
    NetworkPacket {
        segments: SegmentSizes {
            count,
            header: 40,
            full: 1460,
            last: 1460,
        },
        payload: Numbers((first..first + u64::from(count)).collect()),
        ..packet(from, to, 1500, first)
    }
}

/// Everything that arrives, with its instant in ns.
pub(crate) fn drain(network: &mut PacketNetwork<Numbers, Log>) -> Vec<(u64, Vec<u64>)> {
    std::iter::from_fn(|| network.poll(Instant(u64::MAX - 1)))
        .map(|d| (d.due.0, d.packet.payload.0))
        .collect()
}
