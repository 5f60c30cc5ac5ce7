//! The TCP stacks `tcp` and `smoltcp`. A pair (an initiator and a responder) has connections one after the other; each connection has
//! two ends, and each end has a TCP machine, Linux's or smoltcp's. Only this file distinguishes between the two machines.

use super::byte_stream::{Got, Introductions, SimStreamPair, StreamEnd};
use super::pair::{SimConnectionPair, SimEndpointPair, SimPairRoute, SimStack, is_same_end};
use super::segments::{ACK, SYN, SimTcpHeaderFields};
use super::tcp_wire::SimTcpWire;
use super::{linux_tcp, smol};
use crate::connection_info::ConnectionInfo;
use crate::datagram::SimDatagram;
use crate::error::Result;
use crate::run_state::{ConnectionEnd, SimRunState, Timer};
use crate::run_trace::SimTraceLog;
use stackline_core::catalogue::is_over_ipv6;
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_events::catalogue::families::ConnectionReportEvent;
use stackline_net::NetworkPacket;
use stackline_proto::tcp::segment::IPV6_MORE;
use stackline_proto::tcp::{TcpFacts, TcpFlags, TcpState};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

/// Ports of initiators: the first, and how many there are.
const EPHEMERAL: (u32, u32) = (32_768, 28_232);
/// Ports of responders: the first, and how many there are.
const LISTENING: (u32, u32) = (1024, 31_000);

/// The TCP machine of one end.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one, and an end has only one"
)]
enum SimTcpMachine {
    Linux(linux_tcp::SimLinuxTcpMachine),
    Smoltcp(Box<smol::SmolTcpMachine>),
}

/// Evaluates `$call` with `$m` bound to whichever machine it is.
macro_rules! both {
    ($machine:expr, $m:ident => $call:expr) => {
        match $machine {
            SimTcpMachine::Linux($m) => $call,
            SimTcpMachine::Smoltcp($m) => $call,
        }
    };
}

/// The connections of a pair, one after the other.
#[derive(Debug)]
pub(super) struct TcpPair {
    route: SimPairRoute,
    stack: plan::Stack,
    seed: u64,
    introductions: Introductions,
    /// By side: further endpoints that use the connections, where pairs share them.
    sharers: [Option<Rc<[u32]>>; 2],
    ends: [RefCell<Vec<Rc<SimTcpEnd>>>; 2],
    /// By side: machines of ends that are over, whose buffers later ends reuse (smoltcp's only).
    spare: [RefCell<Vec<SimTcpMachine>>; 2],
    /// Connections that reached the responder and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<SimTcpEnd>>>,
    /// How many connections the initiator has dialled.
    dialled: Cell<u32>,
    /// How many of them the responder has seen; a SYN of an earlier one is a duplicate.
    seen: Cell<u32>,
}

/// The stack `tcp`, which behaves as Linux's TCP does.
pub(super) static LINUX: SimStack = SimStack {
    table: &linux_tcp::TABLE,
    group: None,
    pair,
};
/// The stack `smoltcp`.
pub(super) static SMOLTCP: SimStack = SimStack {
    table: &smol::TABLE,
    group: None,
    pair,
};

#[expect(clippy::unnecessary_wraps, reason = "other stacks refuse")]
fn pair(
    route: SimPairRoute,
    stack: &plan::Stack,
    seed: u64,
    introduces: bool,
) -> Result<Rc<dyn SimEndpointPair>> {
    Ok(Rc::new(TcpPair::new(route, stack, seed, introduces)))
}

impl TcpPair {
    pub(super) fn new(
        route: SimPairRoute,
        stack: &plan::Stack,
        seed: u64,
        introduces: bool,
    ) -> Self {
        Self {
            route,
            stack: stack.clone(),
            seed,
            introductions: Introductions::new(introduces),
            sharers: [None, None],
            ends: [RefCell::default(), RefCell::default()],
            spare: [RefCell::default(), RefCell::default()],
            backlog: RefCell::default(),
            dialled: Cell::new(0),
            seen: Cell::new(0),
        }
    }

    /// The same pair, whose connections further endpoints use: by side.
    pub(super) fn shared_with(mut self, sharers: [Vec<u32>; 2]) -> Self {
        self.sharers = sharers.map(|sharers| (!sharers.is_empty()).then(|| sharers.into()));
        self
    }

    /// The ports of initiator and responder on a connection. 7919 is prime: it spreads the pairs over the range.
    const fn ports(&self, connection: u32) -> [u16; 2] {
        let initiator = EPHEMERAL.0
            + (self.route.pair.wrapping_mul(7919).wrapping_add(connection)) % EPHEMERAL.1;
        let responder = LISTENING.0 + self.route.pair % LISTENING.1;
        [initiator as u16, responder as u16]
    }

