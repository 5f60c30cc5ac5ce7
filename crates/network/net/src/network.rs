//! The network as a machine: packets enter at hosts and leave at hosts; everything between is computed. A "slot" is the
//! index of a packet in the table of packets in transit (`flights`); a "direction" or "port" is one direction of a
//! link.
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
mod router;
mod routing;

use crate::event_queue::EventQueue;
use crate::explicit_rate::Circuit;
use crate::host_interface::Card;
use crate::interfaces::InterfaceTable;
use crate::link_direction::{LinkDirection, TrainSpan};
use crate::packet::{NetworkPacket, NodeIndex, PacketPayload};
use crate::shared_buffer::SharedBuffer;
use crate::tap::{DropReason, NetworkEvent, NetworkLocation, PortCounters, PortIndex, Tap};
use crate::topology::Topology;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::{MOST_HOPS, Network as Plan, NetworkLink};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};

/// A train that takes longer than this on a link is cut into shorter ones, so that a reaction to the first of them (an
/// acknowledgement) does not wait for the last.
pub const GRANULE: Duration = Duration(1_000_000);

/// Why [`PacketNetwork::poll`] has to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPollCause {
    /// A packet reaches a node, a link becomes free for the next packet of its queue, or a host's processor becomes
    /// free for the next copy.
    Packet,
}

/// A packet that has reached its host.
#[derive(Clone, Debug)]
pub struct Delivery<P> {
    /// The instant at which its last bit is in the host's memory.
    pub due: Instant,
    /// The packet; its `to` is the host that it has reached.
    pub packet: NetworkPacket<P>,
}

/// The fixed properties of the path between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteProperties {
    /// The directions of links that the path uses, in order.
    pub ports: Vec<PortIndex>,
    /// The largest packet that fits all links of the path, in bytes of the network layer. Links behind a router that
    /// sends no ICMP do not count: no sender can find out what they carry.
    pub mtu: u64,
    /// The largest packet that fits the links up to the first router, which its sender knows without being informed.
    pub first_mtu: u64,
    /// Sum of the propagation delays.
    pub delay: Duration,
    /// What routing counts: the propagation delays and the time that a packet of 1500 bytes takes on each link, in ns.
    pub cost: u64,
}

/// A pending event and where it happens; packets are named by their slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForwardingEvent {
    /// The packet's first segment reaches `node`.
    At { node: NodeIndex, slot: u32 },
    /// The whole packet reaches its host.
    Complete { slot: u32 },
    /// The link becomes free for the next packet that waits before it.
    Free { port: PortIndex },
    /// Cell number `index` (from 0) of the frame in `slot` has crossed the direction `port`.
    Cell {
        port: PortIndex,
        slot: u32,
        index: u32,
    },
    /// A copy of a host's interface ends, or the instant comes for which its next copy waited.
    CopyDone { node: NodeIndex },
    /// Management cell `number`, which carries a rate, reaches a host (see `explicit_rate`).
    Rate { number: u32 },
}

/// A packet in the network and its state.
#[derive(Debug)]
struct PacketInTransit<P> {
    packet: NetworkPacket<P>,
    /// When its first and its last segment arrive at the next node (or arrived at the last one).
    arrival: TrainSpan,
    /// The direction that it crossed last.
    last_port: Option<PortIndex>,
    /// Links crossed so far; a packet with `MOST_HOPS` of them is dropped.
    hops: u8,
    /// Cells of the frame that have neither arrived nor been lost.
    cells_left: u32,
    /// A cell of the frame was lost: the frame is discarded when no cell is left.
    incomplete: bool,
    /// The frame exceeds the MTU of a link behind a cell switch: the rest of its cells are dropped too.
    too_large: bool,
    /// The direction that refuses the rest of its cells.
    refused_at: Option<PortIndex>,
    /// The router at which it is has admitted it: its hop is counted, its addresses are translated.
    admitted: bool,
    /// The router at which it is has just translated its destination.
    translated: bool,
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
            admitted: false,
            translated: false,
        }
    }
}

