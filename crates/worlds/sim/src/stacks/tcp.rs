//! The TCP stacks: pairs, their connections one after the other, and the two ends of each. Which machine an end is, Linux's
//! way or smoltcp, is decided here and nowhere else.

use super::byte_stream::{Got, Introductions, StreamEnd, Streams};
use super::pair::{Pair, Route, Stack, same};
use super::segments::{ACK, Fields, SYN};
use super::stream::Stream;
use super::tcp_wire::Wire;
use super::{linux_tcp, smol};
use crate::context::Context;
use crate::datagram::Datagram;
use crate::error::Result;
use crate::executor::{ConnectionEnd, Executor, Timer};
use crate::trace::{Info, Log};
use crate::world::{self, Connect, Work};
use stackline_core::plan;
use stackline_core::program::Side;
use stackline_core::record::Transport;
use stackline_core::time::Instant;
use stackline_events::Keyword;
use stackline_net::Packet;
use stackline_proto::tcp::{Facts, Flags, State};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

static INFO: Keyword = Keyword::new("TCP_INFO");

/// Ports of initiators.
const EPHEMERAL: (u32, u32) = (32_768, 28_232);
/// First of the responders' ports.
const LISTENING: (u32, u32) = (1024, 31_000);

/// One end's protocol.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the usual one, and on its own in an end"
)]
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
struct TcpPair {
    route: Route,
    stack: plan::Stack,
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

/// As Linux has it.
pub(super) static LINUX: Stack = Stack {
    table: &linux_tcp::TABLE,
    pair,
};
/// As smoltcp has it.
pub(super) static SMOLTCP: Stack = Stack {
    table: &smol::TABLE,
    pair,
};

#[expect(clippy::unnecessary_wraps, reason = "other stacks refuse")]
fn pair(route: Route, stack: &plan::Stack, seed: u64, introduces: bool) -> Result<Rc<dyn Pair>> {
    Ok(Rc::new(TcpPair::new(route, stack, seed, introduces)))
}

impl TcpPair {
    pub(super) fn new(route: Route, stack: &plan::Stack, seed: u64, introduces: bool) -> Self {
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
        let initiator = EPHEMERAL.0
            + (self.route.pair.wrapping_mul(7919).wrapping_add(connection)) % EPHEMERAL.1;
        let responder = LISTENING.0 + self.route.pair % LISTENING.1;
        [initiator as u16, responder as u16]
    }

    fn end(&self, connection: u32, side: Side, now: Instant) -> Rc<End> {
        let spare = self.spare[side.index()].borrow_mut().pop();
        let machine = spare.unwrap_or_else(|| self.machine(side, now));
        let end = Rc::new(End::new(self, connection, side, machine));
        self.ends[side.index()].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn machine(&self, side: Side, now: Instant) -> Machine {
        let path = u32::try_from(self.route.mtu)
            .unwrap_or(65_535)
            .clamp(68, 65_535);
        let mtu = self
            .stack
            .number("mss")
            .map_or(path, |mss| path.min(mss as u32 + 40));
        let seed = self.seed ^ side.index() as u64;
        if self.stack.name == smol::TABLE.name {
            Machine::Smoltcp(Box::new(smol::Machine::new(
                &self.stack,
                mtu,
                seed,
                self.route.node(side),
                now,
            )))
        } else {
            Machine::Linux(linux_tcp::Machine::new(
                &self.stack,
                mtu,
                self.route.marks,
                seed,
                now,
            ))
        }
    }

    fn wire(&self, connection: u32, side: Side) -> Wire {
        let (from, to) = (self.route.node(side), self.route.node(side.other()));
        Wire {
            pair: self.route.pair,
            connection,
            from,
            to,
            side,
        }
    }

    fn find(&self, connection: u32, side: Side) -> Option<Rc<End>> {
        self.ends[side.index()]
            .borrow()
            .iter()
            .rev()
            .find(|end| end.wire.connection == connection)
            .map(Rc::clone)
    }
}

impl Pair for TcpPair {
    fn route(&self) -> &Route {
        &self.route
    }

    fn spawn(self: Rc<Self>, context: Rc<Context>, replica: u32) -> Work {
        world::spawn(self, context, replica)
    }

    fn arrived(&self, side: Side, packet: &mut Packet<Datagram>, executor: &Rc<Executor>) {
        let connection = packet.payload.connection;
        if let Some(end) = self.find(connection, side) {
            return end.arrived(&packet.payload, executor);
        }
        if side == Side::Responder && dials(&packet.payload) {
            if connection < self.seen.get() {
                return;
            }
            self.seen.set(connection + 1);
            let end = self.end(connection, side, executor.now());
            end.listen(self.ports(connection)[1], executor);
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            end.arrived(&packet.payload, executor);
        } else {
            let wire = self.wire(connection, side);
            let smoltcp = self.stack.name == smol::TABLE.name;
            let answer = if smoltcp {
                smol::answer
            } else {
                linux_tcp::answer
            };
            if let Some(answer) = answer(&wire, &packet.payload) {
                executor.send(answer);
            }
        }
    }

