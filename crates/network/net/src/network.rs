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
mod cells;
mod forward;
mod hosts;
mod queueing;

use crate::direction::{Direction, Span};
use crate::event_queue::EventQueue;
use crate::explicit_rate::Circuit;
use crate::interface::Card;
use crate::packet::{Node, Packet, Payload};
use crate::shared_buffer::SharedBuffer;
use crate::tap::{Counters, NetworkEvent, Place, Port, Reason, Tap};
use crate::topology::Topology;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::{Link, MOST_HOPS, Network as Plan};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};

/// A train that takes longer than this on a link is cut into shorter ones, so that a reaction to the first of them (an
/// acknowledgement) does not wait for the last.
pub const GRANULE: Duration = Duration(1_000_000);

/// Why the machine has to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A packet reaches a node, a link is free for the next of its queue, or a host's processor for the next copy.
    Packet,
}

/// A packet that has reached its host.
#[derive(Clone, Debug)]
pub struct Delivery<P> {
    /// When its last bit is in the host's memory.
    pub due: Instant,
    /// The packet; `to` is the host.
    pub packet: Packet<P>,
}

/// The fixed properties of the way between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Directions of links, in order.
    pub ports: Vec<Port>,
    /// Largest packet that fits all of them, in bytes of the network layer.
    pub mtu: u64,
    /// Sum of the propagation delays.
    pub delay: Duration,
}

/// An event and where it happens; packets by their slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The packet's first segment reaches that node.
    At { node: Node, slot: u32 },
    /// The whole packet reaches its host.
    Complete { slot: u32 },
    /// The link is free for the next waiting packet.
    Free { port: Port },
    /// One of a frame's cells has crossed that direction.
    Cell { port: Port, slot: u32, index: u32 },
    /// A host's processor or interface is free.
    CopyDone { node: Node },
    /// A management cell reaches a host.
    Rate { number: u32 },
}

/// A packet in the network and its state.
#[derive(Debug)]
struct Flight<P> {
    packet: Packet<P>,
    /// When its segments arrive at the next node (or did).
    arrival: Span,
    /// The direction it crossed last.
    last_port: Option<Port>,
    hops: u8,
    /// Cells not yet arrived or lost.
    cells_left: u32,
    incomplete: bool,
    too_large: bool,
    /// The direction that refuses the rest of its cells.
    refused_at: Option<Port>,
}

