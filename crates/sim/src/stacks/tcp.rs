//! `tcp`: one smoltcp interface and socket for each end of each connection, with real headers and real segments.
//!
//! Data units hold zeros that nobody reads, so a packet on its way keeps its headers and the number of bytes behind them;
//! smoltcp gets the zeros back when it arrives.
//!
//! Where it is not Linux's TCP: it begins with one or two segments instead of ten; its retransmission timer is never below
//! 1 s (200 ms); it answers with selective acknowledgements and does not use the peer's, so a second loss in one window
//! waits for the timer; CUBIC has no HyStart, and there is no pacing and no ECN; buffers are as large as the option says
//! from the beginning and never tuned; a host's own queue may drop its segments. As in Linux are timestamps, window
//! scaling, Nagle's algorithm, quick acknowledgements at first and delayed ones (every second segment, else 40 ms) later.

use super::end::{self, Got, Introductions, Streams};
use super::segments::{ACK, FIN, Fields, RST, SYN, Segments};
use super::{Route, other, place};
use crate::datagram::{Body, Datagram, TCP, ipv4};
use crate::world::{Timer, World};
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, RecvError, Socket, SocketBuffer, State};
use smoltcp::time::{Duration as Span, Instant as Moment};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};
use stackline_core::catalogue::{Mapping, OptionKind, OptionTable, StackTable};
use stackline_core::plan::Stack;
use stackline_core::program::Side;
use stackline_core::record::Transport;
use stackline_core::time::Instant;
use stackline_net::{Ecn, Node, Packet, Segments as Sizes};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

pub(super) const TABLE: StackTable = StackTable {
    name: "tcp",
    summary: "TCP over IPv4 in virtual time (smoltcp)",
    least_unit: 1,
    largest_unit: 1 << 30,
    least_bulk_unit: 1,
    reliable: true,
    one_host: false,
    files: false,
    options: &[
        OptionTable {
            name: "nodelay",
            kind: OptionKind::Flag,
            default: "off: Nagle's algorithm holds small segments back",
            help: "every data unit leaves at once",
        },
        OptionTable {
            name: "congestion",
            kind: OptionKind::Word(&["cubic", "reno", "none"]),
            default: "cubic",
            help: "congestion control: cubic (RFC 9438), reno (RFC 5681) or none",
        },
        OptionTable {
            name: "send_buffer",
            kind: OptionKind::Bytes,
            default: "4 MiB",
            help: "bytes a sender may have handed over that are not acknowledged",
        },
        OptionTable {
            name: "receive_buffer",
            kind: OptionKind::Bytes,
            default: "4 MiB",
            help: "bytes a receiver offers as its window",
        },
        OptionTable {
            name: "mss",
            kind: OptionKind::Number(88, 65_483),
            default: "from the path's MTU",
            help: "largest segment in bytes, with its options",
        },
        OptionTable {
            name: "delayed_ack",
            kind: OptionKind::Time,
            default: "40 ms after the first 16 segments with data",
            help: "how long the acknowledgement of a single segment waits for company; 0 s: not at all",
        },
        OptionTable {
            name: "timeout",
            kind: OptionKind::Time,
            default: "none",
            help: "a connection that hears nothing for so long is given up, also an idle one",
        },
    ],
    mapping: &[
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
        Mapping {
            operation: "AwaitStopBulkGet",
            services: "Nagle's algorithm off, so that it holds no last segment back",
        },
        Mapping { operation: "StopBulkPut", services: "Nagle's algorithm off, 1 byte that confirms the arrival" },
        Mapping { operation: "AwaitStopBulkPut", services: "that byte" },
        Mapping { operation: "end of stream (time limit)", services: "FIN" },
        Mapping { operation: "DisconnectRequest", services: "FIN (RST when there are bytes nobody has taken)" },
        Mapping { operation: "AwaitDisconnectIndication", services: "FIN from the peer, then the own" },
    ],
};

