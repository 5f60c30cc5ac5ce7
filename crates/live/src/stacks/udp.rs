//! `udp`: data units as datagrams, one at a time, many a call, or segmented and joined by the kernel.
//!
//! The first 8 bytes of a data unit hold its number (fewer where a call's unit is shorter). Control datagrams hold the
//! token, which no number can look like, so a stranger's datagram is neither. Control is repeated until answered; data
//! never is: what is lost is counted.

use super::sequence::Sequence;
use super::stream::Receive;
use super::{Bulk, Connection, Dialer, Listener, Losses, Protocol, Terms, Token, ip, vanished};
use crate::clock;
use crate::ends::Ends;
use crate::fault::{Fault, Result};
use crate::sys::batch::{Batch, LARGEST_DATAGRAM, receive_joined, send_segmented};
use crate::sys::socket::{self, RecvFlags, SendFlags};
use socket2::{Domain, Socket, Type};
use stackline_core::catalogue::{Mapping, OptionKind, OptionTable, StackTable};
use stackline_core::plan::Stack;
use stackline_core::time::Instant;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

const TABLE: StackTable = StackTable {
    name: "udp",
    summary: "UDP datagrams: unordered, unacknowledged, counted",
    least_unit: 1,
    largest_unit: LARGEST_DATAGRAM as u64,
    least_bulk_unit: NUMBER as u64,
    reliable: false,
    one_host: false,
    files: false,
    options: &[
        OptionTable {
            name: "batch",
            kind: OptionKind::Number(1, 1024),
            default: "1: send and recv",
            help: "datagrams a call: sendmmsg and recvmmsg",
        },
        OptionTable {
            name: "gso",
            kind: OptionKind::Flag,
            default: "off",
            help: "UDP_SEGMENT and UDP_GRO: the kernel cuts and joins; falls back to sendmmsg, and says so, where it cannot",
        },
        OptionTable {
            name: "receive",
            kind: OptionKind::Word(&["block", "spin"]),
            default: "block",
            help: "block: sleep until data comes; spin: ask again and again",
        },
        OptionTable {
            name: "send_buffer",
            kind: OptionKind::Bytes,
            default: "the host's",
            help: "SO_SNDBUF in bytes (the kernel doubles it)",
        },
        OptionTable {
            name: "receive_buffer",
            kind: OptionKind::Bytes,
            default: "the host's",
            help: "SO_RCVBUF in bytes (the kernel doubles it; beyond rmem_max where permitted)",
        },
        OptionTable {
            name: "timeout",
            kind: OptionKind::Time,
            default: "1 s",
            help: "a call without an answer after this time counts as lost",
        },
        OptionTable {
            name: "port",
            kind: OptionKind::Number(1, 65_535),
            default: "any free one",
            help: "first port of the responders; each replica takes the next",
        },
    ],
    mapping: &[
        Mapping { operation: "ConnectRequest", services: "socket, connect, control HELLO until answered" },
        Mapping {
            operation: "AwaitConnectIndication",
            services: "recv of a HELLO with the token, connect to its sender, answer",
        },
        Mapping { operation: "DataRequest", services: "send; batch: sendmmsg; gso: sendmsg with UDP_SEGMENT" },
        Mapping { operation: "AwaitDataIndication", services: "recv; batch: recvmmsg; gso: recvmsg with UDP_GRO" },
        Mapping {
            operation: "RPCCall",
            services: "send, recv; an answer to an earlier call is dropped, none within `timeout` is a loss",
        },
        Mapping { operation: "RPCAwaitCallInd", services: "recv" },
        Mapping { operation: "RPCReturn", services: "send, with the number of the request" },
        Mapping {
            operation: "StartBulkGet, StartBulkPut",
            services: "control START until answered (or until data comes)",
        },
        Mapping { operation: "AwaitStartBulkGet, AwaitStartBulkPut", services: "recv of START, answer" },
        Mapping {
            operation: "StopBulkGet, AwaitStopBulkPut",
            services: "recv of END with the number of units sent, answer",
        },
        Mapping { operation: "AwaitStopBulkGet, StopBulkPut", services: "control END until answered" },
        Mapping { operation: "end of stream (time limit)", services: "control END until answered" },
        Mapping { operation: "DisconnectRequest", services: "control BYE until answered" },
        Mapping { operation: "AwaitDisconnectIndication", services: "recv of BYE, answer" },
    ],
};

