//! The whole machine: packets enter at hosts and leave at hosts; everything between is computed.
//!
//! ```text
//! handle(now, packet)    a host hands a packet to its interface
//! poll(until)            the next packet that reaches its host not after `until`, with the instant at which it is due
//! deadline()             when the next thing happens inside, and what kind of thing
//! ```
//! The deadline may change after every `handle` and every `poll`. Time does not go back: `now` is never before the last
//! `due` returned nor before an earlier `now`.
//!
//! A train of segments travels as one packet. It arrives at a node when its first segment does, and is sent on so that
//! its last one leaves when it would have left alone; a train longer than [`GRANULE`] on a link is cut.

mod build;
mod cell_forwarding;
mod forward;
mod hosts;
mod queueing;

use crate::event_queue::EventQueue;
use crate::explicit_rate::Circuit;
use crate::host_interface::Card;
use crate::link_direction::{LinkDirection, TrainSpan};
use crate::packet::{NetworkPacket, NodeIndex, PacketPayload};
use crate::shared_buffer::SharedBuffer;
use crate::tap::{DropReason, NetworkEvent, NetworkLocation, PortCounters, PortIndex, Tap};
use crate::topology::Topology;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::{MOST_HOPS, Network as Plan, NetworkLink};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};

/// A train that takes longer than this on a link is cut into shorter ones, so that a reaction to the first of them (an
/// acknowledgement) does not wait for the last.
pub const GRANULE: Duration = Duration(1_000_000);

/// Why the machine has to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPollCause {
    /// A packet reaches a node, a link is free for the next of its queue, or a host's processor for the next copy.
    Packet,
}

/// A packet that has reached its host.
#[derive(Clone, Debug)]
pub struct Delivery<P> {
    /// When its last bit is in the host's memory.
    pub due: Instant,
    /// The packet; `to` is the host.
    pub packet: NetworkPacket<P>,
}

/// The fixed properties of the way between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteProperties {
    /// Directions of links, in order.
    pub ports: Vec<PortIndex>,
    /// Largest packet that fits all of them, in bytes of the network layer.
    pub mtu: u64,
    /// Sum of the propagation delays.
    pub delay: Duration,
}

/// An event and where it happens; packets by their slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForwardingEvent {
    /// The packet's first segment reaches that node.
    At { node: NodeIndex, slot: u32 },
    /// The whole packet reaches its host.
    Complete { slot: u32 },
    /// The link is free for the next waiting packet.
    Free { port: PortIndex },
    /// One of a frame's cells has crossed that direction.
    Cell {
        port: PortIndex,
        slot: u32,
        index: u32,
    },
    /// A host's processor or interface is free.
    CopyDone { node: NodeIndex },
    /// A management cell reaches a host.
    Rate { number: u32 },
}

/// A packet in the network and its state.
#[derive(Debug)]
struct PacketInTransit<P> {
    packet: NetworkPacket<P>,
    /// When its segments arrive at the next node (or did).
    arrival: TrainSpan,
    /// The direction it crossed last.
    last_port: Option<PortIndex>,
    hops: u8,
    /// Cells not yet arrived or lost.
    cells_left: u32,
    incomplete: bool,
    too_large: bool,
    /// The direction that refuses the rest of its cells.
    refused_at: Option<PortIndex>,
}

impl<P> PacketInTransit<P> {
    const fn new(packet: NetworkPacket<P>, arrival: TrainSpan) -> Self {
        Self {
            packet,
            arrival,
            last_port: None,
            hops: 0,
            cells_left: 0,
            incomplete: false,
            too_large: false,
            refused_at: None,
        }
    }
}