const BUFFER: u64 = 4 << 20;
/// As long as Linux delays an acknowledgement at least, once it delays any.
const DELAYED_ACK_S: f64 = 0.04;
/// Segments with data that are acknowledged at once at the beginning, as Linux does.
const QUICK: u32 = 16;
/// Ports of initiators.
const EPHEMERAL: (u32, u32) = (32_768, 28_232);
/// First of the responders' ports.
const LISTENING: (u32, u32) = (1024, 31_000);

thread_local! {
    /// What the timestamp option tells: the virtual time in ms.
    static MILLISECONDS: Cell<u32> = const { Cell::new(0) };
}

fn moment(at: Instant) -> Moment {
    Moment::from_micros((at.0 / 1000).cast_signed())
}

fn instant(at: Moment) -> Instant {
    Instant(at.total_micros().max(0).cast_unsigned().saturating_mul(1000))
}

/// What a specification asks of its sockets.
#[derive(Clone, Debug)]
struct Terms {
    stack: Stack,
    congestion: CongestionControl,
    delayed_ack: Option<Span>,
}

impl Terms {
    fn new(stack: &Stack) -> Self {
        let congestion = match stack.word("congestion") {
            Some("reno") => CongestionControl::Reno,
            Some("none") => CongestionControl::None,
            _ => CongestionControl::Cubic,
        };
        let delayed_ack = span(stack.seconds("delayed_ack").unwrap_or(DELAYED_ACK_S));
        let delayed_ack = (delayed_ack > Span::ZERO).then_some(delayed_ack);
        Self { stack: stack.clone(), congestion, delayed_ack }
    }

    fn buffer(&self, name: &str) -> u64 {
        self.stack.number(name).unwrap_or(BUFFER)
    }

    fn socket(&self) -> Socket<'static> {
        let buffer = |name: &str| SocketBuffer::new(untouched(usize::try_from(self.buffer(name)).unwrap_or(1 << 30)));
        let mut socket = Socket::new(buffer("receive_buffer"), buffer("send_buffer"));
        self.set(&mut socket);
        socket
    }

    fn set(&self, socket: &mut Socket<'static>) {
        socket.set_congestion_control(self.congestion);
        socket.set_nagle_enabled(!self.stack.flag("nodelay"));
        socket.set_ack_delay(None);
        socket.set_timeout(self.stack.seconds("timeout").map(span));
        socket.set_tsval_generator(Some(|| MILLISECONDS.get()));
    }
}

/// So many zeros that take no memory before they are written. An allocation of more than 32 MiB always comes from the kernel
/// as fresh pages; a smaller one may be used again, and clearing it would touch all of it.
fn untouched(bytes: usize) -> Vec<u8> {
    const FRESH: usize = (32 << 20) + 4096;
    const SMALL: usize = 64 << 10;
    let mut zeros = vec![0; if bytes > SMALL { bytes.max(FRESH) } else { bytes }];
    zeros.truncate(bytes);
    zeros
}

fn span(seconds: f64) -> Span {
    Span::from_micros(stackline_core::time::Duration::from_seconds(seconds).0 / 1000)
}

/// The connections of a pair, one after the other.
#[derive(Debug)]
pub(crate) struct TcpPair {
    pub(crate) route: Route,
    terms: Terms,
    seed: u64,
    introductions: Introductions,
    ends: [RefCell<Vec<Rc<End>>>; 2],
    /// What is left of ends that are over, for those to come.
    spare: [RefCell<Vec<Inner>>; 2],
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
            terms: Terms::new(stack),
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
        let inner = spare.unwrap_or_else(|| self.inner(side, now));
        let end = Rc::new(End::new(self, connection, side, inner));
        self.ends[place(side)].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn inner(&self, side: Side, now: Instant) -> Inner {
        let path = usize::try_from(self.route.mtu).unwrap_or(65_535).clamp(128, 65_535);
        let mtu = self.terms.stack.number("mss").map_or(path, |mss| path.min(mss as usize + 40));
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = self.seed ^ place(side) as u64;
        let (frame, leaving) = (&mut Vec::new(), &mut Vec::new());
        let mut nic = Nic { mtu, arriving: None, frame, leaving, pair: 0, connection: 0 };
        let mut interface = Interface::new(config, &mut nic, moment(now));
        let address = IpAddress::Ipv4(Ipv4Address::from(stackline_net::packet::address(self.route.node(side))));
        interface.update_ip_addrs(|addresses| {
            // There is room for more than one in an interface that was just made.
            let _ = addresses.push(IpCidr::new(address, 32));
        });
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(self.terms.socket());
        Inner { interface, sockets, handle, mtu, segments: Segments::default(), alarm: None, quick: 0 }
    }