/// Bytes of a number.
const NUMBER: usize = 8;
/// Numbers stay below this, so that a token (whose top bit is set) is none.
const NUMBERS: u64 = 1 << 63;
/// Token, kind, value.
const CONTROL: usize = 16 + 1 + 8;
/// As many segments as the kernel takes at once (`UDP_MAX_SEGMENTS` of older kernels).
const SEGMENTS: usize = 64;
/// How long control waits before it is repeated.
const REPEAT: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Control {
    Hello = 1,
    Start = 2,
    End = 3,
    Bye = 4,
}

const ANSWER: u8 = 0x80;

/// The stack.
pub(super) struct Udp;

impl Protocol for Udp {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn listen(&self, terms: &Terms) -> Result<Box<dyn Listener>> {
        let socket = ip::bound(terms, Type::DGRAM, None)?;
        let wire = Wire::new(socket, terms)?;
        Ok(Box::new(UdpListener { wire, terms: terms.clone(), connected: false }))
    }

    fn dial(&self, terms: &Terms, address: &str) -> Result<Box<dyn Dialer>> {
        let target = ip::resolve(address)?;
        let domain = target.as_socket().map_or(Domain::IPV4, Domain::for_address);
        let socket = Socket::new(domain, Type::DGRAM, None).map_err(|e| ip::refused("udp", &e))?;
        socket.connect(&target).map_err(|e| ip::unreachable(address, &e))?;
        let wire = Wire::new(socket, terms)?;
        Ok(Box::new(UdpDialer { wire, terms: terms.clone(), shown: address.to_string() }))
    }
}

/// The socket and what was granted on it; one for all connections of a pair.
#[derive(Clone)]
struct Wire {
    socket: Arc<Socket>,
    receive: Receive,
    batch: usize,
    gso: bool,
    gro: bool,
    timeout: stackline_core::time::Duration,
    notes: Vec<String>,
}

impl Wire {
    fn new(socket: Socket, terms: &Terms) -> Result<Self> {
        let stack = &terms.stack;
        buffers(&socket, stack)?;
        let mut notes = Vec::new();
        let asked = stack.flag("gso");
        let gso = asked && socket::set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        let gro = asked && socket::set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        if asked && !gso {
            notes.push("gso refused: sendmmsg instead".to_string());
        }
        if asked && !gro {
            notes.push("gro refused: recvmmsg instead".to_string());
        }
        let written = stack.number("batch").unwrap_or(1) as usize;
        let batch = if asked && !(gso && gro) { written.max(SEGMENTS) } else { written };
        let timeout = stackline_core::time::Duration::from_seconds(stack.seconds("timeout").unwrap_or(1.0));
        Ok(Self { socket: Arc::new(socket), receive: Receive::of(stack), batch, gso, gro, timeout, notes })
    }
}

impl Wire {
    const fn receive_flags(&self) -> RecvFlags {
        if matches!(self.receive, Receive::Spin) { RecvFlags::DONTWAIT } else { RecvFlags::empty() }
    }
}

fn buffers(socket: &Socket, stack: &Stack) -> Result<()> {
    if let Some(bytes) = stack.number("send_buffer") {
        socket
            .set_send_buffer_size(bytes as usize)
            .map_err(|e| Fault::environment(format!("the option send_buffer of udp is refused: {e}")))?;
    }
    if let Some(bytes) = stack.number("receive_buffer") {
        let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
        // The privileged form goes beyond rmem_max; what was granted is read back into the result.
        if socket::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wanted).is_err() {
            socket
                .set_recv_buffer_size(bytes as usize)
                .map_err(|e| Fault::environment(format!("the option receive_buffer of udp is refused: {e}")))?;
        }
    }
    Ok(())
}

struct UdpListener {
    wire: Wire,
    terms: Terms,
    connected: bool,
}

impl Listener for UdpListener {
    fn address(&self) -> String {
        ip::bound_port(&self.wire.socket)
    }

