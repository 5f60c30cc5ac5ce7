//! What the network's machine sees, kept as events and as packets for pcapng. It never changes what happens.
//!
//! The machine tells some of it ahead: whoever reads it sorts it by time.

mod captures;
mod events;
pub(crate) mod frames;

use captures::Captures;
use events::Events;
pub(crate) use events::Stamp;
use frames::Frames;
use stackline_core::network::Network;
use stackline_core::time::Instant;
use stackline_events::unit::{self, Direction};
use stackline_events::{EventLog, EventLogs};
use stackline_net::{NetworkEvent, Node, Packet, Place, Port, Tap};
use stackline_report::topology::port_name;
use stackline_runs::pcapng::{Settings, Written};
use std::borrow::Cow;
use std::fs::File;
use std::io;

/// Which bytes of which stream a packet carries, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    /// The data unit, where the packet tells its number itself.
    pub(crate) unit: Option<i64>,
    /// See [`unit::stream`].
    pub(crate) stream: Option<i64>,
    /// Of its first byte of data, counted from the first byte after connecting.
    pub(crate) offset: Option<u64>,
    /// Bytes of data.
    pub(crate) bytes: Option<u64>,
    /// Whether packets with some of them were seen before: at its host's own port that says that they are sent again.
    pub(crate) seen_before: bool,
}

/// What has to be known beside a packet to tell its range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    /// The flow of the simulator's first pair; the others follow.
    pub(crate) first: u32,
    /// The node of each pair's initiator.
    pub(crate) initiators: Vec<Node>,
    /// What real programs' packets are known by.
    pub(crate) frames: Frames,
}

impl Streams {
    /// The flow of a pair and the direction from a node.
    fn of_pair(&self, pair: u32, from: Node) -> Option<(u32, Direction)> {
        let initiator = self.initiators.get(pair as usize)?;
        Some((self.first + pair, if *initiator == from { Direction::There } else { Direction::Back }))
    }
}

/// A payload that can show itself.
pub(crate) trait Wire: Sized {
    /// Its bytes from the network layer's header on, as they are on the wire, at most so many.
    fn wire(&self, most: usize) -> Cow<'_, [u8]>;
    /// Which bytes of which stream it carries; nothing when it carries none, or that cannot be known.
    fn range(packet: &Packet<Self>, streams: &mut Streams) -> Option<Range>;
}

impl Wire for &[u8] {
    fn wire(&self, most: usize) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self[..self.len().min(most)])
    }

    fn range(packet: &Packet<Self>, streams: &mut Streams) -> Option<Range> {
        streams.frames.range(packet.payload, packet.segments.count)
    }
}

impl Wire for stackline_sim::Datagram {
    fn wire(&self, most: usize) -> Cow<'_, [u8]> {
        let mut bytes = self.bytes();
        bytes.truncate(most);
        Cow::Owned(bytes)
    }

    fn range(packet: &Packet<Self>, streams: &mut Streams) -> Option<Range> {
        let carried = packet.payload.data()?;
        let (flow, direction) = streams.of_pair(carried.pair, packet.from)?;
        Some(Range {
            unit: carried.unit,
            stream: Some(unit::stream(flow, direction)),
            offset: carried.offset,
            bytes: Some(carried.bytes),
            // The simulated protocols tell themselves what they send again.
            seen_before: false,
        })
    }
}

/// Names of what the machine knows by number.
#[derive(Debug)]
struct Names {
    nodes: Vec<String>,
    hosts: usize,
    /// Of each port, its own name and the node that sends into it.
    ports: Vec<(String, u32)>,
    /// Of each two hosts, `khons>udjat`.
    ways: Vec<String>,
}

impl Names {
    fn of(network: &Network) -> Self {
        let hosts = network.hosts.iter().map(|host| host.name.clone());
        let nodes: Vec<String> = hosts.chain(network.switches.iter().map(|switch| switch.name.clone())).collect();
        let node =
            |name: &str| (0..).zip(&nodes).find(|(_, node)| *node == name).map_or(u32::MAX, |(number, _)| number);
        let directions = network.links.iter().flat_map(|link| [node(&link.ends.0), node(&link.ends.1)]);
        let ports = (0..).zip(directions).map(|(port, sender)| (port_name(network, port).unwrap_or_default(), sender));
        let ports = ports.collect();
        // Of thousands of hosts there are more ways than are worth keeping.
        let hosts = if network.hosts.len() <= 256 { network.hosts.len() } else { 0 };
        let way = |at: usize| format!("{}>{}", nodes[at / hosts], nodes[at % hosts]);
        let ways = (0..hosts * hosts).map(way).collect();
        Self { nodes, hosts, ports, ways }
    }

    /// The node and the name of the place in it.
    fn place(&self, place: Place) -> (u32, &str) {
        match place {
            Place::Port(Port(port)) => {
                self.ports.get(port as usize).map_or((u32::MAX, "?"), |(name, node)| (*node, name))
            }
            Place::Host(Node(node)) => (node, self.nodes.get(node as usize).map_or("?", String::as_str)),
        }
    }

