//! The TCP stacks: pairs, their connections one after the other, and the two ends of each. Which machine an end is, Linux's
//! way or smoltcp, is decided here and nowhere else.

use super::end::{self, Got, Introductions, Streams};
use super::segments::{ACK, Fields, SYN};
use super::{Route, linux_tcp, other, place, smol};
use crate::datagram::Datagram;
use crate::error::Result;
use crate::trace::{Info, Log};
use crate::world::{Timer, World};
use stackline_core::catalogue::Mapping;
use stackline_core::plan::Stack;
use stackline_core::program::Side;
use stackline_core::record::Transport;
use stackline_core::time::Instant;
use stackline_events::Keyword;
use stackline_net::{Ecn, Node, Packet, Segments as Sizes};
use stackline_proto::tcp::{Facts, Flags, State};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

/// What operations are to a TCP.
pub(super) const MAPPING: &[Mapping] = &[
    Mapping {
        operation: "ConnectRequest",
        services: "SYN, SYN-ACK, ACK, then 16 bytes of introduction (in procedures without data: on the first connection only)",
    },
    Mapping { operation: "AwaitConnectIndication", services: "the same, from the other side" },
    Mapping { operation: "DataRequest", services: "the whole unit into the send buffer" },
    Mapping {
        operation: "AwaitDataIndication",
        services: "out of the receive buffer until the unit is there; what is ahead serves the next unit",
    },
    Mapping { operation: "RPCCall", services: "the request into the send buffer, the response out of the other" },
    Mapping { operation: "RPCAwaitCallInd, RPCReturn", services: "the same, from the other side" },
    Mapping { operation: "StartBulkGet, StartBulkPut", services: "1 byte" },
    Mapping { operation: "StopBulkGet", services: "none: the last unit has arrived" },
    Mapping { operation: "AwaitStopBulkGet", services: "Nagle's algorithm off, so that it holds no last segment back" },
    Mapping { operation: "StopBulkPut", services: "Nagle's algorithm off, 1 byte that confirms the arrival" },
    Mapping { operation: "AwaitStopBulkPut", services: "that byte" },
    Mapping { operation: "end of stream (time limit)", services: "FIN" },
    Mapping { operation: "DisconnectRequest", services: "FIN (RST when there are bytes nobody has taken)" },
    Mapping { operation: "AwaitDisconnectIndication", services: "FIN from the peer, then the own" },
];

static INFO: Keyword = Keyword::new("TCP_INFO");

/// Ports of initiators.
const EPHEMERAL: (u32, u32) = (32_768, 28_232);
/// First of the responders' ports.
const LISTENING: (u32, u32) = (1024, 31_000);

/// Who sends to whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) pair: u32,
    pub(super) connection: u32,
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) side: Side,
}

impl Wire {
    pub(super) const fn packet(&self, bytes: usize, payload: Datagram) -> Packet<Datagram> {
        let (from, to, segments) = (self.from, self.to, Sizes::one(bytes as u32));
        Packet { number: 0, from, to, flow: self.pair, ecn: Ecn::NotCapable, segments, payload }
    }
}

/// One end's protocol.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and on its own in an end")]
enum Machine {
    Linux(linux_tcp::Machine),
    Smoltcp(Box<smol::Machine>),
}

/// Calls the same of both machines.
macro_rules! both {
    ($machine:expr, $m:ident => $call:expr) => {
        match $machine {
            Machine::Linux($m) => $call,
            Machine::Smoltcp($m) => $call,
        }
    };
}

/// The connections of a pair, one after the other.
#[derive(Debug)]
pub(crate) struct TcpPair {
    pub(crate) route: Route,
    stack: Stack,
    seed: u64,
    introductions: Introductions,
    ends: [RefCell<Vec<Rc<End>>>; 2],
    /// What is left of ends that are over, for those to come.
    spare: [RefCell<Vec<Machine>>; 2],
    /// Connections that came and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<End>>>,
    /// Connections asked for so far, and seen by the responder.
    dialled: Cell<u32>,
    seen: Cell<u32>,
}

impl TcpPair {
    pub(super) fn new(route: Route, stack: &Stack, seed: u64, introduces: bool) -> Self {
        Self {
            route,
            stack: stack.clone(),
            seed,
            introductions: Introductions::new(introduces),
            ends: [RefCell::default(), RefCell::default()],
            spare: [RefCell::default(), RefCell::default()],
            backlog: RefCell::default(),
            dialled: Cell::new(0),
            seen: Cell::new(0),
        }
    }

