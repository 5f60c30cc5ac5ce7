//! The connections of a pair of endpoints, one after the other, for stacks whose machines send packets by themselves
//! (`blast`, `ikp`, `ncp`). A stack says what opens a connection, which machine serves it and what its operations are.

use super::packet_end::{PacketEnd, PacketEndMachine};
use super::packet_wire::{self, ArrivedSimPacket, PacketWire};
use super::pair::{SimConnectionPair, SimPairRoute, is_same_end};
use super::send_credit::SendCredit;
use crate::context::SimEndpointContext;
use crate::datagram::SimDatagram;
use crate::error::Result;
use crate::run_state::{ConnectionEnd, SimRunState};
use crate::run_trace::SimTraceLog;
use crate::world::Connect;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_endpoint::EndpointService;
use stackline_net::NetworkPacket;
use stackline_proto::blast::wire::BlastHeader;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

/// The part of such a stack that differs between stacks.
pub(super) trait PacketPairStack: Sized + 'static {
    /// The machine of each end of a connection.
    type Machine: PacketEndMachine;
    /// An open connection.
    type Service: EndpointService;

    /// Whether a packet of an unknown connection opens that connection.
    fn opens(&self, arrived: &ArrivedSimPacket<'_>) -> bool;
    /// The responder's machine for the connection with that number.
    fn listen(&self, number: u32) -> Self::Machine;
    /// The header that answers a packet of a connection that is over.
    fn answer(&self, arrived: &ArrivedSimPacket<'_>) -> Option<BlastHeader>;
    /// `ConnectRequest`.
    async fn connect(
        pair: &Rc<PacketPair<Self>>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Self::Service>;
    /// `AwaitConnectIndication`, when a connection has arrived.
    async fn accept(
        pair: &Rc<PacketPair<Self>>,
        end: Rc<PacketEnd<Self::Machine>>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Self::Service>;
}

/// The ends of one side.
type PacketEndsOfSide<M> = RefCell<Vec<Rc<PacketEnd<M>>>>;

/// The connections of a pair.
pub(super) struct PacketPair<P: PacketPairStack> {
    pub(super) protocol: P,
    route: SimPairRoute,
    wires: [PacketWire; 2],
    credits: [Rc<SendCredit>; 2],
    ends: [PacketEndsOfSide<P::Machine>; 2],
    /// Connections that have arrived and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<PacketEnd<P::Machine>>>>,
    /// The number of connections that the initiator has opened.
    opened: Cell<u32>,
    /// One more than the largest number of a connection that has reached the responder.
    arrived: Cell<u32>,
}

impl<P: PacketPairStack> fmt::Debug for PacketPair<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketPair")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl<P: PacketPairStack> PacketPair<P> {
    /// A pair without connections; `seal` bytes stand behind each packet.
    pub(super) fn new(protocol: P, route: SimPairRoute, seal: u32) -> Self {
        Self {
            protocol,
            wires: PacketWire::both(&route, seal),
            credits: packet_wire::send_credits(&route),
            ends: Default::default(),
            backlog: RefCell::default(),
            opened: Cell::new(0),
            arrived: Cell::new(0),
            route,
        }
    }

    fn add(&self, side: PairSide, number: u32, machine: P::Machine) -> Rc<PacketEnd<P::Machine>> {
        let at = side.index();
        let end = Rc::new(PacketEnd::new(
            self.wires[at],
            &self.credits[at],
            self.route.endpoint(side),
            number,
            machine,
        ));
        self.ends[at].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn find(&self, number: u32, side: PairSide) -> Option<Rc<PacketEnd<P::Machine>>> {
        self.ends[side.index()]
            .borrow()
            .iter()
            .rev()
            .find(|end| end.number() == number)
            .map(Rc::clone)
    }

    /// The initiator's end of a new connection; `machine` makes its machine from the connection's number.
    pub(super) fn open(
        &self,
        machine: impl FnOnce(u32) -> P::Machine,
    ) -> Rc<PacketEnd<P::Machine>> {
        let number = self.opened.replace(self.opened.get() + 1);
        self.add(PairSide::Initiator, number, machine(number))
    }
}

impl<P: PacketPairStack> SimConnectionPair for PacketPair<P> {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        let number = packet.payload.connection;
        if let Some(end) = self.find(number, side) {
            return end.arrived(&packet.payload, shared);
        }
        let wire = &self.wires[side.index()];
        let Some(arrived) = wire.read(&packet.payload) else {
            return;
        };
        if side == PairSide::Responder
            && number >= self.arrived.get()
            && self.protocol.opens(&arrived)
        {
            self.arrived.set(number + 1);
            let end = self.add(side, number, self.protocol.listen(number));
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            end.arrived(&packet.payload, shared);
        } else if let Some(answer) = self.protocol.answer(&arrived) {
            shared.send(wire.control(&answer, Vec::new()));
        }
    }

    fn timer(&self, number: u32, side: PairSide, shared: &Rc<SimRunState>) {
        if let Some(end) = self.find(number, side) {
            end.rang(shared);
        }
    }

    fn sample(&self, at: Instant, log: &SimTraceLog) -> usize {
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

    /// Drops an end that is over.
    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        self.ends[end.side().index()]
            .borrow_mut()
            .retain(|known| !is_same_end(known, &end));
    }

    fn wants_departures(&self) -> bool {
        true
    }

    fn departed(&self, side: PairSide, at: Instant, bytes: u32, shared: &SimRunState) {
        if self.credits[side.index()].departed(at, bytes) {
            self.ends[side.index()]
                .borrow()
                .iter()
                .for_each(|end| end.departed(shared));
        }
    }
}

impl<P: PacketPairStack> Connect for PacketPair<P> {
    type Service = P::Service;

    async fn connect(self: &Rc<Self>, context: &Rc<SimEndpointContext>) -> Result<P::Service> {
        P::connect(self, context).await
    }

    async fn accept(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
        _first: bool,
    ) -> Result<P::Service> {
        let end = context
            .until("a connection", || self.backlog.borrow_mut().pop_front())
            .await?;
        P::accept(self, end, context).await
    }
}