impl<P> Flight<P> {
    const fn new(packet: Packet<P>, arrival: Span) -> Self {
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
pub struct Network<P, T = ()> {
    names: Vec<String>,
    topology: Topology,
    directions: Vec<Direction>,
    /// Nodes that forward single cells.
    cell_switch: Vec<bool>,
    cards: Vec<Option<Card>>,
    shared_buffers: Vec<SharedBuffer>,
    events: EventQueue<Event>,
    flights: Vec<Option<Flight<P>>>,
    free: Vec<u32>,
    /// Packets handed over so far.
    accepted: u64,
    /// Packets handed over between hosts that no path joins.
    lost: u64,
    /// Frames discarded because a cell was lost.
    incomplete_frames: u64,
    /// Management cells on their way: whose rate, by which port, bit/s.
    management: BTreeMap<u32, (Circuit, Port, f64)>,
    managed: u32,
    /// Packets to drop, found while a queue was searched.
    to_drop: Vec<(u32, Reason)>,
    /// Packets that lost their place to a new one.
    displaced: Vec<u32>,
    tap: T,
}

impl<P: Payload, T: Tap<P>> Network<P, T> {
    /// The node of that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Node> {
        (0..)
            .map(Node)
            .zip(&self.names)
            .find(|(_, known)| *known == name)
            .map(|(node, _)| node)
    }

    /// The path from one host to another for packets of that flow; `None` when there is none.
    #[must_use]
    pub fn path(&self, from: Node, to: Node, flow: u32) -> Option<Path> {
        let mut path = Path {
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
    pub fn change(&mut self, plan: &Plan, link: usize, new: &Link, seed: Seed) {
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

    /// What went through each direction of each link, by [`Port`].
    pub fn counters(&self) -> impl Iterator<Item = Counters> {
        self.directions.iter().map(Direction::counters)
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
    pub fn handle(&mut self, now: Instant, mut packet: Packet<P>) {
        self.accepted += 1;
        packet.number = self.accepted;
        let arrival = Span {
            first: now,
            last: now,
        };
        let flight = Flight::new(packet, arrival);
        let slot = self.insert(flight);
        self.host_sends(now, slot);
    }

    /// Time in ns that the processors of hosts have spent by now on copying, and on busy waiting; hosts whose interface
    /// costs nothing are left out.
    pub fn processors(&self, now: Instant) -> impl Iterator<Item = (Node, u64)> {
        let hosts = (0..).zip(&self.cards);
        hosts.filter_map(move |(host, card)| Some((Node(host), card.as_ref()?.spent_ns(now))))
    }

    /// The same of one host; 0 where its interface costs nothing.
    #[must_use]
    pub fn copied_ns(&self, host: Node, now: Instant) -> u64 {
        let card = self.cards.get(host.0 as usize).and_then(Option::as_ref);
        card.map_or(0, |card| card.spent_ns(now))
    }

    /// The earliest instant at which a packet handed over by `host` could begin to be copied into its interface: `now`
    /// if at once. If it is later, an arriving packet may go first: call again.
    #[must_use]
    pub fn begins(&self, now: Instant, host: Node) -> Instant {
        let card = self.cards.get(host.0 as usize).and_then(Option::as_ref);
        card.map_or(now, |card| card.begins(now))
    }

    /// The next packet that reaches its host not after `until`.
    pub fn poll(&mut self, until: Instant) -> Option<Delivery<P>> {
        while let Some((now, event)) = self.events.take(until) {
            let arrived = match event {
                Event::At { node, slot } => self.at(now, node, slot),
                Event::Complete { slot } => self.host_receives(now, slot),
                Event::Cell { port, slot, index } => self.cell(now, port, slot, index),
                Event::CopyDone { node } => self.finish_copy(now, node),
                Event::Free { port } => {
                    self.serve(now, port);
                    None
                }
                Event::Rate { number } => {
                    self.told(number);
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
    pub fn deadline(&self) -> Option<(Instant, Cause)> {
        self.events.next().map(|at| (at, Cause::Packet))
    }

    fn deliver(&mut self, due: Instant, slot: u32) -> Option<Delivery<P>> {
        let packet = self.remove(slot)?.packet;
        if T::ON {
            self.tap
                .record(due, Place::Host(packet.to), NetworkEvent::Deliver, &packet);
        }
        Some(Delivery { due, packet })
    }

    /// Gives a packet a slot.
    #[inline]
    fn insert(&mut self, flight: Flight<P>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.flights[slot as usize] = Some(flight);
            return slot;
        }
        self.flights.push(Some(flight));
        (self.flights.len() - 1) as u32
    }

    /// Takes a packet out of its slot.
    #[inline]
    fn remove(&mut self, slot: u32) -> Option<Flight<P>> {
        let flight = self.flights[slot as usize].take();
        if flight.is_some() {
            self.free.push(slot);
        }
        flight
    }

    /// Ends a packet's way: counts it at its direction and emits a drop.
    fn drop_at(&mut self, at: Instant, port: Port, slot: u32, reason: Reason) {
        let Some(flight) = self.remove(slot) else {
            return;
        };
        self.directions[port.0 as usize]
            .count_drop(reason, u64::from(flight.packet.segments.count));
        if T::ON {
            self.tap.record(
                at,
                Place::Port(port),
                NetworkEvent::Drop(reason),
                &flight.packet,
            );
        }
    }

    fn emit(&mut self, at: Instant, port: Port, what: NetworkEvent, slot: u32) {
        if T::ON
            && let Some(flight) = &self.flights[slot as usize]
        {
            self.tap.record(at, Place::Port(port), what, &flight.packet);
        }
    }
}