    /// Ports of initiator and responder.
    const fn ports(&self, connection: u32) -> [u16; 2] {
        let initiator = EPHEMERAL.0 + (self.route.pair.wrapping_mul(7919).wrapping_add(connection)) % EPHEMERAL.1;
        let responder = LISTENING.0 + self.route.pair % LISTENING.1;
        [initiator as u16, responder as u16]
    }

    fn end(&self, connection: u32, side: Side, now: Instant) -> Rc<End> {
        let spare = self.spare[place(side)].borrow_mut().pop();
        let machine = spare.unwrap_or_else(|| self.machine(side, now));
        let end = Rc::new(End::new(self, connection, side, machine));
        self.ends[place(side)].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn machine(&self, side: Side, now: Instant) -> Machine {
        let path = u32::try_from(self.route.mtu).unwrap_or(65_535).clamp(128, 65_535);
        let mtu = self.stack.number("mss").map_or(path, |mss| path.min(mss as u32 + 40));
        let seed = self.seed ^ place(side) as u64;
        if self.stack.name == smol::TABLE.name {
            Machine::Smoltcp(Box::new(smol::Machine::new(&self.stack, mtu, seed, self.route.node(side), now)))
        } else {
            Machine::Linux(linux_tcp::Machine::new(&self.stack, mtu, seed, now))
        }
    }

    fn wire(&self, connection: u32, side: Side) -> Wire {
        let (from, to) = (self.route.node(side), self.route.node(other(side)));
        Wire { pair: self.route.pair, connection, from, to, side }
    }

    fn find(&self, connection: u32, side: Side) -> Option<Rc<End>> {
        self.ends[place(side)].borrow().iter().rev().find(|end| end.wire.connection == connection).map(Rc::clone)
    }

    pub(super) fn arrived(&self, side: Side, packet: &Packet<Datagram>, world: &Rc<World>) {
        let connection = packet.payload.connection;
        if let Some(end) = self.find(connection, side) {
            return end.arrived(&packet.payload, world);
        }
        if side == Side::Responder && dials(&packet.payload) {
            if connection < self.seen.get() {
                return;
            }
            self.seen.set(connection + 1);
            let end = self.end(connection, side, world.now());
            end.listen(self.ports(connection)[1], world);
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            end.arrived(&packet.payload, world);
        } else {
            let wire = self.wire(connection, side);
            let smoltcp = self.stack.name == smol::TABLE.name;
            let answer = if smoltcp { smol::answer } else { linux_tcp::answer };
            if let Some(answer) = answer(&wire, &packet.payload) {
                world.send(answer);
            }
        }
    }

    /// Tells of every connection whose facts have changed, or on which something is under way; how many.
    pub(super) fn look(&self, at: Instant, log: &Log) -> usize {
        let of_side = |ends: &RefCell<Vec<Rc<End>>>| ends.borrow().iter().filter(|end| end.look(at, log)).count();
        self.ends.iter().map(of_side).sum()
    }

    pub(super) fn timer(&self, connection: u32, side: Side, world: &Rc<World>) {
        if let Some(end) = self.find(connection, side) {
            end.rang(world);
        }
    }

    /// Lets go of an end that is over, and keeps its buffers for the next one.
    pub(super) fn forget(&self, end: Rc<End>) {
        let side = end.side;
        let mut ends = self.ends[place(side)].borrow_mut();
        if let Some(at) = ends.iter().position(|other| Rc::ptr_eq(other, &end)) {
            ends.swap_remove(at);
        }
        if let Ok(end) = Rc::try_unwrap(end)
            && let Machine::Smoltcp(mut machine) = end.machine.into_inner()
        {
            machine.renew(&self.stack);
            self.spare[place(side)].borrow_mut().push(Machine::Smoltcp(machine));
        }
    }
}

/// What the machine knows of itself, as it is told.
fn info(facts: &Facts) -> Info {
    let mss = u64::from(facts.mss);
    Info {
        cwnd_bytes: Some(u64::from(facts.window) * mss),
        in_flight_bytes: Some(facts.in_flight),
        rtt: Some(facts.rtt),
        retransmits: facts.retransmits,
        busy: Some(facts.busy),
        receive_window_limited: Some(facts.receive_window_limited),
        send_buffer_limited: Some(facts.send_buffer_limited),
        unsent_bytes: Some(facts.unsent),
        receive_queue_bytes: Some(facts.waiting),
        send_window_bytes: Some(facts.peer_window),
        mss_bytes: Some(mss),
        acked_bytes: Some(facts.bytes_acked),
    }
}

/// Whether it asks for a connection.
fn dials(datagram: &Datagram) -> bool {
    match datagram.segment() {
        Some(segment) => segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK),
        None => Fields::of(datagram.header()).flags & (SYN | ACK) == SYN,
    }
}

