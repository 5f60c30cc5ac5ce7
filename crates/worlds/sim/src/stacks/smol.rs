//! `smoltcp`: one smoltcp interface and socket for each end of each connection, with real headers and real segments.
//!
//! Data units hold zeros that nobody reads, so a packet on its way keeps its headers and the number of bytes behind them;
//! smoltcp gets the zeros back when it arrives.
//!
//! Where it is not Linux's TCP: it begins with one or two segments instead of ten; its retransmission timer is never below
//! 1 s (200 ms); it answers with selective acknowledgements and does not use the peer's, so a second loss in one window
//! waits for the timer; CUBIC has no HyStart, and there is no pacing and no ECN; buffers are as large as the option says
//! from the beginning and never tuned; a host's own queue may drop its segments. As in Linux are timestamps, window
//! scaling, Nagle's algorithm, quick acknowledgements at first and delayed ones (every second segment, else 40 ms) later.

use super::byte_stream::Got;
use super::segments::{ACK, FIN, RST, SimSegmentTracker, SimTcpHeaderFields};
use super::tcp_wire::{DELAYED_ACK, MAPPING, MSS, NODELAY, SimTcpWire, TIMEOUT};
use crate::datagram::{SimDatagram, SimDatagramBody, TCP, ipv4_header};
use crate::run_state::SimRunState;
use smoltcp::iface::{
    Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet,
};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{self, CongestionControl, RecvError, Socket, SocketBuffer};
use smoltcp::time::{Duration as Span, Instant as Moment};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};
use stackline_core::catalogue::{ClosedForm, OptionKind, OptionTable, StackFacts, StackTable};
use stackline_core::plan::Stack;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_net::{NetworkPacket, NodeIndex};
use stackline_proto::tcp::TcpState;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

pub(super) const TABLE: StackTable = StackTable {
    name: "smoltcp",
    summary: "TCP over IPv4 in virtual time, with the smoltcp library",
    files: false,
    options: &[
        NODELAY,
        OptionTable::new(
            "congestion",
            OptionKind::Word(&["cubic", "reno", "none"]),
            "cubic",
            "congestion control: cubic (RFC 9438), reno (RFC 5681) or none",
        ),
        OptionTable::new(
            "send_buffer",
            OptionKind::BUFFER,
            "4 MiB",
            "unacknowledged bytes that the send buffer can hold",
        ),
        OptionTable::new(
            "receive_buffer",
            OptionKind::BUFFER,
            "4 MiB",
            "bytes a receiver offers as its window",
        ),
        MSS,
        DELAYED_ACK,
        TIMEOUT,
        super::ip_options::DSCP,
    ],
    mapping: MAPPING,
    unreported: (
        &[
            "cwnd_segments",
            "busy_s",
            "receive_window_limited_s",
            "send_buffer_limited_s",
        ],
        "smoltcp does not report it",
    ),
    facts: StackFacts {
        form: ClosedForm::SmolTcp,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// Default size of the send and the receive buffer, bytes.
const BUFFER: u64 = 4 << 20;
/// Seconds that an acknowledgement is delayed: Linux's minimum.
const DELAYED_ACK_S: f64 = 0.04;
/// How many data segments are acknowledged at once at the beginning of a connection, as Linux does.
const QUICK: u32 = 16;

thread_local! {
    /// The virtual time in ms, for the timestamp option. smoltcp takes a plain function, which can read nothing else.
    static MILLISECONDS: Cell<u32> = const { Cell::new(0) };
}

fn moment(at: Instant) -> Moment {
    Moment::from_micros((at.0 / 1000).cast_signed())
}

fn instant(at: Moment) -> Instant {
    Instant(
        at.total_micros()
            .max(0)
            .cast_unsigned()
            .saturating_mul(1000),
    )
}

/// A buffer of `bytes` zeros that takes no memory before it is written. An allocation of more than 32 MiB always comes from the kernel
/// as fresh pages; a smaller one may be used again, and clearing it would touch all of it.
fn untouched(bytes: usize) -> Vec<u8> {
    const FRESH: usize = (32 << 20) + 4096;
    const SMALL: usize = 64 << 10;
    let mut zeros = vec![
        0;
        if bytes > SMALL {
            bytes.max(FRESH)
        } else {
            bytes
        }
    ];
    zeros.truncate(bytes);
    zeros
}

fn span(seconds: f64) -> Span {
    Span::from_micros(stackline_core::time::Duration::from_seconds(seconds).0 / 1000)
}

/// One end's machine: a smoltcp interface with its one socket.
pub(super) struct SmolTcpMachine {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    mtu: usize,
    segments: SimSegmentTracker,
    /// Segments with data that have arrived, up to [`QUICK`].
    quick: u32,
    delayed_ack: Option<Span>,
}

impl fmt::Debug for SmolTcpMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.segments)
    }
}