    fn end(&self, connection: u32, side: PairSide, now: Instant) -> Rc<SimTcpEnd> {
        let spare = self.spare[side.index()].borrow_mut().pop();
        let machine = spare.unwrap_or_else(|| self.machine(side, now));
        let end = Rc::new(SimTcpEnd::new(self, connection, side, machine));
        self.ends[side.index()].borrow_mut().push(Rc::clone(&end));
        end
    }

    /// A new machine. `mss` excludes the 40 bytes of IPv4 and TCP headers that the MTU includes; what an IPv6 header has more is not the
    /// machine's.
    fn machine(&self, side: PairSide, now: Instant) -> SimTcpMachine {
        let path = u32::try_from(self.route.mtu)
            .unwrap_or(65_535)
            .clamp(68, 65_535);
        let more = if is_over_ipv6(&self.stack) {
            IPV6_MORE
        } else {
            0
        };
        let path = path - more;
        let mtu = self
            .stack
            .number("mss")
            .map_or(path, |mss| path.min(mss as u32 + 40));
        let seed = self.seed ^ side.index() as u64;
        if self.stack.name == smol::TABLE.name {
            SimTcpMachine::Smoltcp(Box::new(smol::SmolTcpMachine::new(
                &self.stack,
                mtu,
                seed,
                self.route.node(side),
                now,
            )))
        } else {
            SimTcpMachine::Linux(linux_tcp::SimLinuxTcpMachine::new(
                &self.stack,
                mtu,
                self.route.marks,
                seed,
                now,
            ))
        }
    }

    fn wire(&self, connection: u32, side: PairSide) -> SimTcpWire {
        let (from, to) = (self.route.node(side), self.route.node(side.other()));
        SimTcpWire {
            pair: self.route.pair,
            connection,
            from,
            to,
            side,
            is_v6: is_over_ipv6(&self.stack),
        }
    }

    fn find(&self, connection: u32, side: PairSide) -> Option<Rc<SimTcpEnd>> {
        self.ends[side.index()]
            .borrow()
            .iter()
            .rev()
            .find(|end| end.wire.connection == connection)
            .map(Rc::clone)
    }
}

impl SimConnectionPair for TcpPair {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        let connection = packet.payload.connection;
        if let Some(end) = self.find(connection, side) {
            return end.arrived(&packet.payload, shared);
        }
        if side == PairSide::Responder && dials(&packet.payload) {
            if connection < self.seen.get() {
                return;
            }
            self.seen.set(connection + 1);
            let end = self.end(connection, side, shared.now());
            end.listen(self.ports(connection)[1], shared);
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            end.arrived(&packet.payload, shared);
        } else {
            let wire = self.wire(connection, side);
            let smoltcp = self.stack.name == smol::TABLE.name;
            let answer = if smoltcp {
                smol::reply_to_closed
            } else {
                linux_tcp::reply_to_closed
            };
            if let Some(answer) = answer(&wire, &packet.payload) {
                shared.send(answer);
            }
        }
    }

    fn timer(&self, connection: u32, side: PairSide, shared: &Rc<SimRunState>) {
        if let Some(end) = self.find(connection, side) {
            end.rang(shared);
        }
    }

    fn sample(&self, at: Instant, log: &SimTraceLog) -> usize {
        let of_side = |ends: &RefCell<Vec<Rc<SimTcpEnd>>>| {
            ends.borrow()
                .iter()
                .filter(|end| end.sample(at, log))
                .count()
        };
        self.ends.iter().map(of_side).sum()
    }

    /// Removes an end that is over; a smoltcp machine is kept for the next connection.
    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        let side = end.side();
        let mut ends = self.ends[side.index()].borrow_mut();
        let Some(at) = ends.iter().position(|known| is_same_end(known, &end)) else {
            return;
        };
        let known = ends.swap_remove(at);
        drop(end);
        if let Ok(end) = Rc::try_unwrap(known)
            && let SimTcpMachine::Smoltcp(mut machine) = end.machine.into_inner()
        {
            machine.renew(&self.stack);
            self.spare[side.index()]
                .borrow_mut()
                .push(SimTcpMachine::Smoltcp(machine));
        }
    }
}

/// Whether a segment asks for a connection: SYN without ACK.
fn dials(datagram: &SimDatagram) -> bool {
    match datagram.segment() {
        Some(segment) => segment.flags.has(TcpFlags::SYN) && !segment.flags.has(TcpFlags::ACK),
        None => SimTcpHeaderFields::from_header(datagram.header()).flags & (SYN | ACK) == SYN,
    }
}

impl SimStreamPair for TcpPair {
    type End = Rc<SimTcpEnd>;

    fn introductions(&self) -> &Introductions {
        &self.introductions
    }