impl Streams for TcpPair {
    fn introductions(&self) -> &Introductions {
        &self.introductions
    }

    fn dial(&self, world: &Rc<World>) -> Result<end::StreamEnd> {
        let connection = self.dialled.get();
        self.dialled.set(connection + 1);
        let end = self.end(connection, Side::Initiator, world.now());
        end.dial(self.ports(connection), world);
        end.touch(world);
        Ok(end::StreamEnd::Tcp(end))
    }

    fn accept(&self) -> Option<end::StreamEnd> {
        let mut backlog = self.backlog.borrow_mut();
        let ready = backlog.iter().position(|end| !matches!(end.state(), State::Listen | State::SynReceived))?;
        backlog.remove(ready).map(end::StreamEnd::Tcp)
    }
}

/// One end of a connection.
pub(crate) struct End {
    pub(super) touched: Cell<bool>,
    wire: Wire,
    side: Side,
    endpoint: u32,
    /// The application has let go of it.
    orphan: Cell<bool>,
    /// The application waits for room in the send buffer.
    wants_room: Cell<bool>,
    /// The earliest timer that has not come yet.
    alarm: Cell<Option<Instant>>,
    machine: RefCell<Machine>,
    /// What it told of itself last, while the run is traced.
    looked: Cell<Facts>,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "end {} of connection {} of pair {}", place(self.side), self.wire.connection, self.wire.pair)
    }
}

impl End {
    fn new(pair: &TcpPair, connection: u32, side: Side, machine: Machine) -> Self {
        Self {
            touched: Cell::new(false),
            wire: pair.wire(connection, side),
            side,
            endpoint: pair.route.endpoint(side),
            orphan: Cell::new(false),
            wants_room: Cell::new(false),
            alarm: Cell::new(None),
            machine: RefCell::new(machine),
            looked: Cell::new(Facts::default()),
        }
    }

    fn dial(&self, ports: [u16; 2], world: &World) {
        match &mut *self.machine.borrow_mut() {
            Machine::Linux(machine) => machine.dial(world.now(), ports, world.log.is_some()),
            Machine::Smoltcp(machine) => machine.dial(self.wire.to, ports),
        }
    }

    fn listen(&self, port: u16, world: &World) {
        match &mut *self.machine.borrow_mut() {
            Machine::Linux(machine) => machine.listen(world.now(), port, world.log.is_some()),
            Machine::Smoltcp(machine) => machine.listen(port),
        }
    }

    fn state(&self) -> State {
        both!(&*self.machine.borrow(), machine => machine.state())
    }

    /// Whether the connection came about; nothing while that is not known.
    pub(super) fn answered(&self) -> Option<bool> {
        match self.state() {
            State::SynSent | State::SynReceived => None,
            State::Closed => Some(false),
            _ => Some(true),
        }
    }

    /// There may be something to send.
    fn touch(self: &Rc<Self>, world: &World) {
        if !self.touched.replace(true) {
            world.touch(end::End::Tcp(Rc::clone(self)));
        }
    }

    /// Nobody needs it any more; what a kernel would still answer in TIME-WAIT its pair answers.
    pub(super) fn is_over(&self) -> bool {
        self.orphan.get() && matches!(self.state(), State::Closed | State::TimeWait)
    }

    fn look(&self, at: Instant, log: &Log) -> bool {
        let Machine::Linux(machine) = &*self.machine.borrow() else { return false };
        let Some(now) = machine.facts(at) else { return false };
        let before = self.looked.replace(now);
        let changed = (now.bytes_acked, now.bytes_received) != (before.bytes_acked, before.bytes_received);
        let tells = changed || now.in_flight + now.unsent + now.waiting > 0;
        if tells {
            log.info(&INFO, (self.wire.pair, self.side), at, &info(&before), &info(&now));
        }
        tells
    }

