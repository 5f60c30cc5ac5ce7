//! The connections of a pair of endpoints, one after the other, for stacks whose machines send packets by themselves. A
//! stack says what opens a connection, which machine serves it and what its operations are.

use super::packet_end::{End, Machine};
use super::packet_wire::{self, Arrived, Wire};
use super::pair::{Pair, Route, same};
use super::send_credit::SendCredit;
use crate::context::Context;
use crate::datagram::Datagram;
use crate::error::Result;
use crate::executor::{ConnectionEnd, Executor};
use crate::trace::Log;
use crate::world::{self, Connect, Work};
use stackline_core::program::Side;
use stackline_core::time::Instant;
use stackline_endpoint::Service;
use stackline_net::Packet;
use stackline_proto::blast::wire::Header;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

/// What differs between such stacks.
pub(super) trait Protocol: Sized + 'static {
    /// Of each end of a connection.
    type Machine: Machine;
    /// An open connection.
    type Service: Service;

    /// Whether a packet of a connection not known yet opens it.
    fn opens(&self, arrived: &Arrived<'_>) -> bool;
    /// The responder's machine for the connection of that number.
    fn listen(&self, number: u32) -> Self::Machine;
    /// What answers a packet of a connection that is over.
    fn answer(&self, arrived: &Arrived<'_>) -> Option<Header>;
    /// `ConnectRequest`.
    async fn connect(pair: &Rc<PacketPair<Self>>, context: &Rc<Context>) -> Result<Self::Service>;
    /// `AwaitConnectIndication`, when such a connection came.
    async fn accept(
        pair: &Rc<PacketPair<Self>>,
        end: Rc<End<Self::Machine>>,
        context: &Rc<Context>,
    ) -> Result<Self::Service>;
}

/// Those of one side.
type Ends<M> = RefCell<Vec<Rc<End<M>>>>;

/// The connections of a pair.
pub(super) struct PacketPair<P: Protocol> {
    pub(super) protocol: P,
    route: Route,
    wires: [Wire; 2],
    credits: [Rc<SendCredit>; 2],
    ends: [Ends<P::Machine>; 2],
    /// Connections that came and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<End<P::Machine>>>>,
    /// How many connections the initiator has opened, and how many have reached the responder.
    opened: Cell<u32>,
    arrived: Cell<u32>,
}

impl<P: Protocol> fmt::Debug for PacketPair<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketPair")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl<P: Protocol> PacketPair<P> {
    /// One without connections; `seal` bytes stand behind each packet.
    pub(super) fn new(protocol: P, route: Route, seal: u32) -> Self {
        Self {
            protocol,
            wires: Wire::both(&route, seal),
            credits: packet_wire::credits(&route),
            ends: Default::default(),
            backlog: RefCell::default(),
            opened: Cell::new(0),
            arrived: Cell::new(0),
            route,
        }
    }

    fn add(&self, side: Side, number: u32, machine: P::Machine) -> Rc<End<P::Machine>> {
        let at = side.index();
        let end = Rc::new(End::new(
            self.wires[at],
            &self.credits[at],
            self.route.endpoint(side),
            number,
            machine,
        ));
        self.ends[at].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn find(&self, number: u32, side: Side) -> Option<Rc<End<P::Machine>>> {
        self.ends[side.index()]
            .borrow()
            .iter()
            .rev()
            .find(|end| end.number() == number)
            .map(Rc::clone)
    }

    /// The initiator's end of a new connection; its machine is made for the connection's number.
    pub(super) fn open(&self, machine: impl FnOnce(u32) -> P::Machine) -> Rc<End<P::Machine>> {
        let number = self.opened.replace(self.opened.get() + 1);
        self.add(Side::Initiator, number, machine(number))
    }
}

impl<P: Protocol> Pair for PacketPair<P> {
    fn route(&self) -> &Route {
        &self.route
    }

    fn spawn(self: Rc<Self>, context: Rc<Context>, replica: u32) -> Work {
        world::spawn(self, context, replica)
    }

    fn arrived(&self, side: Side, packet: &mut Packet<Datagram>, executor: &Rc<Executor>) {
        let number = packet.payload.connection;
        if let Some(end) = self.find(number, side) {
            return end.arrived(&packet.payload, executor);
        }
        let wire = &self.wires[side.index()];
        let Some(arrived) = wire.read(&packet.payload) else {
            return;
        };
        if side == Side::Responder && number >= self.arrived.get() && self.protocol.opens(&arrived)
        {
            self.arrived.set(number + 1);
            let end = self.add(side, number, self.protocol.listen(number));
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            end.arrived(&packet.payload, executor);
        } else if let Some(answer) = self.protocol.answer(&arrived) {
            executor.send(wire.control(&answer, Vec::new()));
        }
    }

    fn timer(&self, number: u32, side: Side, executor: &Rc<Executor>) {
        if let Some(end) = self.find(number, side) {
            end.rang(executor);
        }
    }

    fn sample(&self, at: Instant, log: &Log) -> usize {
        self.ends
            .iter()
            .map(|ends| {
                ends.borrow()
                    .iter()
                    .filter(|end| end.sample(at, log))
                    .count()
            })
            .sum()
    }

    /// Lets go of an end that is over.
    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        self.ends[end.side().index()]
            .borrow_mut()
            .retain(|known| !same(known, &end));
    }

    fn wants_departures(&self) -> bool {
        true
    }

    fn departed(&self, side: Side, at: Instant, bytes: u32, executor: &Executor) {
        if self.credits[side.index()].departed(at, bytes) {
            self.ends[side.index()]
                .borrow()
                .iter()
                .for_each(|end| end.departed(executor));
        }
    }
}

impl<P: Protocol> Connect for PacketPair<P> {
    type Service = P::Service;

    async fn connect(self: &Rc<Self>, context: &Rc<Context>) -> Result<P::Service> {
        P::connect(self, context).await
    }

    async fn accept(self: &Rc<Self>, context: &Rc<Context>, _first: bool) -> Result<P::Service> {
        let end = context
            .until("a connection", || self.backlog.borrow_mut().pop_front())
            .await?;
        P::accept(self, end, context).await
    }
}