    fn accept(&mut self, ends: &mut Ends) -> Result<Box<dyn Connection>> {
        let mut connection = Datagrams::new(&self.wire, &self.terms.token);
        if !self.connected {
            let peer = first_hello(&self.wire.socket, &self.terms.token, ends)?;
            // From here on the kernel turns strangers away.
            self.wire.socket.connect(&peer).map_err(|e| Fault::io("connect", &e))?;
            self.connected = true;
            drop_waiting(&self.wire.socket);
            connection.answer(Control::Hello)?;
            connection.greeted = true;
        }
        while !connection.greeted {
            connection.take(ends)?;
        }
        connection.bye = false;
        Ok(Box::new(connection))
    }
}

/// Waits for a HELLO with the token; everything else on the open port is dropped unread.
fn first_hello(socket: &Socket, token: &Token, ends: &Ends) -> Result<socket2::SockAddr> {
    let mut bytes = [0_u8; CONTROL + 1];
    loop {
        // Peeked at for its sender, then taken.
        let from = match socket.peek_sender() {
            Ok(from) => from,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                ends.flags.interrupted()?;
                continue;
            }
            Err(error) => return Err(Fault::io("recvfrom", &error)),
        };
        let Ok(length) = socket::receive(socket.as_fd(), &mut bytes, RecvFlags::DONTWAIT) else { continue };
        if read_control(&bytes[..length], token).is_some_and(|(kind, _)| kind == Control::Hello as u8) {
            return Ok(from);
        }
    }
}