impl SmolTcpMachine {
    pub(super) fn new(stack: &Stack, mtu: u32, seed: u64, host: NodeIndex, now: Instant) -> Self {
        let mtu = mtu as usize;
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let (frame, leaving) = (&mut Vec::new(), &mut Vec::new());
        let mut nic = Nic {
            mtu,
            arriving: None,
            frame,
            leaving,
            pair: 0,
            connection: 0,
        };
        let mut interface = Interface::new(config, &mut nic, moment(now));
        let address = IpAddress::Ipv4(Ipv4Address::from(stackline_net::packet::host_address(host)));
        interface.update_ip_addrs(|addresses| {
            // There is room for more than one in an interface that was just made.
            let _ = addresses.push(IpCidr::new(address, 32));
        });
        let buffer = |name: &str| {
            let bytes = stack.number(name).unwrap_or(BUFFER);
            SocketBuffer::new(untouched(usize::try_from(bytes).unwrap_or(1 << 30)))
        };
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(Socket::new(buffer("receive_buffer"), buffer("send_buffer")));
        let delayed_ack = span(stack.seconds("delayed_ack").unwrap_or(DELAYED_ACK_S));
        let delayed_ack = (delayed_ack > Span::ZERO).then_some(delayed_ack);
        let mut new = Self {
            interface,
            sockets,
            handle,
            mtu,
            segments: SimSegmentTracker::default(),
            quick: 0,
            delayed_ack,
        };
        new.set(stack);
        new
    }

    /// Prepares the machine for another connection; it keeps its buffers.
    pub(super) fn renew(&mut self, stack: &Stack) {
        (self.segments, self.quick) = (SimSegmentTracker::default(), 0);
        self.set(stack);
    }

    /// Applies the options to the socket. Acknowledgements are not delayed until [`QUICK`] data segments have arrived.
    fn set(&mut self, stack: &Stack) {
        let socket = self.socket();
        socket.set_congestion_control(match stack.word("congestion") {
            Some("reno") => CongestionControl::Reno,
            Some("none") => CongestionControl::None,
            _ => CongestionControl::Cubic,
        });
        socket.set_nagle_enabled(!stack.flag("nodelay"));
        socket.set_ack_delay(None);
        socket.set_timeout(stack.seconds("timeout").map(span));
        socket.set_tsval_generator(Some(|| MILLISECONDS.get()));
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    pub(super) fn dial(&mut self, to: NodeIndex, ports: [u16; 2]) {
        let remote = Ipv4Address::from(stackline_net::packet::host_address(to));
        let socket: &mut Socket<'static> = self.sockets.get_mut(self.handle);
        let asked = socket.connect(
            self.interface.context(),
            (IpAddress::Ipv4(remote), ports[1]),
            ports[0],
        );
        debug_assert!(
            asked.is_ok(),
            "{asked:?}: a new socket, with addresses and ports"
        );
    }

    pub(super) fn listen(&mut self, port: u16) {
        let listening = self.socket().listen(port);
        debug_assert!(
            listening.is_ok(),
            "{listening:?}: a new socket, with a port"
        );
    }

    pub(super) fn state(&self) -> TcpState {
        match self.sockets.get::<Socket<'static>>(self.handle).state() {
            tcp::State::Closed => TcpState::Closed,
            tcp::State::Listen => TcpState::Listen,
            tcp::State::SynSent => TcpState::SynSent,
            tcp::State::SynReceived => TcpState::SynReceived,
            tcp::State::Established => TcpState::Established,
            tcp::State::FinWait1 => TcpState::FinWait1,
            tcp::State::FinWait2 => TcpState::FinWait2,
            tcp::State::CloseWait => TcpState::CloseWait,
            tcp::State::Closing => TcpState::Closing,
            tcp::State::LastAck => TcpState::LastAck,
            tcp::State::TimeWait => TcpState::TimeWait,
        }
    }

    pub(super) fn readable(&self) -> bool {
        self.sockets.get::<Socket<'static>>(self.handle).can_recv()
    }

    // --- the network's side ---