/// A network and everything in it.
#[derive(Debug)]
pub struct PacketNetwork<P, T = ()> {
    /// The names of all nodes, hosts first, by [`NodeIndex`].
    names: Vec<String>,
    topology: Topology,
    /// By [`PortIndex`].
    directions: Vec<LinkDirection>,
    /// By [`NodeIndex`]: whether the node forwards single cells.
    cell_switch: Vec<bool>,
    /// By host: its interface; `None` where the interface costs no time and drops nothing.
    cards: Vec<Option<Card>>,
    /// The buffers of those switches whose ports share one.
    shared_buffers: Vec<SharedBuffer>,
    events: EventQueue<ForwardingEvent>,
    /// The packets in transit, by slot; `None` is an unused slot.
    flights: Vec<Option<PacketInTransit<P>>>,
    /// The unused slots of `flights`.
    free: Vec<u32>,
    /// Packets handed over so far.
    accepted: u64,
    /// Packets dropped because no path leads to their host.
    lost: u64,
    /// Frames discarded because a cell was lost.
    incomplete_frames: u64,
    /// Management cells in transit, by number: the circuit whose rate they carry, the port that grants it, and the rate
    /// in bit/s.
    management: BTreeMap<u32, (Circuit, PortIndex, f64)>,
    /// The number of the management cell sent last.
    managed: u32,
    /// Slots of packets that a queue wants dropped, collected while the queue is borrowed; empty between events.
    to_drop: Vec<(u32, DropReason)>,
    /// Slots of packets that gave their place in a shared buffer to a new one, or were refused; empty between events.
    displaced: Vec<u32>,
    /// By [`NodeIndex`]: the routers; empty in a network without any.
    routers: Vec<Option<Box<router::NetworkRouter>>>,
    /// The smallest MTU of all links: no router has to look at a packet that is not larger.
    least_mtu: u64,
    tap: T,
}

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// The node with that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeIndex> {
        (0..)
            .map(NodeIndex)
            .zip(&self.names)
            .find(|(_, known)| *known == name)
            .map(|(node, _)| node)
    }

    /// The path that packets of that flow take from one host to another; `None` when there is none.
    #[must_use]
    pub fn path(&self, from: NodeIndex, to: NodeIndex, flow: u32) -> Option<RouteProperties> {
        let mut path = RouteProperties {
            ports: Vec::new(),
            mtu: u64::MAX,
            first_mtu: u64::MAX,
            delay: Duration::ZERO,
            cost: 0,
        };
        let goal = self.topology.interfaces().owner(to);
        let mut at = from;
        // The router that the packet left last.
        let mut router = None;
        while at != goal {
            if at != from && self.topology.is_astray(at, to) {
                return None;
            }
            router = self.router(at).or(router);
            let port = self.topology.next(at, to, flow)?;
            let direction = self.directions.get(port.0 as usize)?;
            path.cost = path.cost.saturating_add(self.topology.edge(port).cost);
            if router.is_none() {
                path.first_mtu = path.first_mtu.min(direction.mtu);
            }
            if !router.is_some_and(|router| router.silent) {
                path.mtu = path.mtu.min(direction.mtu);
            }
            path.delay += direction.least_delay();
            path.ports.push(port);
            at = self.topology.edge(port).to;
            if path.ports.len() > usize::from(MOST_HOPS) {
                return None;
            }
        }
        Some(path)
    }

    /// The interfaces of its hosts.
    #[must_use]
    pub const fn interfaces(&self) -> &InterfaceTable {
        self.topology.interfaces()
    }

    /// The router with that address.
    #[must_use]
    pub fn router_at(&self, address: [u8; 4]) -> Option<NodeIndex> {
        let node = self.topology.interfaces().node_at(address)?;
        self.router(node).map(|_| node)
    }

    /// Changes the rate, the delay, the loss and the queue limits of a link from now on. `plan` is the network as
    /// built, `link` an index into its links, `new` the new values. Paths stay as they are, and packets that wait
    /// already leave when they would have left.
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

    /// The counters of each direction of each link, in the order of [`PortIndex`].
    pub fn counters(&self) -> impl Iterator<Item = PortCounters> {
        self.directions.iter().map(LinkDirection::counters)
    }

    /// The number of packets that were dropped because no path leads to their host.
    #[must_use]
    pub const fn without_path(&self) -> u64 {
        self.lost
    }

    /// The number of frames that were discarded because a cell was lost or dropped.
    #[must_use]
    pub const fn incomplete_frames(&self) -> u64 {
        self.incomplete_frames
    }

    /// The number of packets handed over that have neither arrived nor been dropped.
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

    /// The time in ns that the processor of each host has spent by now on copying and on busy waiting. Hosts whose
    /// interface costs nothing are left out.
    pub fn processors(&self, now: Instant) -> impl Iterator<Item = (NodeIndex, u64)> {
        let hosts = (0..).zip(&self.cards);
        hosts.filter_map(move |(host, card)| Some((NodeIndex(host), card.as_ref()?.spent_ns(now))))
    }

    /// The time in ns that the processor of one host has spent by now on copying and on busy waiting; 0 where its
    /// interface costs nothing.
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

    /// Processes all events up to `until` and returns the first packet that reaches its host; `None` when none does by
    /// then.
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
                NetworkLocation::Host(self.topology.interfaces().owner(packet.to)),
                NetworkEvent::Deliver,
                &packet,
            );
        }
        Some(Delivery { due, packet })
    }

    /// Stores a packet in a free slot and returns the slot.
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

    /// Drops a packet: removes it, counts the drop at its direction and emits the event.
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