/// What a stranger sent before the socket was connected still waits in it. The peer has sent nothing but HELLO so far.
fn drop_waiting(socket: &Socket) {
    let mut byte = [0_u8; 1];
    while socket::receive(socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_ok() {}
}

/// The kind and value of a control datagram of this run.
pub(crate) fn read_control(bytes: &[u8], token: &Token) -> Option<(u8, u64)> {
    let bytes: &[u8; CONTROL] = bytes.try_into().ok()?;
    let (shown, rest) = bytes.split_at(16);
    let value: [u8; 8] = rest[1..].try_into().ok()?;
    (shown == token).then(|| (rest[0], u64::from_le_bytes(value)))
}

struct UdpDialer {
    wire: Wire,
    terms: Terms,
    shown: String,
}

impl Dialer for UdpDialer {
    fn connect(&mut self, ends: &mut Ends) -> Result<Box<dyn Connection>> {
        let mut connection = Datagrams::new(&self.wire, &self.terms.token);
        connection.exchange(Control::Hello, 0, ends).map_err(|fault| match fault.blame {
            crate::fault::Blame::Ended => fault,
            _ => ip::unreachable(&self.shown, &io::ErrorKind::TimedOut.into()),
        })?;
        Ok(Box::new(connection))
    }
}

/// A conversation in datagrams.
struct Datagrams {
    wire: Wire,
    token: Token,
    outgoing: Option<Batch>,
    incoming: Option<Batch>,
    joined: Vec<u8>,
    next_number: u64,
    sequence: Sequence,
    received_bytes: u64,
    /// Data units that arrived and were not asked for yet.
    ahead: u64,
    /// First bytes of the last data unit: a call's number.
    head: [u8; NUMBER],
    calling: bool,
    lost_calls: u64,
    /// How many units the peer says it sent.
    peer_sent: Option<u64>,
    end_sent: bool,
    greeted: bool,
    started: bool,
    bye: bool,
    /// The last answer that came.
    answered: Option<u8>,
}

impl Datagrams {
    fn new(wire: &Wire, token: &Token) -> Self {
        let batch = |on: bool| {
            (on && wire.batch > 1).then(|| Batch::new(wire.batch, LARGEST_DATAGRAM.min((4 << 20) / wire.batch)))
        };
        Self {
            outgoing: batch(!wire.gso),
            incoming: batch(!wire.gro),
            joined: if wire.gro { vec![0; 1 << 16] } else { Vec::new() },
            wire: wire.clone(),
            token: *token,
            next_number: 0,
            sequence: Sequence::new(),
            received_bytes: 0,
            ahead: 0,
            head: [0; NUMBER],
            calling: false,
            lost_calls: 0,
            peer_sent: None,
            end_sent: false,
            greeted: false,
            started: false,
            bye: false,
            answered: None,
        }
    }

    // --- control ---

    fn send_control(&self, kind: u8, value: u64) -> Result<()> {
        let mut bytes = [0_u8; CONTROL];
        bytes[..16].copy_from_slice(&self.token);
        bytes[16] = kind;
        bytes[17..].copy_from_slice(&value.to_le_bytes());
        match socket::send(self.wire.socket.as_fd(), &bytes, SendFlags::empty()) {
            // A refusal reports an earlier datagram to a peer that is gone; whoever waits for an answer finds out.
            Err(error) if !matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted) => {
                Err(Fault::io("send", &error))
            }
            _ => Ok(()),
        }
    }

    fn answer(&self, kind: Control) -> Result<()> {
        self.send_control(kind as u8 | ANSWER, 0)
    }

    /// Sends control until it is answered.
    fn exchange(&mut self, kind: Control, value: u64, ends: &mut Ends) -> Result<()> {
        let socket = Arc::clone(&self.wire.socket);
        let timeout = |time| socket.set_read_timeout(time).map_err(|e| Fault::io("SO_RCVTIMEO", &e));
        timeout(Some(REPEAT))?;
        let patience = if kind == Control::Bye { 10 * REPEAT } else { ip::PATIENCE };
        let result = self.repeat_until_answered(kind, value, patience, ends);
        timeout(None)?;
        result
    }

    fn repeat_until_answered(&mut self, kind: Control, value: u64, patience: Duration, ends: &mut Ends) -> Result<()> {
        let give_up = clock::now() + stackline_core::time::Duration(patience.as_nanos() as u64);
        self.answered = None;
        while clock::now() < give_up {
            self.send_control(kind as u8, value)?;
            let repeat = clock::now() + stackline_core::time::Duration(REPEAT.as_nanos() as u64);
            while clock::now() < repeat {
                let before = self.ahead;
                match self.take_once(self.wire.receive_flags(), ends) {
                    Ok(()) => {}
                    Err(error) => match error.kind() {
                        io::ErrorKind::WouldBlock => {}
                        io::ErrorKind::Interrupted => ends.flags.interrupted()?,
                        io::ErrorKind::ConnectionRefused if kind == Control::Bye => return Ok(()),
                        io::ErrorKind::ConnectionRefused => {}
                        _ => return Err(Fault::io("recv", &error)),
                    },
                }
                // Data that was asked for says as much as the answer that may have been lost.
                if self.answered == Some(kind as u8) || (kind == Control::Start && self.ahead > before) {
                    return Ok(());
                }
            }
            ends.flags.interrupted()?;
        }
        Err(Fault::measurement("the peer does not answer any more")
            .hint("it ended, or the network lost every control datagram for seconds"))
    }

    fn control_arrived(&mut self, kind: u8, value: u64) {
        if kind & ANSWER != 0 {
            self.answered = Some(kind & !ANSWER);
            return;
        }
        let known = [Control::Hello, Control::Start, Control::End, Control::Bye].into_iter().find(|c| *c as u8 == kind);
        let Some(kind) = known else { return };
        match kind {
            Control::Hello => self.greeted = true,
            Control::Start => self.started = true,
            Control::End => self.peer_sent = Some(value),
            Control::Bye => self.bye = true,
        }
        // An answer that cannot be sent is as good as lost: the peer repeats.
        let _ = self.answer(kind);
    }

    // --- what arrives ---

    /// Waits for at least one datagram.
    fn take(&mut self, ends: &mut Ends) -> Result<()> {
        let flags = self.wire.receive_flags();
        let mut tries = 0_u32;
        loop {
            match self.take_once(flags, ends) {
                Ok(()) => return Ok(()),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        tries = tries.wrapping_add(1);
                        if tries.is_multiple_of(1024) {
                            ends.flags.interrupted()?;
                        }
                        std::hint::spin_loop();
                    }
                    io::ErrorKind::Interrupted => ends.flags.interrupted()?,
                    io::ErrorKind::ConnectionRefused => return Err(vanished("while data was on its way")),
                    _ => return Err(Fault::io("recv", &error)),
                },
            }
        }
    }

    #[inline]
    fn take_once(&mut self, flags: RecvFlags, ends: &mut Ends) -> io::Result<()> {
        if self.wire.gro {
            return self.take_joined(flags);
        }
        if let Some(mut batch) = self.incoming.take() {
            let got = batch.receive(self.wire.socket.as_fd(), flags);
            for index in 0..*got.as_ref().unwrap_or(&0) {
                let length = batch.received(index).min(batch.slot(index).len());
                self.datagram_arrived(&batch.slot(index)[..length]);
            }
            self.incoming = Some(batch);
            return got.map(drop);
        }
        let room = ends.room(1 << 16);
        let got = socket::receive(self.wire.socket.as_fd(), room, flags)?;
        self.datagram_arrived(&room[..got]);
        ends.arrived(got)
    }

    fn take_joined(&mut self, flags: RecvFlags) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.joined);
        let got = receive_joined(self.wire.socket.as_fd(), &mut buffer, flags);
        if let Ok((length, segment)) = &got {
            for datagram in buffer[..*length].chunks(*segment) {
                self.datagram_arrived(datagram);
            }
        }
        self.joined = buffer;
        got.map(drop)
    }

    #[inline]
    fn datagram_arrived(&mut self, bytes: &[u8]) {
        if bytes.len() == CONTROL
            && let Some((kind, value)) = read_control(bytes, &self.token)
        {
            self.control_arrived(kind, value);
        } else if self.calling {
            let n = bytes.len().min(NUMBER);
            self.head[..n].copy_from_slice(&bytes[..n]);
            self.ahead += 1;
        } else if let Some(number) = bytes.first_chunk::<NUMBER>() {
            if self.sequence.arrived(u64::from_le_bytes(*number) % NUMBERS) {
                self.ahead += 1;
                self.received_bytes += bytes.len() as u64;
            }
        } else {
            self.ahead += 1;
            self.received_bytes += bytes.len() as u64;
        }
    }

    // --- what leaves ---

    #[inline]
    fn stamp(unit: &mut [u8], number: u64) {
        match unit.first_chunk_mut::<NUMBER>() {
            Some(head) => *head = number.to_le_bytes(),
            None => unit.copy_from_slice(&number.to_le_bytes()[..unit.len()]),
        }
    }

    #[inline]
    fn send_one(&mut self, bytes: usize, ends: &mut Ends) -> Result<()> {
        let unit = ends.source.outgoing(bytes).map_err(|e| Fault::io("reading the source", &e))?;
        Self::stamp(unit, self.next_number);
        self.next_number += 1;
        loop {
            match socket::send(self.wire.socket.as_fd(), unit, SendFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(error) => went_wrong(&error, bytes, &ends.flags)?,
            }
        }
    }

    fn send_batches(&mut self, bytes: usize, times: u64, ends: &mut Ends) -> Result<u64> {
        let Some(batch) = &mut self.outgoing else { return Ok(0) };
        let mut done = 0;
        while done < times && !(ends.flags.limit() && times > 1) {
            let n = (times - done).min(batch.slots() as u64) as usize;
            if bytes > batch.slot(0).len() {
                return Err(Fault::input(format!("batches of {} datagrams of {bytes} B do not fit", batch.slots()))
                    .hint("a smaller `batch`"));
            }
            for index in 0..n {
                Self::stamp(&mut batch.slot(index)[..bytes], self.next_number + index as u64);
            }
            match batch.send(self.wire.socket.as_fd(), n, bytes) {
                Ok(sent) => {
                    self.next_number += sent as u64;
                    done += sent as u64;
                }
                Err(error) => went_wrong(&error, bytes, &ends.flags)?,
            }
        }
        Ok(done)
    }

    fn send_segments(&mut self, bytes: usize, times: u64, ends: &mut Ends) -> Result<u64> {
        let most = (LARGEST_DATAGRAM / bytes).clamp(1, SEGMENTS) as u64;
        let mut done = 0;
        while done < times && !(ends.flags.limit() && times > 1) {
            let n = (times - done).min(most) as usize;
            let run = ends.source.outgoing(n * bytes).map_err(|e| Fault::io("reading the source", &e))?;
            for (index, unit) in run.chunks_exact_mut(bytes).enumerate() {
                Self::stamp(unit, self.next_number + index as u64);
            }
            match send_segmented(self.wire.socket.as_fd(), run, bytes as u16) {
                Ok(_) => {
                    self.next_number += n as u64;
                    done += n as u64;
                }
                Err(error) if matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP)) => {
                    self.fall_back(&error);
                    return Ok(done + self.send_batches(bytes, times - done, ends)?);
                }
                Err(error) => went_wrong(&error, bytes, &ends.flags)?,
            }
        }
        Ok(done)
    }

    /// The interface does not segment (or not this size): the same units go out with `sendmmsg`.
    fn fall_back(&mut self, error: &io::Error) {
        self.wire.gso = false;
        self.wire.notes.push(format!("gso refused ({error}): sendmmsg instead"));
        self.outgoing = Some(Batch::new(SEGMENTS, LARGEST_DATAGRAM));
    }

    fn next_call_number(&mut self) -> u64 {
        self.next_number = (self.next_number + 1) % NUMBERS;
        self.next_number
    }

    /// Waits for the answer that carries `number` in its first `n` bytes; false after the timeout.
    fn await_answer(&mut self, number: u64, n: usize, ends: &mut Ends) -> Result<bool> {
        let flags = self.wire.receive_flags();
        let (mut tries, mut waiting) = (0_u32, None);
        loop {
            match self.take_once(flags, ends) {
                Ok(()) => {
                    let right = self.ahead > 0 && self.head[..n] == number.to_le_bytes()[..n];
                    self.ahead = 0;
                    if right {
                        return Ok(true);
                    }
                }
                Err(error) => match error.kind() {
                    // The job's ticker interrupts a waiting call now and then: no clock is read while answers come.
                    io::ErrorKind::Interrupted => {
                        ends.flags.interrupted()?;
                        if self.overdue(&mut waiting) {
                            return Ok(false);
                        }
                    }
                    io::ErrorKind::WouldBlock => {
                        tries = tries.wrapping_add(1);
                        if tries.is_multiple_of(4096) {
                            ends.flags.interrupted()?;
                            if self.overdue(&mut waiting) {
                                return Ok(false);
                            }
                        }
                        std::hint::spin_loop();
                    }
                    io::ErrorKind::ConnectionRefused => return Err(vanished("while a call waited for its answer")),
                    _ => return Err(Fault::io("recv", &error)),
                },
            }
        }
    }

    fn overdue(&self, since: &mut Option<Instant>) -> bool {
        let now = clock::now();
        now - *since.get_or_insert(now) >= self.wire.timeout
    }
}