    pub(super) fn arrived(
        &mut self,
        wire: &SimTcpWire,
        datagram: &SimDatagram,
        shared: &SimRunState,
    ) {
        let now = shared.now();
        MILLISECONDS.set((now.0 / 1_000_000) as u32);
        let header = datagram.header();
        let carried = datagram.carried();
        self.segments
            .arrives(&SimTcpHeaderFields::from_header(header), carried, now);
        if carried > 0 && self.quick < QUICK {
            self.quick += 1;
            if self.quick == QUICK {
                let delayed_ack = self.delayed_ack;
                self.socket().set_ack_delay(delayed_ack);
            }
        }
        let mut frames = shared.frames.borrow_mut();
        let mut leaving = shared.outgoing().borrow_mut();
        let before = leaving.len();
        frames.arriving[..header.len()].copy_from_slice(header);
        let frames = &mut *frames;
        let arriving = Some(&frames.arriving[..header.len() + carried]);
        let (frame, pair, connection) = (&mut frames.leaving, wire.pair, wire.connection);
        let mut nic = Nic {
            mtu: self.mtu,
            arriving,
            frame,
            leaving: &mut leaving,
            pair,
            connection,
        };
        let result = self
            .interface
            .poll_ingress_single(moment(now), &mut nic, &mut self.sockets);
        debug_assert_ne!(result, PollIngressSingleResult::None);
        self.address(wire, &mut leaving[before..], now);
    }

    /// Addresses the packets that smoltcp made, and counts them.
    fn address(
        &mut self,
        wire: &SimTcpWire,
        made: &mut [NetworkPacket<SimDatagram>],
        now: Instant,
    ) {
        for packet in made {
            (packet.from, packet.to) = (wire.from, wire.to);
            self.segments.leaves(
                &SimTcpHeaderFields::from_header(packet.payload.header()),
                packet.payload.carried(),
                now,
            );
        }
    }

    /// Sends what there is to send. Returns when it has to be called again.
    pub(super) fn flush(&mut self, wire: &SimTcpWire, shared: &SimRunState) -> Option<Instant> {
        let now = shared.now();
        MILLISECONDS.set((now.0 / 1_000_000) as u32);
        let mut frames = shared.frames.borrow_mut();
        let mut leaving = shared.outgoing().borrow_mut();
        let before = leaving.len();
        let (pair, connection) = (wire.pair, wire.connection);
        let mut nic = Nic {
            mtu: self.mtu,
            arriving: None,
            frame: &mut frames.leaving,
            leaving: &mut leaving,
            pair,
            connection,
        };
        let (interface, sockets) = (&mut self.interface, &mut self.sockets);
        while interface.poll_egress(moment(now), &mut nic, sockets)
            == PollResult::SocketStateChanged
        {}
        self.address(wire, &mut leaving[before..], now);
        let next = self.interface.poll_at(moment(now), &self.sockets)?;
        // smoltcp counts microseconds: being called again within the same one would loop for ever.
        Some(instant(next).max(Instant((now.0 / 1000 + 1) * 1000)))
    }

    // --- the application's side ---

    /// Puts up to `bytes` bytes into the send buffer and returns how many fitted; `None` when the connection is broken.
    pub(super) fn send(&mut self, bytes: usize) -> Option<usize> {
        let socket = self.socket();
        let mut done = 0;
        loop {
            // The ring buffer offers contiguous room only: two rounds where the room wraps around its end.
            let n = socket
                .send(|room| (room.len().min(bytes - done), room.len().min(bytes - done)))
                .ok()?;
            done += n;
            if n == 0 || done == bytes {
                return Some(done);
            }
        }
    }

    /// Takes at most `most` bytes out of the receive buffer.
    pub(super) fn receive(&mut self, most: usize) -> Got {
        let socket = self.socket();
        let mut done = 0;
        // The ring buffer offers contiguous bytes only: two rounds where they wrap around its end.
        while done < most && socket.can_recv() {
            let taken =
                socket.recv(|bytes| (bytes.len().min(most - done), bytes.len().min(most - done)));
            let Ok(n) = taken else { break };
            done += n;
        }
        if done > 0 {
            return Got::Bytes(done);
        }
        match socket.recv(|_| (0, ())) {
            Ok(()) => Got::Nothing,
            Err(RecvError::Finished) => Got::End,
            Err(RecvError::InvalidState) => Got::Broken,
        }
    }

    pub(super) fn close(&mut self) {
        self.socket().close();
    }

    pub(super) fn abort(&mut self) {
        self.socket().abort();
    }

    /// Turns Nagle's algorithm off, so that it holds back nothing.
    pub(super) fn push(&mut self) {
        self.socket().set_nagle_enabled(false);
    }

