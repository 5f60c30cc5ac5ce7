//! `saw`, `window` and `blast`: the machines of `proto::blast` over UDP, packet by packet as in the live world.
//!
//! The machines go on by themselves, as if a kernel ran them: a peer that does something else still answers and is granted
//! what its buffer holds.

mod end;
mod transfers;

use end::End;
use transfers::Transfers;

use super::packet_wire::{self as wire, BELOW, Wire};
use super::pair::{Pair, Route, Stack, same};
use super::send_credit::SendCredit;
use crate::context::Context;
use crate::datagram::Datagram;
use crate::error::{Error, Result};
use crate::executor::{ConnectionEnd, Executor};
use crate::trace::Log;
use crate::world::{self, Connect, Work};
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan;
use stackline_core::program::Side;
use stackline_core::time::Instant;
use stackline_net::Packet;
use stackline_proto::blast::wire::{HEADER, Header, Kind, SEAL};
use stackline_proto::blast::{Connection, Options, stack as words};
use stackline_proto::datagram::Token;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

// There is no processor that could wait in two ways, no port that could be taken, and everything that travels is an IPv4
// packet: the options that say so are left out.
static SAW_OPTIONS: [OptionTable; 5] = words::SAW.only(["packet", "interval", "buffer", "patience", "sealed"]);
static WINDOW_OPTIONS: [OptionTable; 8] =
    words::WINDOW.only(["n", "packet", "interval", "buffer", "patience", "pacing", "rate", "sealed"]);
static BLAST_OPTIONS: [OptionTable; 14] = words::BLAST.only([
    "full",
    "full_nak",
    "partial",
    "selective",
    "size",
    "flight",
    "packet",
    "interval",
    "buffer",
    "patience",
    "pacing",
    "rate",
    "checked",
    "sealed",
]);

static SAW_TABLE: StackTable = StackTable { options: &SAW_OPTIONS, files: false, ..words::SAW };
static WINDOW_TABLE: StackTable = StackTable { options: &WINDOW_OPTIONS, files: false, ..words::WINDOW };
static BLAST_TABLE: StackTable = StackTable { options: &BLAST_OPTIONS, files: false, ..words::BLAST };

/// Stop-and-wait.
pub(super) static SAW: Stack = Stack { table: &SAW_TABLE, pair };
/// The sliding window.
pub(super) static WINDOW: Stack = Stack { table: &WINDOW_TABLE, pair };
/// Blasts.
pub(super) static BLAST: Stack = Stack { table: &BLAST_TABLE, pair };

fn pair(route: Route, stack: &plan::Stack, seed: u64, _introduces: bool) -> Result<Rc<dyn Pair>> {
    Ok(Rc::new(BlastPair::new(route, stack, seed)?))
}

fn options(stack: &plan::Stack, packet: u32) -> Result<Options, String> {
    words::options(stack, packet, stack.number("buffer").unwrap_or(words::GRANT))
}

/// The connections of a pair, one after the other.
#[derive(Debug)]
struct BlastPair {
    route: Route,
    name: String,
    options: Options,
    token: Token,
    wires: [Wire; 2],
    credits: [Rc<SendCredit>; 2],
    ends: [RefCell<Vec<Rc<End>>>; 2],
    /// Connections that came and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<End>>>,
    /// Connections asked for so far, and seen by the responder.
    dialled: Cell<u32>,
    seen: Cell<u32>,
}

impl BlastPair {
    /// # Errors
    /// An [`Error`] when the packets do not fit the path.
    pub(super) fn new(route: Route, stack: &plan::Stack, seed: u64) -> Result<Self> {
        let seal = if stack.flag("sealed") { SEAL as u32 } else { 0 };
        let headers = (BELOW + HEADER) as u64 + u64::from(seal);
        let packet = wire::room(&route, headers);
        let hint = "leave `packet` out for what the path carries, or give its links a larger `mtu`";
        if packet == 0 {
            let cause = format!("a path whose largest packet has {} B has no room behind {headers} B", route.mtu);
            return Err(Error::input(cause).hint(hint));
        }
        let options = options(stack, packet).map_err(|cause| Error::input(cause).hint(hint))?;
        Ok(Self {
            name: stack.name.clone(),
            options,
            token: wire::token(seed),
            wires: Wire::both(&route, seal),
            credits: wire::credits(&route),
            ends: [RefCell::default(), RefCell::default()],
            backlog: RefCell::default(),
            dialled: Cell::new(0),
            seen: Cell::new(0),
            route,
        })
    }

    fn end(&self, side: Side, number: u32, connection: Connection) -> Rc<End> {
        let at = side.index();
        let end = End::new(self.wires[at], &self.credits[at], (side, self.route.endpoint(side)), number, connection);
        let end = Rc::new(end);
        self.ends[at].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn find(&self, number: u32, side: Side) -> Option<Rc<End>> {
        self.ends[side.index()].borrow().iter().rev().find(|end| end.number() == number).map(Rc::clone)
    }

    fn dial(&self, executor: &Executor) -> Rc<End> {
        let number = self.dialled.replace(self.dialled.get() + 1);
        let connection = Connection::connect(executor.now(), &self.options, self.token, [0; 16], number);
        let end = self.end(Side::Initiator, number, connection);
        end.touch(executor);
        end
    }

    fn accept(&self) -> Option<Rc<End>> {
        self.backlog.borrow_mut().pop_front()
    }

    fn settings(&self, options: &Options) -> BTreeMap<String, String> {
        let sealed = self.wires[0].seal > 0;
        let sealed = ("sealed", if sealed { "on" } else { "off" }.to_string());
        let all = words::settings(&self.name, options).into_iter().chain([sealed]);
        all.map(|(name, value)| (name.to_string(), value)).collect()
    }
}

impl Pair for BlastPair {
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
        let kind = wire.read(&packet.payload).map(|arrived| arrived.header.kind);
        match kind {
            Some(Kind::Open) if side == Side::Responder && number >= self.seen.get() => {
                self.seen.set(number + 1);
                let connection = Connection::listen(&self.options, self.token, [0; 16]);
                let end = self.end(side, number, connection);
                self.backlog.borrow_mut().push_back(Rc::clone(&end));
                end.arrived(&packet.payload, executor);
            }
            // Of a connection that is over, whose last word was lost.
            Some(Kind::Close) => executor.send(wire.control(&Header::new(Kind::Closed, number), Vec::new())),
            _ => {}
        }
    }

    fn timer(&self, number: u32, side: Side, executor: &Rc<Executor>) {
        if let Some(end) = self.find(number, side) {
            end.rang(executor);
        }
    }

    fn sample(&self, at: Instant, log: &Log) -> usize {
        let of_side = |ends: &RefCell<Vec<Rc<End>>>| ends.borrow().iter().filter(|end| end.sample(at, log)).count();
        self.ends.iter().map(of_side).sum()
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

impl Connect for BlastPair {
    type Service = Transfers;

    async fn connect(self: &Rc<Self>, context: &Rc<Context>) -> Result<Transfers> {
        Transfers::connect(self, context).await
    }

    async fn accept(self: &Rc<Self>, context: &Rc<Context>, _first: bool) -> Result<Transfers> {
        Transfers::accept(self, context).await
    }
}