    fn dial(&self, shared: &Rc<SimRunState>) -> Result<Rc<SimTcpEnd>> {
        let connection = self.dialled.get();
        self.dialled.set(connection + 1);
        let end = self.end(connection, PairSide::Initiator, shared.now());
        end.dial(self.ports(connection), shared);
        end.touch(shared);
        Ok(end)
    }

    fn accept(&self) -> Option<Rc<SimTcpEnd>> {
        let mut backlog = self.backlog.borrow_mut();
        let ready = backlog
            .iter()
            .position(|end| !matches!(end.state(), TcpState::Listen | TcpState::SynReceived))?;
        backlog.remove(ready)
    }
}

/// One end of a connection.
pub(crate) struct SimTcpEnd {
    touched: Cell<bool>,
    wire: SimTcpWire,
    side: PairSide,
    endpoint: u32,
    /// Further endpoints that use it.
    sharers: Option<Rc<[u32]>>,
    /// The application has abandoned it: nobody reads what arrives.
    orphan: Cell<bool>,
    /// The application waits for room in the send buffer.
    wants_room: Cell<bool>,
    /// When the earliest timer that is set will expire.
    alarm: Cell<Option<Instant>>,
    machine: RefCell<SimTcpMachine>,
    /// The state that was sampled last, while the run is traced.
    looked: Cell<TcpFacts>,
}

impl fmt::Debug for SimTcpEnd {
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

impl SimTcpEnd {
    fn new(pair: &TcpPair, connection: u32, side: PairSide, machine: SimTcpMachine) -> Self {
        Self {
            touched: Cell::new(false),
            wire: pair.wire(connection, side),
            side,
            endpoint: pair.route.endpoint(side),
            sharers: pair.sharers[side.index()].clone(),
            orphan: Cell::new(false),
            wants_room: Cell::new(false),
            alarm: Cell::new(None),
            machine: RefCell::new(machine),
            looked: Cell::new(TcpFacts::default()),
        }
    }

    /// Its number among the pair's connections.
    pub(super) const fn connection(&self) -> u32 {
        self.wire.connection
    }

    /// Wakes the endpoints that use it.
    fn wake(&self, shared: &SimRunState) {
        shared.wake(self.endpoint);
        for endpoint in self.sharers.iter().flat_map(|sharers| sharers.iter()) {
            shared.wake(*endpoint);
        }
    }

    fn dial(&self, ports: [u16; 2], shared: &SimRunState) {
        match &mut *self.machine.borrow_mut() {
            SimTcpMachine::Linux(machine) => {
                machine.dial(shared.now(), ports, shared.log.is_some())
            }
            SimTcpMachine::Smoltcp(machine) => machine.dial(self.wire.to, ports),
        }
    }

    fn listen(&self, port: u16, shared: &SimRunState) {
        match &mut *self.machine.borrow_mut() {
            SimTcpMachine::Linux(machine) => {
                machine.listen(shared.now(), port, shared.log.is_some())
            }
            SimTcpMachine::Smoltcp(machine) => machine.listen(port),
        }
    }

    fn state(&self) -> TcpState {
        both!(&*self.machine.borrow(), machine => machine.state())
    }

    /// Whether there is enough room to wake a writer.
    fn has_room(&self) -> bool {
        match &*self.machine.borrow() {
            SimTcpMachine::Linux(machine) => machine.has_room(),
            SimTcpMachine::Smoltcp(_) => true,
        }
    }

    /// Registers the end to be flushed, as there may be something to send.
    fn touch(self: &Rc<Self>, shared: &SimRunState) {
        if !self.touched.replace(true) {
            let end: Rc<Self> = Rc::clone(self);
            shared.touch(end);
        }
    }

    /// Records a `TCP_INFO` event if data is under way or has moved since the last sample. Whether it did.
    fn sample(&self, at: Instant, log: &SimTraceLog) -> bool {
        let SimTcpMachine::Linux(machine) = &*self.machine.borrow() else {
            return false;
        };
        let Some(now) = machine.facts(at) else {
            return false;
        };
        let before = self.looked.replace(now);
        let changed =
            (now.bytes_acked, now.bytes_received) != (before.bytes_acked, before.bytes_received);
        let reports = changed || now.in_flight + now.unsent + now.waiting > 0;
        if reports {
            log.info(
                ConnectionReportEvent::TcpInfo,
                self.wire.pair,
                self.side,
                at,
                &ConnectionInfo::of_tcp(&before),
                &ConnectionInfo::of_tcp(&now),
            );
        }
        reports
    }

    // --- the network's side ---