/// A send that failed: again, or a fault.
#[cold]
fn went_wrong(error: &io::Error, bytes: usize, flags: &crate::ends::Flags) -> Result<()> {
    match error.raw_os_error() {
        Some(libc::EINTR) => flags.interrupted(),
        // The device's queue is full: what a sender without flow control meets; it waits like a full buffer would make it.
        Some(libc::ENOBUFS | libc::EAGAIN) => {
            std::thread::yield_now();
            flags.interrupted()
        }
        Some(libc::ECONNREFUSED) => Err(vanished("while data was on its way")),
        Some(libc::EMSGSIZE) => Err(Fault::input(format!("a datagram of {bytes} B is too long for this path"))
            .hint("udp carries at most 65507 B, less where fragmentation is forbidden")),
        _ => Err(Fault::io("send", error)),
    }
}

impl Connection for Datagrams {
    fn send(&mut self, bytes: usize, times: u64, ends: &mut Ends) -> Result<u64> {
        if self.wire.gso && times > 1 {
            return self.send_segments(bytes, times, ends);
        }
        if self.outgoing.is_some() && times > 1 {
            return self.send_batches(bytes, times, ends);
        }
        for done in 0..times {
            if ends.flags.limit() && times > 1 {
                return Ok(done);
            }
            self.send_one(bytes, ends)?;
        }
        Ok(times)
    }