    /// Its pair's number.
    pub(super) const fn pair(&self) -> u32 {
        self.wire.pair
    }

    // --- the network's side ---

    fn arrived(self: &Rc<Self>, datagram: &Datagram, world: &Rc<World>) {
        let mut machine = self.machine.borrow_mut();
        let state = both!(&*machine, machine => machine.state());
        match &mut *machine {
            Machine::Linux(machine) => machine.arrived(datagram, world.now()),
            Machine::Smoltcp(machine) => machine.arrived(&self.wire, datagram, world),
        }
        let readable = both!(&*machine, machine => machine.readable());
        if self.orphan.get() && readable {
            // Nobody will take it: a kernel resets.
            both!(&mut *machine, machine => machine.abort());
        }
        let has_room = || match &*machine {
            Machine::Linux(machine) => machine.has_room(),
            Machine::Smoltcp(_) => true,
        };
        let changed = both!(&*machine, machine => machine.state()) != state;
        let useful = readable || changed || (self.wants_room.get() && has_room());
        self.touch(world);
        if useful {
            world.wake(self.endpoint);
        }
    }

    fn rang(self: &Rc<Self>, world: &Rc<World>) {
        if self.alarm.get().is_some_and(|alarm| alarm <= world.now()) {
            self.alarm.set(None);
        }
        self.touch(world);
        // A timer may have given the connection up.
        world.wake(self.endpoint);
    }

    /// Sends what there is to send and sets the next timer.
    pub(super) fn flush(&self, world: &World) {
        let state = self.state();
        let next = both!(&mut *self.machine.borrow_mut(), machine => machine.flush(&self.wire, world));
        if self.state() != state {
            // A timer that came has given the connection up: whoever waits for it has to know.
            world.wake(self.endpoint);
        }
        if let Some(next) = next
            && self.alarm.get().is_none_or(|alarm| next < alarm)
        {
            self.alarm.set(Some(next));
            let Wire { pair, connection, .. } = self.wire;
            world.set_timer(next, Timer::End { pair, connection, side: self.side });
        }
    }

    // --- the application's side ---

    /// Puts so many bytes into the send buffer as there is room for; `None` when the connection is broken.
    pub(super) fn send(self: &Rc<Self>, bytes: usize, world: &World) -> Option<usize> {
        let sent = match &mut *self.machine.borrow_mut() {
            Machine::Linux(machine) => machine.send(bytes, world.now()),
            Machine::Smoltcp(machine) => machine.send(bytes),
        };
        let done = sent?;
        if done > 0 {
            // Within the system call, as a kernel does: Nagle's algorithm looks at each write by itself.
            self.flush(world);
        }
        self.wants_room.set(done < bytes);
        Some(done)
    }

    /// Takes at most so many bytes out of the receive buffer.
    pub(super) fn receive(self: &Rc<Self>, most: usize, world: &World) -> Got {
        let got = match &mut *self.machine.borrow_mut() {
            Machine::Linux(machine) => machine.receive(most, world.now()),
            Machine::Smoltcp(machine) => machine.receive(most),
        };
        if matches!(got, Got::Bytes(_)) {
            self.touch(world);
        }
        got
    }

    /// Closes the own half.
    pub(super) fn close(self: &Rc<Self>, world: &World) {
        both!(&mut *self.machine.borrow_mut(), machine => machine.close());
        self.touch(world);
    }

    /// The application lets go of it.
    pub(super) fn abandon(self: &Rc<Self>, world: &World) {
        self.orphan.set(true);
        both!(&mut *self.machine.borrow_mut(), machine => if machine.readable() { machine.abort() } else { machine.close() });
        self.touch(world);
    }

    /// What Nagle's algorithm holds back goes on at once.
    pub(super) fn push(self: &Rc<Self>, world: &World) {
        both!(&mut *self.machine.borrow_mut(), machine => machine.push());
        self.touch(world);
    }

    pub(super) fn transport(&self, now: Instant) -> Transport {
        match &*self.machine.borrow() {
            Machine::Linux(machine) => machine.transport(now),
            Machine::Smoltcp(machine) => machine.transport(),
        }
    }

    pub(super) fn settings(&self, now: Instant) -> BTreeMap<String, String> {
        match &*self.machine.borrow() {
            Machine::Linux(machine) => machine.settings(now),
            Machine::Smoltcp(machine) => machine.settings(),
        }
    }
}