    fn arrived(self: &Rc<Self>, datagram: &SimDatagram, shared: &Rc<SimRunState>) {
        let mut machine = self.machine.borrow_mut();
        let state = both!(&*machine, machine => machine.state());
        match &mut *machine {
            SimTcpMachine::Linux(machine) => machine.arrived(datagram, shared.now()),
            SimTcpMachine::Smoltcp(machine) => machine.arrived(&self.wire, datagram, shared),
        }
        let readable = both!(&*machine, machine => machine.readable());
        if self.orphan.get() && readable {
            // Nobody will read it: like a kernel, reset the connection.
            both!(&mut *machine, machine => machine.abort());
        }
        let changed = both!(&*machine, machine => machine.state()) != state;
        drop(machine);
        let useful = readable || changed || (self.wants_room.get() && self.has_room());
        self.touch(shared);
        if useful {
            self.wake(shared);
        }
    }

    /// A timer of this end has expired.
    fn rang(self: &Rc<Self>, shared: &Rc<SimRunState>) {
        if self.alarm.get().is_some_and(|alarm| alarm <= shared.now()) {
            self.alarm.set(None);
        }
        self.touch(shared);
        // The timer may have given the connection up, which the application has to learn.
        self.wake(shared);
    }

    // --- the application's side ---
}

impl ConnectionEnd for SimTcpEnd {
    fn pair(&self) -> u32 {
        self.wire.pair
    }

    fn side(&self) -> PairSide {
        self.side
    }

    fn untouch(&self) {
        self.touched.set(false);
    }

    fn flush(&self, shared: &SimRunState) {
        let (state, waits) = (self.state(), self.wants_room.get() && !self.has_room());
        let next =
            both!(&mut *self.machine.borrow_mut(), machine => machine.flush(&self.wire, shared));
        if self.state() != state || (waits && self.has_room()) {
            // The connection was given up by a timer, or sending has made room: wake the application, which may wait for it.
            self.wake(shared);
        }
        if let Some(next) = next
            && self.alarm.get().is_none_or(|alarm| next < alarm)
        {
            self.alarm.set(Some(next));
            let SimTcpWire {
                pair, connection, ..
            } = self.wire;
            shared.set_timer(
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
        self.orphan.get() && matches!(self.state(), TcpState::Closed | TcpState::TimeWait)
    }
}

impl StreamEnd for Rc<SimTcpEnd> {
    fn answered(&self) -> Option<bool> {
        match self.state() {
            TcpState::SynSent | TcpState::SynReceived => None,
            TcpState::Closed => Some(false),
            _ => Some(true),
        }
    }

    fn send(&self, bytes: usize, shared: &SimRunState) -> Option<usize> {
        let sent = match &mut *self.machine.borrow_mut() {
            SimTcpMachine::Linux(machine) => machine.send(bytes, shared.now()),
            SimTcpMachine::Smoltcp(machine) => machine.send(bytes),
        };
        let done = sent?;
        if done > 0 {
            // Send within the system call, as a kernel does, so that Nagle's algorithm is applied to each write.
            self.flush(shared);
        }
        self.wants_room.set(done < bytes);
        Some(done)
    }

    fn receive(&self, most: usize, shared: &SimRunState) -> Got {
        let got = match &mut *self.machine.borrow_mut() {
            SimTcpMachine::Linux(machine) => machine.receive(most, shared.now()),
            SimTcpMachine::Smoltcp(machine) => machine.receive(most),
        };
        if matches!(got, Got::Bytes(_)) {
            self.touch(shared);
        }
        got
    }

    fn close(&self, shared: &SimRunState) {
        both!(&mut *self.machine.borrow_mut(), machine => machine.close());
        self.touch(shared);
    }

    fn abandon(&self, shared: &SimRunState) {
        self.orphan.set(true);
        both!(&mut *self.machine.borrow_mut(), machine => if machine.readable() { machine.abort() } else { machine.close() });
        self.touch(shared);
    }

    fn push(&self, shared: &SimRunState) {
        both!(&mut *self.machine.borrow_mut(), machine => machine.push());
        self.touch(shared);
    }

    fn transport(&self, now: Instant) -> Option<TransportRecord> {
        Some(match &*self.machine.borrow() {
            SimTcpMachine::Linux(machine) => machine.transport(now),
            SimTcpMachine::Smoltcp(machine) => machine.transport(),
        })
    }

    fn settings(&self, now: Instant) -> BTreeMap<String, String> {
        match &*self.machine.borrow() {
            SimTcpMachine::Linux(machine) => machine.settings(now),
            SimTcpMachine::Smoltcp(machine) => machine.settings(),
        }
    }

    fn notes(&self, now: Instant) -> Vec<String> {
        match &*self.machine.borrow() {
            SimTcpMachine::Linux(machine) => machine.notes(now),
            SimTcpMachine::Smoltcp(_) => Vec::new(),
        }
    }
}