    fn receive(&mut self, _: usize, times: u64, ends: &mut Ends) -> Result<u64> {
        while self.ahead < times && self.peer_sent.is_none() && !self.bye {
            self.take(ends)?;
        }
        let units = self.ahead.min(times);
        self.ahead -= units;
        Ok(units)
    }

    fn call(&mut self, request: usize, response: usize, ends: &mut Ends) -> Result<bool> {
        self.calling = true;
        let number = self.next_call_number();
        let unit = ends.source.outgoing(request).map_err(|e| Fault::io("reading the source", &e))?;
        Self::stamp(unit, number);
        loop {
            match socket::send(self.wire.socket.as_fd(), unit, SendFlags::empty()) {
                Ok(_) => break,
                Err(error) => went_wrong(&error, request, &ends.flags)?,
            }
        }
        let answered = self.await_answer(number, NUMBER.min(request).min(response), ends)?;
        self.lost_calls += u64::from(!answered);
        Ok(answered)
    }

    fn await_call(&mut self, bytes: usize, ends: &mut Ends) -> Result<bool> {
        self.calling = true;
        Ok(self.receive(bytes, 1, ends)? == 1)
    }

    fn reply(&mut self, bytes: usize, ends: &mut Ends) -> Result<()> {
        let unit = ends.source.outgoing(bytes).map_err(|e| Fault::io("reading the source", &e))?;
        let n = bytes.min(NUMBER);
        unit[..n].copy_from_slice(&self.head[..n]);
        loop {
            match socket::send(self.wire.socket.as_fd(), unit, SendFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(error) => went_wrong(&error, bytes, &ends.flags)?,
            }
        }
    }