    /// From which host to which.
    fn way(&self, from: Node, to: Node) -> Cow<'_, str> {
        match self.ways.get(from.0 as usize * self.hosts + to.0 as usize) {
            Some(way) => Cow::Borrowed(way),
            None => {
                let node = |Node(node): Node| self.nodes.get(node as usize).map_or("?", String::as_str);
                Cow::Owned(format!("{}>{}", node(from), node(to)))
            }
        }
    }

    fn ports(&self) -> impl Iterator<Item = &str> {
        self.ports.iter().map(|(name, _)| name.as_str())
    }
}

/// What tells a packet from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    from: u32,
    to: u32,
    flow: u32,
    number: u64,
}

impl Identity {
    fn of<P>(packet: &Packet<P>) -> Self {
        Self { from: packet.from.0, to: packet.to.0, flow: packet.flow, number: packet.number }
    }
}

/// Keeps what it is told to keep of one network.
#[derive(Debug)]
pub(crate) struct Recorder {
    names: Names,
    events: Option<Events>,
    captures: Option<Captures>,
}

impl Recorder {
    /// Keeps nothing yet.
    pub(crate) fn new(network: &Network) -> Self {
        Self { names: Names::of(network), events: None, captures: None }
    }

    /// Keeps events; `put` takes tapes of each node, or says why it cannot.
    pub(crate) fn events(
        mut self,
        put: impl FnMut(&str, &EventLog) -> Result<(), String> + Send + 'static,
        stamp: Stamp,
        streams: Streams,
    ) -> Self {
        let tapes = EventLogs::new(self.names.nodes.iter().cloned(), put);
        self.events = Some(Events::new(tapes, stamp, streams));
        self
    }

    /// The network's time begins then, ns.
    pub(crate) const fn begin(&mut self, origin_ns: u64) {
        if let Some(events) = &mut self.events {
            events.begin(origin_ns);
        }
    }

    /// Captures the packets of some ports into a file; `None` is all of them.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn capture(
        mut self,
        network: &Network,
        ports: Option<&[Port]>,
        file: File,
        settings: Settings,
    ) -> io::Result<Self> {
        self.captures = Some(Captures::new(&self.names, network, ports, file, settings)?);
        Ok(self)
    }

    /// Hands on what is left of the events, writes the captured packets to their file; says how many of these.
    ///
    /// # Errors
    /// One sentence when some of it cannot be kept.
    pub(crate) fn finish(self) -> Result<Written, String> {
        self.events.map_or(Ok(()), Events::finish)?;
        let failed = |cause: io::Error| {
            format!(
                "the captured packets cannot be written: {cause}; check that the disk is not full, or capture fewer ports"
            )
        };
        self.captures.map_or(Ok(Written::default()), Captures::finish).map_err(failed)
    }
}

impl<P: Wire> Tap<P> for Recorder {
    const ON: bool = true;

    fn record(&mut self, at: Instant, place: Place, what: NetworkEvent, packet: &Packet<P>) {
        if let Some(events) = &mut self.events {
            events.see(&self.names, at, place, what, packet);
        }
        if let Some(captures) = &mut self.captures {
            captures.see(at, place, what, packet);
        }
    }
}

#[cfg(test)]
mod testing {
    use super::*;
    use stackline_core::network::{Host, Link, Rate, Switch};
    use stackline_net::{Ecn, Segments};

    /// Carries 1460 bytes, a thousand bytes of the stream further on for each number.
    pub(super) struct Fake;

    impl Wire for Fake {
        fn wire(&self, most: usize) -> Cow<'_, [u8]> {
            Cow::Owned(vec![0x45; most.min(100)])
        }

        fn range(packet: &Packet<Self>, _: &mut Streams) -> Option<Range> {
            let offset = Some(packet.number * 1000);
            Some(Range { stream: Some(3), offset, bytes: Some(1460), ..Range::default() })
        }
    }

    pub(super) fn network() -> Network {
        let host = |name: &str| Host { name: name.into(), ..Host::default() };
        let link = |a: &str, b: &str| Link { ends: (a.into(), b.into()), rate: Rate::Constant(1e8), ..Link::default() };
        Network {
            name: "wan".into(),
            hosts: vec![host("khons"), host("udjat")],
            switches: vec![Switch { name: "edge".into(), ..Switch::default() }],
            links: vec![link("khons", "edge"), link("edge", "udjat")],
        }
    }

    pub(super) fn packet(number: u64) -> Packet<Fake> {
        let segments = Segments::one(1500);
        Packet { number, from: Node(0), to: Node(1), flow: 7, ecn: Ecn::NotCapable, segments, payload: Fake }
    }

    pub(super) const FIRST: Place = Place::Port(Port(0));
    pub(super) const SECOND: Place = Place::Port(Port(2));
}
