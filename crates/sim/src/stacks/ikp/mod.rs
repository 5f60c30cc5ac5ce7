//! `ikp`: the machines of `proto::ikp` over UDP, packet by packet as in the live world.
//!
//! The machines go on by themselves, as if a kernel ran them: a peer that does something else still says that a message is
//! pending.

mod calls;
mod end;

pub(super) use calls::Calls;
pub(crate) use end::End;

use super::blast::wire::{self, BELOW, Wire};
use super::outlet::Outlet;
use super::{Route, place};
use crate::datagram::Datagram;
use crate::error::{Error, Result};
use crate::world::World;
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan::Stack;
use stackline_core::program::Side;
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

pub(super) static TABLE: StackTable = StackTable { options: &OPTIONS, files: false, ..words::TABLE };

/// The connections of a pair, one after the other.
#[derive(Debug)]
pub(crate) struct IkpPair {
    pub(crate) route: Route,
    options: Options,
    token: Token,
    wires: [Wire; 2],
    outlets: [Rc<Outlet>; 2],
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
    pub(super) fn new(route: Route, stack: &Stack, seed: u64) -> Result<Self> {
        let headers = (BELOW + HEADER) as u64 + u64::from(BESIDE);
        let packet = wire::room(&route, headers);
        let hint = "ask for a `packet` that the path carries, or give its links a larger `mtu`";
        let options = words::options(stack, packet.max(1)).map_err(|cause| Error::input(cause).hint(hint))?;
        Ok(Self {
            options,
            token: wire::token(seed),
            wires: Wire::both(&route, 0),
            outlets: wire::outlets(&route),
            ends: [RefCell::default(), RefCell::default()],
            backlog: RefCell::default(),
            dialled: Cell::new(0),
            seen: Cell::new(0),
            route,
        })
    }

    fn end(&self, side: Side, number: u32, role: end::Role) -> Rc<End> {
        let at = place(side);
        let end = End::new(self.wires[at], &self.outlets[at], (side, self.route.endpoint(side)), number, role);
        let end = Rc::new(end);
        self.ends[at].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn find(&self, number: u32, side: Side) -> Option<Rc<End>> {
        self.ends[place(side)].borrow().iter().rev().find(|end| end.number() == number).map(Rc::clone)
    }

    pub(super) fn arrived(&self, side: Side, packet: &Packet<Datagram>, world: &World) {
        let number = packet.payload.connection;
        if let Some(end) = self.find(number, side) {
            return end.arrived(&packet.payload, world);
        }
        let wire = &self.wires[place(side)];
        let Some(arrived) = wire.read(&packet.payload) else { return };
        if side != Side::Responder || arrived.header.kind != Kind::Send {
            return;
        }
        if number >= self.seen.get() {
            self.seen.set(number + 1);
            let server = Server::new(&self.options, number);
            let end = self.end(side, number, end::Role::Server(Box::new(server)));
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            return end.arrived(&packet.payload, world);
        }
        // Of a connection that is over, whose last reply was lost.
        let Header { blast, round, .. } = arrived.header;
        if let Some((Verb::Close | Verb::Closing, ..)) = Verb::read(arrived.body) {
            let reply = Header { blast, round, check: u32::from(round), ..Header::new(Kind::Reply, number) };
            world.send(wire.control(&reply, Vec::new()));
        }
    }

    pub(super) fn timer(&self, number: u32, side: Side, world: &World) {
        if let Some(end) = self.find(number, side) {
            end.rang(world);
        }
    }

    pub(super) fn departed(&self, side: Side, at: stackline_core::time::Instant, bytes: u32, world: &World) {
        if self.outlets[place(side)].departed(at, bytes) {
            self.ends[place(side)].borrow().iter().for_each(|end| end.departed(world));
        }
    }

    /// Lets go of an end that is over.
    pub(super) fn forget(&self, end: &Rc<End>) {
        self.ends[place(end.side())].borrow_mut().retain(|known| !Rc::ptr_eq(known, end));
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