    fn find(&self, connection: u32, side: Side) -> Option<Rc<End>> {
        self.ends[place(side)].borrow().iter().rev().find(|end| end.connection == connection).map(Rc::clone)
    }

    pub(super) fn arrived(&self, side: Side, packet: &Packet<Datagram>, world: &Rc<World>) {
        let connection = packet.payload.connection;
        if let Some(end) = self.find(connection, side) {
            return end.arrived(&packet.payload, world);
        }
        let fields = Fields::of(packet.payload.header());
        if side == Side::Responder && fields.flags & (SYN | ACK) == SYN {
            if connection < self.seen.get() {
                return;
            }
            self.seen.set(connection + 1);
            let end = self.end(connection, side, world.now());
            end.listen(self.ports(connection)[1]);
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            end.arrived(&packet.payload, world);
        } else {
            self.answer_for_the_gone(side, &packet.payload, &fields, world);
        }
    }

    /// A segment of a connection that is over here: its FIN is acknowledged as from TIME-WAIT, anything else reset.
    fn answer_for_the_gone(&self, side: Side, datagram: &Datagram, fields: &Fields, world: &World) {
        if fields.has(RST) {
            return;
        }
        let next = fields.sequence.wrapping_add(datagram.carried() as u32);
        let (acknowledged, flags) = if fields.has(FIN) { (next.wrapping_add(1), ACK) } else { (next, RST | ACK) };
        let (from, to) = (self.route.node(side), self.route.node(other(side)));
        let mut header = [0; 40];
        header[..20].copy_from_slice(&ipv4(from, to, TCP, 40, 0, 0));
        header[20..22].copy_from_slice(&fields.destination.to_be_bytes());
        header[22..24].copy_from_slice(&fields.source.to_be_bytes());
        header[24..28].copy_from_slice(&fields.acknowledged.to_be_bytes());
        header[28..32].copy_from_slice(&acknowledged.to_be_bytes());
        header[32] = 5 << 4;
        header[33] = flags;
        let payload = Datagram::new(self.route.pair, datagram.connection, &header, Body::Zeros(0));
        world.send(packet(from, to, 40, payload));
    }

    pub(super) fn timer(&self, connection: u32, side: Side, world: &Rc<World>) {
        if let Some(end) = self.find(connection, side) {
            end.rang(world);
        }
    }

    /// Lets go of an end that is over, and keeps its buffers for the next one.
    pub(super) fn forget(&self, end: Rc<End>) {
        let mut ends = self.ends[place(end.side)].borrow_mut();
        if let Some(at) = ends.iter().position(|other| Rc::ptr_eq(other, &end)) {
            ends.swap_remove(at);
        }
        let side = end.side;
        if let Ok(end) = Rc::try_unwrap(end) {
            let mut inner = end.inner.into_inner();
            (inner.segments, inner.alarm, inner.quick) = (Segments::default(), None, 0);
            self.terms.set(inner.socket());
            self.spare[place(side)].borrow_mut().push(inner);
        }
    }
}

impl Streams for TcpPair {
    fn introductions(&self) -> &Introductions {
        &self.introductions
    }