    fn timer(&self, connection: u32, side: Side, executor: &Rc<Executor>) {
        if let Some(end) = self.find(connection, side) {
            end.rang(executor);
        }
    }

    fn sample(&self, at: Instant, log: &Log) -> usize {
        let of_side = |ends: &RefCell<Vec<Rc<End>>>| {
            ends.borrow()
                .iter()
                .filter(|end| end.sample(at, log))
                .count()
        };
        self.ends.iter().map(of_side).sum()
    }

    /// Lets go of an end that is over, and keeps its buffers for the next one.
    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        let side = end.side();
        let mut ends = self.ends[side.index()].borrow_mut();
        let Some(at) = ends.iter().position(|known| same(known, &end)) else {
            return;
        };
        let known = ends.swap_remove(at);
        drop(end);
        if let Ok(end) = Rc::try_unwrap(known)
            && let Machine::Smoltcp(mut machine) = end.machine.into_inner()
        {
            machine.renew(&self.stack);
            self.spare[side.index()]
                .borrow_mut()
                .push(Machine::Smoltcp(machine));
        }
    }
}

impl Connect for TcpPair {
    type Service = Stream<Rc<End>>;

    async fn connect(self: &Rc<Self>, context: &Rc<Context>) -> Result<Stream<Rc<End>>> {
        Stream::connect(&**self, context).await
    }

    async fn accept(
        self: &Rc<Self>,
        context: &Rc<Context>,
        _first: bool,
    ) -> Result<Stream<Rc<End>>> {
        Stream::accept(&**self, context).await
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
    type End = Rc<End>;

    fn introductions(&self) -> &Introductions {
        &self.introductions
    }

    fn dial(&self, executor: &Rc<Executor>) -> Result<Rc<End>> {
        let connection = self.dialled.get();
        self.dialled.set(connection + 1);
        let end = self.end(connection, Side::Initiator, executor.now());
        end.dial(self.ports(connection), executor);
        end.touch(executor);
        Ok(end)
    }

    fn accept(&self) -> Option<Rc<End>> {
        let mut backlog = self.backlog.borrow_mut();
        let ready = backlog
            .iter()
            .position(|end| !matches!(end.state(), State::Listen | State::SynReceived))?;
        backlog.remove(ready)
    }
}

/// One end of a connection.
pub(crate) struct End {
    touched: Cell<bool>,
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
        write!(
            f,
            "end {} of connection {} of pair {}",
            self.side.index(),
            self.wire.connection,
            self.wire.pair
        )
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

    fn dial(&self, ports: [u16; 2], executor: &Executor) {
        match &mut *self.machine.borrow_mut() {
            Machine::Linux(machine) => machine.dial(executor.now(), ports, executor.log.is_some()),
            Machine::Smoltcp(machine) => machine.dial(self.wire.to, ports),
        }
    }

    fn listen(&self, port: u16, executor: &Executor) {
        match &mut *self.machine.borrow_mut() {
            Machine::Linux(machine) => machine.listen(executor.now(), port, executor.log.is_some()),
            Machine::Smoltcp(machine) => machine.listen(port),
        }
    }

    fn state(&self) -> State {
        both!(&*self.machine.borrow(), machine => machine.state())
    }

    /// Whether there is enough room to wake a writer.
    fn has_room(&self) -> bool {
        match &*self.machine.borrow() {
            Machine::Linux(machine) => machine.has_room(),
            Machine::Smoltcp(_) => true,
        }
    }

    /// There may be something to send.
    fn touch(self: &Rc<Self>, executor: &Executor) {
        if !self.touched.replace(true) {
            let end: Rc<Self> = Rc::clone(self);
            executor.touch(end);
        }
    }

    fn sample(&self, at: Instant, log: &Log) -> bool {
        let Machine::Linux(machine) = &*self.machine.borrow() else {
            return false;
        };
        let Some(now) = machine.facts(at) else {
            return false;
        };
        let before = self.looked.replace(now);
        let changed =
            (now.bytes_acked, now.bytes_received) != (before.bytes_acked, before.bytes_received);
        let tells = changed || now.in_flight + now.unsent + now.waiting > 0;
        if tells {
            log.info(
                &INFO,
                (self.wire.pair, self.side),
                at,
                &info(&before),
                &info(&now),
            );
        }
        tells
    }

    // --- the network's side ---