/// A network and everything in it.
#[derive(Debug)]
pub struct PacketNetwork<P, T = ()> {
    names: Vec<String>,
    topology: Topology,
    directions: Vec<LinkDirection>,
    /// Nodes that forward single cells.
    cell_switch: Vec<bool>,
    cards: Vec<Option<Card>>,
    shared_buffers: Vec<SharedBuffer>,
    events: EventQueue<ForwardingEvent>,
    flights: Vec<Option<PacketInTransit<P>>>,
    free: Vec<u32>,
    /// Packets handed over so far.
    accepted: u64,
    /// Packets handed over between hosts that no path joins.
    lost: u64,
    /// Frames discarded because a cell was lost.
    incomplete_frames: u64,
    /// Management cells on their way: whose rate, by which port, bit/s.
    management: BTreeMap<u32, (Circuit, PortIndex, f64)>,
    managed: u32,
    /// Packets to drop, found while a queue was searched.
    to_drop: Vec<(u32, DropReason)>,
    /// Packets that lost their place to a new one.
    displaced: Vec<u32>,
    tap: T,
}

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// The node of that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeIndex> {
        (0..)
            .map(NodeIndex)
            .zip(&self.names)
            .find(|(_, known)| *known == name)
            .map(|(node, _)| node)
    }

    /// The path from one host to another for packets of that flow; `None` when there is none.
    #[must_use]
    pub fn path(&self, from: NodeIndex, to: NodeIndex, flow: u32) -> Option<RouteProperties> {
        let mut path = RouteProperties {
            ports: Vec::new(),
            mtu: u64::MAX,
            delay: Duration::ZERO,
        };
        let mut at = from;
        while at != to {
            let port = self.topology.next(at, to, flow)?;
            let direction = self.directions.get(port.0 as usize)?;
            path.mtu = path.mtu.min(direction.mtu);
            path.delay += direction.least_delay();
            path.ports.push(port);
            at = self.topology.edge(port).to;
            if path.ports.len() > usize::from(MOST_HOPS) {
                return None;
            }
        }
        Some(path)
    }

    /// Changes a link from now on: its rate, its delay, its loss, the limits of its queue. Paths stay as they are, and what
    /// waits already leaves when it would have left.
    pub fn change(&mut self, plan: &Plan, link: usize, new: &NetworkLink, seed: Seed) {
        let Some(before) = plan.links.get(link) else {
            return;
        };
        let switch = |name: &str| plan.switches.iter().find(|switch| switch.name == name);
        for (from, port) in [(&before.ends.0, 2 * link), (&before.ends.1, 2 * link + 1)] {
            let own = switch(from)
                .filter(|switch| switch.buffer_per_port)
                .and_then(|switch| switch.buffer_bytes);
            if let Some(direction) = self.directions.get_mut(port) {
                direction.change(before, new, own, seed.index(port as u64));
            }
        }
    }

    /// What went through each direction of each link, by [`PortIndex`].
    pub fn counters(&self) -> impl Iterator<Item = PortCounters> {
        self.directions.iter().map(LinkDirection::counters)
    }

    /// Packets between hosts that no path joins.
    #[must_use]
    pub const fn without_path(&self) -> u64 {
        self.lost
    }

    /// Frames of which a cell was lost or dropped.
    #[must_use]
    pub const fn incomplete_frames(&self) -> u64 {
        self.incomplete_frames
    }

    /// Packets handed over that have neither arrived nor been dropped.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// The tap, which receives every network event.
    pub const fn tap(&mut self) -> &mut T {
        &mut self.tap
    }

    /// The tap, taken out of the network.
    #[must_use]
    pub fn into_tap(self) -> T {
        self.tap
    }

    /// Host `packet.from` hands a packet to its interface.
    pub fn handle(&mut self, now: Instant, mut packet: NetworkPacket<P>) {
        self.accepted += 1;
        packet.number = self.accepted;
        let arrival = TrainSpan {
            first: now,
            last: now,
        };
        let flight = PacketInTransit::new(packet, arrival);
        let slot = self.insert(flight);
        self.host_sends(now, slot);
    }

    /// Time in ns that the processors of hosts have spent by now on copying, and on busy waiting; hosts whose interface
    /// costs nothing are left out.
    pub fn processors(&self, now: Instant) -> impl Iterator<Item = (NodeIndex, u64)> {
        let hosts = (0..).zip(&self.cards);
        hosts.filter_map(move |(host, card)| Some((NodeIndex(host), card.as_ref()?.spent_ns(now))))
    }

    /// The same of one host; 0 where its interface costs nothing.
    #[must_use]
    pub fn copied_ns(&self, host: NodeIndex, now: Instant) -> u64 {
        let card = self.cards.get(host.0 as usize).and_then(Option::as_ref);
        card.map_or(0, |card| card.spent_ns(now))
    }

    /// The earliest instant at which a packet handed over by `host` could begin to be copied into its interface: `now`
    /// if at once. If it is later, an arriving packet may go first: call again.
    #[must_use]
    pub fn begins(&self, now: Instant, host: NodeIndex) -> Instant {
        let card = self.cards.get(host.0 as usize).and_then(Option::as_ref);
        card.map_or(now, |card| card.begins(now))
    }

    /// The next packet that reaches its host not after `until`.
    pub fn poll(&mut self, until: Instant) -> Option<Delivery<P>> {
        while let Some((now, event)) = self.events.take(until) {
            let arrived = match event {
                ForwardingEvent::At { node, slot } => self.at(now, node, slot),
                ForwardingEvent::Complete { slot } => self.host_receives(now, slot),
                ForwardingEvent::Cell { port, slot, index } => self.cell(now, port, slot, index),
                ForwardingEvent::CopyDone { node } => self.finish_copy(now, node),
                ForwardingEvent::Free { port } => {
                    self.serve(now, port);
                    None
                }
                ForwardingEvent::Rate { number } => {
                    self.receive_rate(number);
                    None
                }
            };
            if let Some(slot) = arrived {
                return self.deliver(now, slot);
            }
        }
        None
    }

    /// When to poll next, and why.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Option<(Instant, NetworkPollCause)> {
        self.events.next().map(|at| (at, NetworkPollCause::Packet))
    }

    fn deliver(&mut self, due: Instant, slot: u32) -> Option<Delivery<P>> {
        let packet = self.remove(slot)?.packet;
        if T::ON {
            self.tap.record(
                due,
                NetworkLocation::Host(packet.to),
                NetworkEvent::Deliver,
                &packet,
            );
        }
        Some(Delivery { due, packet })
    }

    /// Gives a packet a slot.
    #[inline]
    fn insert(&mut self, flight: PacketInTransit<P>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.flights[slot as usize] = Some(flight);
            return slot;
        }
        self.flights.push(Some(flight));
        (self.flights.len() - 1) as u32
    }

    /// Takes a packet out of its slot.
    #[inline]
    fn remove(&mut self, slot: u32) -> Option<PacketInTransit<P>> {
        let flight = self.flights[slot as usize].take();
        if flight.is_some() {
            self.free.push(slot);
        }
        flight
    }

    /// Ends a packet's way: counts it at its direction and emits a drop.
    fn drop_at(&mut self, at: Instant, port: PortIndex, slot: u32, reason: DropReason) {
        let Some(flight) = self.remove(slot) else {
            return;
        };
        self.directions[port.0 as usize]
            .count_drop(reason, u64::from(flight.packet.segments.count));
        if T::ON {
            self.tap.record(
                at,
                NetworkLocation::Port(port),
                NetworkEvent::Drop(reason),
                &flight.packet,
            );
        }
    }

    fn emit(&mut self, at: Instant, port: PortIndex, what: NetworkEvent, slot: u32) {
        if T::ON
            && let Some(flight) = &self.flights[slot as usize]
        {
            self.tap
                .record(at, NetworkLocation::Port(port), what, &flight.packet);
        }
    }
}