    fn dial(&self, world: &Rc<World>) -> end::End {
        let connection = self.dialled.get();
        self.dialled.set(connection + 1);
        let end = self.end(connection, Side::Initiator, world.now());
        end.dial(self.ports(connection));
        end.touch(world);
        end::End::Tcp(end)
    }

    fn accept(&self) -> Option<end::End> {
        let mut backlog = self.backlog.borrow_mut();
        let ready = backlog.iter().position(|end| !matches!(end.state(), State::Listen | State::SynReceived))?;
        backlog.remove(ready).map(end::End::Tcp)
    }
}

fn packet(from: Node, to: Node, bytes: usize, payload: Datagram) -> Packet<Datagram> {
    let (flow, segments) = (payload.pair, Sizes::one(bytes as u32));
    Packet { number: 0, from, to, flow, ecn: Ecn::NotCapable, segments, payload }
}

/// One end of a connection.
pub(crate) struct End {
    pub(super) touched: Cell<bool>,
    connection: u32,
    side: Side,
    pair: u32,
    from: Node,
    to: Node,
    endpoint: u32,
    delayed_ack: Option<Span>,
    /// The application has let go of it.
    orphan: Cell<bool>,
    /// The application waits for room in the send buffer.
    wants_room: Cell<bool>,
    inner: RefCell<Inner>,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "end {} of connection {} of pair {}", place(self.side), self.connection, self.pair)
    }
}

/// An interface with its one socket.
struct Inner {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    mtu: usize,
    segments: Segments,
    /// The earliest timer that has not come yet.
    alarm: Option<Instant>,
    /// Segments with data that have arrived, up to [`QUICK`].
    quick: u32,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.segments)
    }
}

impl Inner {
    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }
}

impl End {
    fn new(pair: &TcpPair, connection: u32, side: Side, inner: Inner) -> Self {
        let (from, to) = (pair.route.node(side), pair.route.node(other(side)));
        Self {
            touched: Cell::new(false),
            connection,
            side,
            pair: pair.route.pair,
            from,
            to,
            endpoint: pair.route.endpoint(side),
            delayed_ack: pair.terms.delayed_ack,
            orphan: Cell::new(false),
            wants_room: Cell::new(false),
            inner: RefCell::new(inner),
        }
    }

    fn dial(&self, ports: [u16; 2]) {
        let mut inner = self.inner.borrow_mut();
        let Inner { interface, sockets, handle, .. } = &mut *inner;
        let remote = Ipv4Address::from(stackline_net::packet::address(self.to));
        let socket: &mut Socket<'static> = sockets.get_mut(*handle);
        let asked = socket.connect(interface.context(), (IpAddress::Ipv4(remote), ports[1]), ports[0]);
        debug_assert!(asked.is_ok(), "{asked:?}: a new socket, with addresses and ports");
    }

    fn listen(&self, port: u16) {
        let listening = self.inner.borrow_mut().socket().listen(port);
        debug_assert!(listening.is_ok(), "{listening:?}: a new socket, with a port");
    }

