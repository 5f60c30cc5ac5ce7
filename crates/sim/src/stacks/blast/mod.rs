//! `saw`, `window` and `blast`: the machines of `proto::blast` over UDP, packet by packet as in the live world.
//!
//! The machines go on by themselves, as if a kernel ran them: a peer that does something else still answers and is granted
//! what its buffer holds.

mod end;
mod transfers;
pub(super) mod wire;

pub(crate) use end::End;
pub(super) use transfers::Transfers;

use super::outlet::Outlet;
use super::{Route, place};
use crate::datagram::Datagram;
use crate::fault::Failure;
use crate::trace::Log;
use crate::world::World;
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan::Stack;
use stackline_core::program::Side;
use stackline_core::time::Instant;
use stackline_net::Packet;
use stackline_proto::blast::wire::{HEADER, Header, Kind, SEAL};
use stackline_proto::blast::{Connection, Options, stack as words};
use stackline_proto::datagram::Token;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wire::{BELOW, Wire};

/// The options of a stack that mean something here, in this order. There is no processor that could wait in two ways, no
/// port that could be taken, and everything that travels is an IPv4 packet.
pub(super) const fn kept<const N: usize>(table: &StackTable, names: [&str; N]) -> [OptionTable; N] {
    let mut kept = [table.options[0]; N];
    let mut at = 0;
    while at < N {
        let mut option = 0;
        while !same(table.options[option].name, names[at]) {
            option += 1;
        }
        kept[at] = table.options[option];
        at += 1;
    }
    kept
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

static SAW_OPTIONS: [OptionTable; 5] = kept(&words::SAW, ["packet", "interval", "buffer", "patience", "sealed"]);
static WINDOW_OPTIONS: [OptionTable; 8] =
    kept(&words::WINDOW, ["n", "packet", "interval", "buffer", "patience", "pacing", "rate", "sealed"]);
static BLAST_OPTIONS: [OptionTable; 14] = kept(
    &words::BLAST,
    [
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
    ],
);

pub(super) static SAW: StackTable = StackTable { options: &SAW_OPTIONS, files: false, ..words::SAW };
pub(super) static WINDOW: StackTable = StackTable { options: &WINDOW_OPTIONS, files: false, ..words::WINDOW };
pub(super) static BLAST: StackTable = StackTable { options: &BLAST_OPTIONS, files: false, ..words::BLAST };

/// What a transport record leaves out, and why.
pub(super) const UNTOLD: &[&str] = &["cwnd_segments", "send_buffer_limited_s"];

/// What a receiver grants where nothing is written.
const BUFFER: u64 = 4 << 20;

fn options(stack: &Stack, packet: u32) -> Result<Options, String> {
    words::options(stack, packet, stack.number("buffer").unwrap_or(BUFFER))
}

/// Whether the options go together, on whatever path.
///
/// # Errors
/// A [`Failure`] that names those that do not.
pub(super) fn check(stack: &Stack) -> Result<(), Failure> {
    let hint = "leave all but one of them out: full, full_nak, partial or selective";
    options(stack, u32::MAX).map(drop).map_err(|cause| Failure::new(cause).hint(hint))
}

/// The connections of a pair, one after the other.
#[derive(Debug)]
pub(crate) struct BlastPair {
    pub(crate) route: Route,
    name: String,
    options: Options,
    token: Token,
    wires: [Wire; 2],
    outlets: [Rc<Outlet>; 2],
    ends: [RefCell<Vec<Rc<End>>>; 2],
    /// Connections that came and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<End>>>,
    /// Connections asked for so far, and seen by the responder.
    dialled: Cell<u32>,
    seen: Cell<u32>,
}

impl BlastPair {
    /// # Errors
    /// A [`Failure`] when the packets do not fit the path.
    pub(super) fn new(route: Route, stack: &Stack, seed: u64) -> Result<Self, Failure> {
        let seal = if stack.flag("sealed") { SEAL as u32 } else { 0 };
        let headers = (BELOW + HEADER) as u64 + u64::from(seal);
        let packet = wire::room(&route, headers);
        let hint = "leave `packet` out for what the path carries, or give its links a larger `mtu`";
        if packet == 0 {
            let cause = format!("a path whose largest packet has {} B has no room behind {headers} B", route.mtu);
            return Err(Failure::new(cause).hint(hint));
        }
        let options = options(stack, packet).map_err(|cause| Failure::new(cause).hint(hint))?;
        Ok(Self {
            name: stack.name.clone(),
            options,
            token: wire::token(seed),
            wires: Wire::both(&route, seal),
            outlets: wire::outlets(&route),
            ends: [RefCell::default(), RefCell::default()],
            backlog: RefCell::default(),
            dialled: Cell::new(0),
            seen: Cell::new(0),
            route,
        })
    }

    fn end(&self, side: Side, number: u32, connection: Connection) -> Rc<End> {
        let at = place(side);
        let end = End::new(self.wires[at], &self.outlets[at], (side, self.route.endpoint(side)), number, connection);
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
        let kind = wire.read(&packet.payload).map(|arrived| arrived.header.kind);
        match kind {
            Some(Kind::Open) if side == Side::Responder && number >= self.seen.get() => {
                self.seen.set(number + 1);
                let connection = Connection::listen(&self.options, self.token, [0; 16]);
                let end = self.end(side, number, connection);
                self.backlog.borrow_mut().push_back(Rc::clone(&end));
                end.arrived(&packet.payload, world);
            }
            // Of a connection that is over, whose last word was lost.
            Some(Kind::Close) => world.send(wire.control(&Header::new(Kind::Closed, number), Vec::new())),
            _ => {}
        }
    }

    /// Tells of every connection on which something is under way or has happened; how many.
    pub(super) fn look(&self, at: Instant, log: &Log) -> usize {
        let of_side = |ends: &RefCell<Vec<Rc<End>>>| ends.borrow().iter().filter(|end| end.look(at, log)).count();
        self.ends.iter().map(of_side).sum()
    }

    pub(super) fn timer(&self, number: u32, side: Side, world: &World) {
        if let Some(end) = self.find(number, side) {
            end.rang(world);
        }
    }

    pub(super) fn departed(&self, side: Side, at: Instant, bytes: u32, world: &World) {
        if self.outlets[place(side)].departed(at, bytes) {
            self.ends[place(side)].borrow().iter().for_each(|end| end.departed(world));
        }
    }

    /// Lets go of an end that is over.
    pub(super) fn forget(&self, end: &Rc<End>) {
        self.ends[place(end.side())].borrow_mut().retain(|known| !Rc::ptr_eq(known, end));
    }

    fn dial(&self, world: &World) -> Rc<End> {
        let number = self.dialled.replace(self.dialled.get() + 1);
        let connection = Connection::connect(world.now(), &self.options, self.token, [0; 16], number);
        let end = self.end(Side::Initiator, number, connection);
        end.touch(world);
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