    /// 52 bytes are the headers of IPv4 (20) and TCP (20) with the timestamp option (12).
    pub(super) const fn transport(&self) -> TransportRecord {
        self.segments.transport(self.mtu as u64 - 52)
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mss = self.mtu - 52;
        let socket = self.sockets.get::<Socket<'static>>(self.handle);
        let congestion = match socket.congestion_control() {
            CongestionControl::None => "none",
            CongestionControl::Reno => "reno",
            CongestionControl::Cubic => "cubic",
        };
        let delayed = self
            .delayed_ack
            .map_or(0.0, |span| span.total_micros() as f64 / 1e6);
        let settings = [
            ("congestion", congestion.to_string()),
            (
                "nodelay",
                if socket.nagle_enabled() { "off" } else { "on" }.to_string(),
            ),
            ("mss", format!("{mss} B")),
            ("send_buffer", format!("{} B", socket.send_capacity())),
            ("receive_buffer", format!("{} B", socket.recv_capacity())),
            ("delayed_ack", stackline_core::units::format_time(delayed)),
        ];
        settings
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }
}

/// The answer to a segment of a connection that is over: a FIN is acknowledged as in TIME-WAIT, anything else gets a RST.
pub(super) fn reply_to_closed(
    wire: &SimTcpWire,
    datagram: &SimDatagram,
) -> Option<NetworkPacket<SimDatagram>> {
    let fields = SimTcpHeaderFields::from_header(datagram.header());
    if fields.has(RST) {
        return None;
    }
    let next = fields.sequence.wrapping_add(datagram.carried() as u32);
    let (acknowledged, flags) = if fields.has(FIN) {
        (next.wrapping_add(1), ACK)
    } else {
        (next, RST | ACK)
    };
    let mut header = [0; 40];
    header[..20].copy_from_slice(&ipv4_header(wire.from, wire.to, TCP, 40, 0, 0));
    header[20..22].copy_from_slice(&fields.destination.to_be_bytes());
    header[22..24].copy_from_slice(&fields.source.to_be_bytes());
    header[24..28].copy_from_slice(&fields.acknowledged.to_be_bytes());
    header[28..32].copy_from_slice(&acknowledged.to_be_bytes());
    header[32] = 5 << 4;
    header[33] = flags;
    Some(wire.packet(
        40,
        SimDatagram::new(
            wire.pair,
            datagram.connection,
            &header,
            SimDatagramBody::Zeros(0),
        ),
    ))
}

/// The network device that smoltcp sees during one call: it holds the packet that arrives, if any, and collects those that leave.
struct Nic<'n> {
    mtu: usize,
    arriving: Option<&'n [u8]>,
    frame: &'n mut Vec<u8>,
    leaving: &'n mut Vec<NetworkPacket<SimDatagram>>,
    pair: u32,
    connection: u32,
}

impl Device for Nic<'_> {
    type RxToken<'t>
        = Arriving<'t>
    where
        Self: 't;
    type TxToken<'t>
        = SmolTxToken<'t>
    where
        Self: 't;

    fn receive(&mut self, _: Moment) -> Option<(Arriving<'_>, SmolTxToken<'_>)> {
        let arriving = self.arriving.take()?;
        let (frame, leaving, pair, connection) = (
            &mut *self.frame,
            &mut *self.leaving,
            self.pair,
            self.connection,
        );
        Some((
            Arriving(arriving),
            SmolTxToken {
                frame,
                leaving,
                pair,
                connection,
            },
        ))
    }

    fn transmit(&mut self, _: Moment) -> Option<SmolTxToken<'_>> {
        let (frame, leaving, pair, connection) = (
            &mut *self.frame,
            &mut *self.leaving,
            self.pair,
            self.connection,
        );
        Some(SmolTxToken {
            frame,
            leaving,
            pair,
            connection,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }
}

/// The packet that arrives.
struct Arriving<'t>(&'t [u8]);

impl RxToken for Arriving<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

/// Permission to send one packet: smoltcp writes it into `frame`, and it is added to `leaving` without addresses.
struct SmolTxToken<'t> {
    frame: &'t mut Vec<u8>,
    leaving: &'t mut Vec<NetworkPacket<SimDatagram>>,
    pair: u32,
    connection: u32,
}

impl TxToken for SmolTxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let frame = &mut self.frame[..length];
        let result = f(frame);
        let headers = 20 + usize::from(frame[32] >> 4) * 4;
        let body = SimDatagramBody::Zeros((length - headers) as u32);
        let payload = SimDatagram::new(self.pair, self.connection, &frame[..headers], body);
        let (from, to) = (NodeIndex(0), NodeIndex(0));
        let wire = SimTcpWire {
            pair: self.pair,
            connection: self.connection,
            from,
            to,
            side: PairSide::Initiator,
            is_v6: false,
        };
        self.leaving.push(wire.packet(length, payload));
        result
    }
}