    fn start_bulk(&mut self, ends: &mut Ends) -> Result<()> {
        self.exchange(Control::Start, 0, ends)
    }

    fn await_start_bulk(&mut self, ends: &mut Ends) -> Result<()> {
        while !self.started {
            self.take(ends)?;
        }
        self.started = false;
        Ok(())
    }

    fn stop_bulk(&mut self, way: Bulk, ends: &mut Ends) -> Result<()> {
        match way {
            Bulk::Get => self.await_end(ends),
            Bulk::Put => self.end_stream(ends),
        }
    }

    fn await_stop_bulk(&mut self, way: Bulk, ends: &mut Ends) -> Result<()> {
        match way {
            Bulk::Get => self.end_stream(ends),
            Bulk::Put => self.await_end(ends),
        }
    }

    fn end_stream(&mut self, ends: &mut Ends) -> Result<()> {
        if !self.end_sent {
            self.exchange(Control::End, self.next_number, ends)?;
            self.end_sent = true;
        }
        Ok(())
    }

    fn disconnect(mut self: Box<Self>, ends: &mut Ends) -> Result<()> {
        // The last answer may be lost for good when the peer has closed its socket: that is a disconnect as well.
        match self.exchange(Control::Bye, 0, ends) {
            Err(fault) if fault.blame == crate::fault::Blame::Ended => Err(fault),
            _ => Ok(()),
        }
    }

    fn await_disconnect(mut self: Box<Self>, ends: &mut Ends) -> Result<()> {
        while !self.bye {
            self.take(ends)?;
        }
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        let on = |on: bool| if on { "on" } else { "off" }.to_string();
        settings.insert("receive".into(), self.wire.receive.name().into());
        settings.insert("batch".into(), self.wire.batch.to_string());
        settings.insert("gso".into(), on(self.wire.gso));
        settings.insert("gro".into(), on(self.wire.gro));
        for (name, size) in [
            ("send_buffer", self.wire.socket.send_buffer_size()),
            ("receive_buffer", self.wire.socket.recv_buffer_size()),
        ] {
            if let Ok(bytes) = size {
                settings.insert(name.into(), format!("{bytes} B"));
            }
        }
        settings
    }

    fn losses(&self) -> Option<Losses> {
        match self.peer_sent {
            _ if self.calling => Some(Losses { lost: self.lost_calls, ..Losses::default() }),
            Some(sent) => Some(self.sequence.losses(sent)),
            None => None,
        }
    }

    fn received_bytes(&self) -> Option<u64> {
        (!self.calling).then_some(self.received_bytes)
    }

    fn notes(&self) -> Vec<String> {
        self.wire.notes.clone()
    }
}

impl Datagrams {
    fn await_end(&mut self, ends: &mut Ends) -> Result<()> {
        while self.peer_sent.is_none() && !self.bye {
            self.take(ends)?;
        }
        Ok(())
    }
}