    fn arrived(self: &Rc<Self>, datagram: &Datagram, executor: &Rc<Executor>) {
        let mut machine = self.machine.borrow_mut();
        let state = both!(&*machine, machine => machine.state());
        match &mut *machine {
            Machine::Linux(machine) => machine.arrived(datagram, executor.now()),
            Machine::Smoltcp(machine) => machine.arrived(&self.wire, datagram, executor),
        }
        let readable = both!(&*machine, machine => machine.readable());
        if self.orphan.get() && readable {
            // Nobody will take it: a kernel resets.
            both!(&mut *machine, machine => machine.abort());
        }
        let changed = both!(&*machine, machine => machine.state()) != state;
        drop(machine);
        let useful = readable || changed || (self.wants_room.get() && self.has_room());
        self.touch(executor);
        if useful {
            executor.wake(self.endpoint);
        }
    }

    fn rang(self: &Rc<Self>, executor: &Rc<Executor>) {
        if self
            .alarm
            .get()
            .is_some_and(|alarm| alarm <= executor.now())
        {
            self.alarm.set(None);
        }
        self.touch(executor);
        // A timer may have given the connection up.
        executor.wake(self.endpoint);
    }

    // --- the application's side ---
}

impl ConnectionEnd for End {
    fn pair(&self) -> u32 {
        self.wire.pair
    }

    fn side(&self) -> Side {
        self.side
    }

    fn untouch(&self) {
        self.touched.set(false);
    }

    fn flush(&self, executor: &Executor) {
        let (state, waits) = (self.state(), self.wants_room.get() && !self.has_room());
        let next =
            both!(&mut *self.machine.borrow_mut(), machine => machine.flush(&self.wire, executor));
        if self.state() != state || (waits && self.has_room()) {
            // A timer that came has given the connection up, or what left has made room: whoever waits for it has to know.
            executor.wake(self.endpoint);
        }
        if let Some(next) = next
            && self.alarm.get().is_none_or(|alarm| next < alarm)
        {
            self.alarm.set(Some(next));
            let Wire {
                pair, connection, ..
            } = self.wire;
            executor.set_timer(
                next,
                Timer::End {
                    pair,
                    connection,
                    side: self.side,
                },
            );
        }
    }

    fn is_over(&self) -> bool {
        self.orphan.get() && matches!(self.state(), State::Closed | State::TimeWait)
    }
}

impl StreamEnd for Rc<End> {
    fn answered(&self) -> Option<bool> {
        match self.state() {
            State::SynSent | State::SynReceived => None,
            State::Closed => Some(false),
            _ => Some(true),
        }
    }

    fn send(&self, bytes: usize, executor: &Executor) -> Option<usize> {
        let sent = match &mut *self.machine.borrow_mut() {
            Machine::Linux(machine) => machine.send(bytes, executor.now()),
            Machine::Smoltcp(machine) => machine.send(bytes),
        };
        let done = sent?;
        if done > 0 {
            // Within the system call, as a kernel does: Nagle's algorithm looks at each write by itself.
            self.flush(executor);
        }
        self.wants_room.set(done < bytes);
        Some(done)
    }

    fn receive(&self, most: usize, executor: &Executor) -> Got {
        let got = match &mut *self.machine.borrow_mut() {
            Machine::Linux(machine) => machine.receive(most, executor.now()),
            Machine::Smoltcp(machine) => machine.receive(most),
        };
        if matches!(got, Got::Bytes(_)) {
            self.touch(executor);
        }
        got
    }

    fn close(&self, executor: &Executor) {
        both!(&mut *self.machine.borrow_mut(), machine => machine.close());
        self.touch(executor);
    }

    fn abandon(&self, executor: &Executor) {
        self.orphan.set(true);
        both!(&mut *self.machine.borrow_mut(), machine => if machine.readable() { machine.abort() } else { machine.close() });
        self.touch(executor);
    }

    fn push(&self, executor: &Executor) {
        both!(&mut *self.machine.borrow_mut(), machine => machine.push());
        self.touch(executor);
    }

    fn transport(&self, now: Instant) -> Transport {
        match &*self.machine.borrow() {
            Machine::Linux(machine) => machine.transport(now),
            Machine::Smoltcp(machine) => machine.transport(),
        }
    }

    fn settings(&self, now: Instant) -> BTreeMap<String, String> {
        match &*self.machine.borrow() {
            Machine::Linux(machine) => machine.settings(now),
            Machine::Smoltcp(machine) => machine.settings(),
        }
    }

    fn notes(&self, now: Instant) -> Vec<String> {
        match &*self.machine.borrow() {
            Machine::Linux(machine) => machine.notes(now),
            Machine::Smoltcp(_) => Vec::new(),
        }
    }
}
