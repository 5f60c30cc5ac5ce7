//! `ikp`: the machines of `proto::ikp` over UDP, packet by packet as in the live world.
//!
//! The machines go on by themselves, as if a kernel ran them: a peer that does something else still says that a message is
//! pending.

mod calls;
mod end;

use calls::Calls;
use end::End;

use super::packet_wire::{self as wire, BELOW, Wire};
use super::pair::{Pair, Route, Stack, same};
use super::send_credit::SendCredit;
use crate::context::Context;
use crate::datagram::Datagram;
use crate::error::{Error, Result};
use crate::executor::{ConnectionEnd, Executor};
use crate::world::{self, Connect, Work};
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan;
use stackline_core::program::Side;
use stackline_core::time::Instant;
use stackline_net::Packet;
use stackline_proto::blast::wire::{HEADER, Header, Kind};
use stackline_proto::datagram::Token;
use stackline_proto::ikp::options::BESIDE;
use stackline_proto::ikp::stack::{self as words, Verb};
use stackline_proto::ikp::{Client, Options, Server};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

static OPTIONS: [OptionTable; 10] = words::TABLE.only([
    "packet",
    "full",
    "full_nak",
    "partial",
    "selective",
    "size",
    "flight",
    "interval",
    "patience",
    "duplicates",
]);

static TABLE: StackTable = StackTable { options: &OPTIONS, files: false, ..words::TABLE };

/// The stack.
pub(super) static STACK: Stack =
    Stack { table: &TABLE, pair: |route, stack, seed, _| Ok(Rc::new(IkpPair::new(route, stack, seed)?)) };

/// The connections of a pair, one after the other.
#[derive(Debug)]
struct IkpPair {
    route: Route,
    options: Options,
    token: Token,
    wires: [Wire; 2],
    credits: [Rc<SendCredit>; 2],
    ends: [RefCell<Vec<Rc<End>>>; 2],
    /// Clients that came and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<End>>>,
    /// Clients so far, and those seen by the responder.
    dialled: Cell<u32>,
    seen: Cell<u32>,
}

impl IkpPair {
    /// # Errors
    /// An [`Error`] when the packets do not fit the path.
    pub(super) fn new(route: Route, stack: &plan::Stack, seed: u64) -> Result<Self> {
        let headers = (BELOW + HEADER) as u64 + u64::from(BESIDE);
        let packet = wire::room(&route, headers);
        let hint = "ask for a `packet` that the path carries, or give its links a larger `mtu`";
        let options = words::options(stack, packet.max(1)).map_err(|cause| Error::input(cause).hint(hint))?;
        Ok(Self {
            options,
            token: wire::token(seed),
            wires: Wire::both(&route, 0),
            credits: wire::credits(&route),
            ends: [RefCell::default(), RefCell::default()],
            backlog: RefCell::default(),
            dialled: Cell::new(0),
            seen: Cell::new(0),
            route,
        })
    }

    fn end(&self, side: Side, number: u32, role: end::Role) -> Rc<End> {
        let at = side.index();
        let end = End::new(self.wires[at], &self.credits[at], (side, self.route.endpoint(side)), number, role);
        let end = Rc::new(end);
        self.ends[at].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn find(&self, number: u32, side: Side) -> Option<Rc<End>> {
        self.ends[side.index()].borrow().iter().rev().find(|end| end.number() == number).map(Rc::clone)
    }

    fn dial(&self) -> Rc<End> {
        let number = self.dialled.replace(self.dialled.get() + 1);
        let client = Client::new(&self.options, number, 0);
        self.end(Side::Initiator, number, end::Role::Client(Box::new(client)))
    }

    fn accept(&self) -> Option<Rc<End>> {
        self.backlog.borrow_mut().pop_front()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        words::settings(&self.options).into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}

impl Pair for IkpPair {
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
        let Some(arrived) = wire.read(&packet.payload) else { return };
        if side != Side::Responder || arrived.header.kind != Kind::Send {
            return;
        }
        if number >= self.seen.get() {
            self.seen.set(number + 1);
            let server = Server::new(&self.options, number);
            let end = self.end(side, number, end::Role::Server(Box::new(server)));
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            return end.arrived(&packet.payload, executor);
        }
        // Of a connection that is over, whose last reply was lost.
        let Header { blast, round, .. } = arrived.header;
        if let Some((Verb::Close | Verb::Closing, ..)) = Verb::read(arrived.body) {
            let reply = Header { blast, round, check: u32::from(round), ..Header::new(Kind::Reply, number) };
            executor.send(wire.control(&reply, Vec::new()));
        }
    }

    fn timer(&self, number: u32, side: Side, executor: &Rc<Executor>) {
        if let Some(end) = self.find(number, side) {
            end.rang(executor);
        }
    }

    /// Lets go of an end that is over.
    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        self.ends[end.side().index()].borrow_mut().retain(|known| !same(known, &end));
    }

    fn wants_departures(&self) -> bool {
        true
    }

    fn departed(&self, side: Side, at: Instant, bytes: u32, executor: &Executor) {
        if self.credits[side.index()].departed(at, bytes) {
            self.ends[side.index()].borrow().iter().for_each(|end| end.departed(executor));
        }
    }
}

impl Connect for IkpPair {
    type Service = Calls;

    async fn connect(self: &Rc<Self>, context: &Rc<Context>) -> Result<Calls> {
        Calls::connect(self, context).await
    }

    async fn accept(self: &Rc<Self>, context: &Rc<Context>, _first: bool) -> Result<Calls> {
        Calls::accept(self, context).await
    }
}