    fn state(&self) -> State {
        self.inner.borrow_mut().socket().state()
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

    /// Its pair's number.
    pub(super) const fn pair(&self) -> u32 {
        self.pair
    }

    // --- the network's side ---

    fn arrived(self: &Rc<Self>, datagram: &Datagram, world: &Rc<World>) {
        let now = world.now();
        MILLISECONDS.set((now.0 / 1_000_000) as u32);
        let mut inner = self.inner.borrow_mut();
        let Inner { interface, sockets, handle, mtu, segments, quick, .. } = &mut *inner;
        let header = datagram.header();
        let carried = datagram.carried();
        segments.arrives(&Fields::of(header), carried, now);
        let socket: &mut Socket<'static> = sockets.get_mut(*handle);
        let state = socket.state();
        if carried > 0 && *quick < QUICK {
            *quick += 1;
            if *quick == QUICK {
                socket.set_ack_delay(self.delayed_ack);
            }
        }
        let mut frames = world.frames.borrow_mut();
        let mut leaving = world.outgoing().borrow_mut();
        let before = leaving.len();
        frames.arriving[..header.len()].copy_from_slice(header);
        let frames = &mut *frames;
        let arriving = Some(&frames.arriving[..header.len() + carried]);
        let (frame, pair, connection) = (&mut frames.leaving, self.pair, self.connection);
        let mut nic = Nic { mtu: *mtu, arriving, frame, leaving: &mut leaving, pair, connection };
        let result = interface.poll_ingress_single(moment(now), &mut nic, sockets);
        debug_assert_ne!(result, PollIngressSingleResult::None);
        let socket: &mut Socket<'static> = sockets.get_mut(*handle);
        if self.orphan.get() && socket.can_recv() {
            // Nobody will take it: a kernel resets.
            socket.abort();
        }
        let useful = socket.can_recv() || socket.state() != state || self.wants_room.get();
        self.address(&mut leaving[before..], segments, now);
        self.touch(world);
        if useful {
            world.wake(self.endpoint);
        }
    }

    /// Completes the packets that smoltcp made.
    fn address(&self, made: &mut [Packet<Datagram>], segments: &mut Segments, now: Instant) {
        for packet in made {
            (packet.from, packet.to) = (self.from, self.to);
            segments.leaves(&Fields::of(packet.payload.header()), packet.payload.carried(), now);
        }
    }

    fn rang(self: &Rc<Self>, world: &Rc<World>) {
        let now = world.now();
        {
            let mut inner = self.inner.borrow_mut();
            if inner.alarm.is_some_and(|alarm| alarm <= now) {
                inner.alarm = None;
            }
        }
        self.touch(world);
        // A timer may have given the connection up.
        world.wake(self.endpoint);
    }

    /// Sends what there is to send and sets the next timer.
    pub(super) fn flush(&self, world: &World) {
        let now = world.now();
        MILLISECONDS.set((now.0 / 1_000_000) as u32);
        let mut inner = self.inner.borrow_mut();
        let Inner { interface, sockets, mtu, segments, alarm, .. } = &mut *inner;
        let mut frames = world.frames.borrow_mut();
        let mut leaving = world.outgoing().borrow_mut();
        let before = leaving.len();
        let (pair, connection) = (self.pair, self.connection);
        let mut nic =
            Nic { mtu: *mtu, arriving: None, frame: &mut frames.leaving, leaving: &mut leaving, pair, connection };
        while interface.poll_egress(moment(now), &mut nic, sockets) == PollResult::SocketStateChanged {}
        self.address(&mut leaving[before..], segments, now);
        if let Some(next) = interface.poll_at(moment(now), sockets) {
            // What could not be done now is not due before the next microsecond.
            let next = instant(next).max(Instant((now.0 / 1000 + 1) * 1000));
            if alarm.is_none_or(|alarm| next < alarm) {
                *alarm = Some(next);
                world.set_timer(next, Timer::End { pair, connection, side: self.side });
            }
        }
    }

    // --- the application's side ---

    /// Puts so many bytes into the send buffer as there is room for; `None` when the connection is broken.
    pub(super) fn send(self: &Rc<Self>, bytes: usize, world: &World) -> Option<usize> {
        let mut inner = self.inner.borrow_mut();
        let socket = inner.socket();
        let mut done = 0;
        loop {
            // Twice when the room goes round the end of the buffer.
            let n = socket.send(|room| (room.len().min(bytes - done), room.len().min(bytes - done))).ok()?;
            done += n;
            if n == 0 || done == bytes {
                break;
            }
        }
        if done > 0 {
            self.touch(world);
        }
        self.wants_room.set(done < bytes);
        Some(done)
    }

    /// Takes at most so many bytes out of the receive buffer.
    pub(super) fn receive(self: &Rc<Self>, most: usize, world: &World) -> Got {
        let mut inner = self.inner.borrow_mut();
        let socket = inner.socket();
        let mut done = 0;
        // Twice when the bytes go round the end of the buffer.
        while done < most && socket.can_recv() {
            let taken = socket.recv(|bytes| (bytes.len().min(most - done), bytes.len().min(most - done)));
            let Ok(n) = taken else { break };
            done += n;
        }
        if done == 0 {
            return match socket.recv(|_| (0, ())) {
                Ok(()) => Got::Nothing,
                Err(RecvError::Finished) => Got::End,
                Err(RecvError::InvalidState) => Got::Broken,
            };
        }
        self.touch(world);
        Got::Bytes(done)
    }

    /// Closes the own half.
    pub(super) fn close(self: &Rc<Self>, world: &World) {
        self.inner.borrow_mut().socket().close();
        self.touch(world);
    }

    /// The application lets go of it.
    pub(super) fn abandon(self: &Rc<Self>, world: &World) {
        self.orphan.set(true);
        {
            let mut inner = self.inner.borrow_mut();
            let socket = inner.socket();
            if socket.can_recv() { socket.abort() } else { socket.close() }
        }
        self.touch(world);
    }

    /// What Nagle's algorithm holds back goes on at once.
    pub(super) fn push(self: &Rc<Self>, world: &World) {
        self.inner.borrow_mut().socket().set_nagle_enabled(false);
        self.touch(world);
    }

    pub(super) fn transport(&self) -> Transport {
        let inner = self.inner.borrow();
        inner.segments.transport(inner.mtu as u64 - 52)
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mut inner = self.inner.borrow_mut();
        let mss = inner.mtu - 52;
        let socket = inner.socket();
        let congestion = match socket.congestion_control() {
            CongestionControl::None => "none",
            CongestionControl::Reno => "reno",
            CongestionControl::Cubic => "cubic",
        };
        let delayed = self.delayed_ack.map_or(0.0, |span| span.total_micros() as f64 / 1e6);
        let settings = [
            ("congestion", congestion.to_string()),
            ("nodelay", if socket.nagle_enabled() { "off" } else { "on" }.to_string()),
            ("mss", format!("{mss} B")),
            ("send_buffer", format!("{} B", socket.send_capacity())),
            ("receive_buffer", format!("{} B", socket.recv_capacity())),
            ("delayed_ack", stackline_core::units::time(delayed)),
        ];
        settings.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}

/// The interface that smoltcp sees for one call: perhaps a packet that arrives, and room for those that leave.
struct Nic<'n> {
    mtu: usize,
    arriving: Option<&'n [u8]>,
    frame: &'n mut Vec<u8>,
    leaving: &'n mut Vec<Packet<Datagram>>,
    pair: u32,
    connection: u32,
}

impl Device for Nic<'_> {
    type RxToken<'t>
        = Arriving<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Leaving<'t>
    where
        Self: 't;

    fn receive(&mut self, _: Moment) -> Option<(Arriving<'_>, Leaving<'_>)> {
        let arriving = self.arriving.take()?;
        let (frame, leaving, pair, connection) = (&mut *self.frame, &mut *self.leaving, self.pair, self.connection);
        Some((Arriving(arriving), Leaving { frame, leaving, pair, connection }))
    }

    fn transmit(&mut self, _: Moment) -> Option<Leaving<'_>> {
        let (frame, leaving, pair, connection) = (&mut *self.frame, &mut *self.leaving, self.pair, self.connection);
        Some(Leaving { frame, leaving, pair, connection })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }
}

struct Arriving<'t>(&'t [u8]);

impl RxToken for Arriving<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

struct Leaving<'t> {
    frame: &'t mut Vec<u8>,
    leaving: &'t mut Vec<Packet<Datagram>>,
    pair: u32,
    connection: u32,
}

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let frame = &mut self.frame[..length];
        let result = f(frame);
        let headers = 20 + usize::from(frame[32] >> 4) * 4;
        let body = Body::Zeros((length - headers) as u32);
        let payload = Datagram::new(self.pair, self.connection, &frame[..headers], body);
        self.leaving.push(packet(Node(0), Node(0), length, payload));
        result
    }
}
