//! A simulated UDP socket: sends datagrams, fragmented where they exceed the MTU, reassembles arriving ones, and keeps those that were
//! not received yet.

use super::pair::SimPairRoute;
use super::send_credit::SendCredit;
use crate::context::SimEndpointContext;
use crate::datagram::{
    FRAGMENT, FRAGMENT_HEADER, ICMP, ICMPV6, IPV6_HEADER, ReassembledSimDatagram, SimDatagram,
    SimDatagramBody, UDP, ipv4_header, ipv6_header,
};
use crate::error::Result;
use crate::run_state::SimRunState;
use crate::run_trace::SimDepartureKind;
use stackline_core::catalogue::{OptionKind, OptionTable, is_over_ipv6};
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::{EcnMarking, NetworkPacket, NodeIndex, SegmentSizes};
use stackline_proto::datagram::DatagramToken;
use stackline_proto::datagram::control::read_control;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Largest payload of an IPv4 datagram.
pub(super) const LARGEST_DATAGRAM: u64 = 65_507;
/// Option: how many bytes may wait to leave.
pub(super) const SEND_BUFFER: OptionTable = OptionTable::new(
    "send_buffer",
    OptionKind::BUFFER,
    "208 KiB",
    "bytes that may wait in the host's interface before a sender blocks",
);
/// Option: how many bytes may wait to be received.
pub(super) const RECEIVE_BUFFER: OptionTable = OptionTable::new(
    "receive_buffer",
    OptionKind::BUFFER,
    "208 KiB",
    "bytes that may wait for a busy receiver; any more are lost",
);
/// Default size of both buffers in bytes, as in Linux.
const BUFFER: u64 = 212_992;
/// Bytes of the IPv4 and UDP headers, as a socket's buffer counts them.
const HEADER: usize = 28;
/// Bytes of the UDP header.
const UDP_HEADER: usize = 8;
/// The most bytes of headers of a packet: IPv6's with that of a fragment, and UDP's.
const LONGEST_HEADER: usize = IPV6_HEADER + FRAGMENT_HEADER + UDP_HEADER;
/// The largest number of incomplete datagrams that are kept; beyond it, the oldest is dropped.
const INCOMPLETE: usize = 64;

/// Something that a socket has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimUdpReceived {
    /// A data unit: the number in its first bytes, its size.
    Unit { number: u64, bytes: u32 },
    /// A control datagram of this run.
    Control { kind: u8, value: u64 },
    /// An ICMP port unreachable: the peer's socket is closed.
    Refused,
}

/// One side's socket.
#[derive(Debug)]
pub(super) struct SimUdpSocket {
    pair: u32,
    from: NodeIndex,
    to: NodeIndex,
    endpoint: u32,
    /// Its own port and the peer's.
    ports: [u16; 2],
    /// Whether its packets are of IPv6.
    is_v6: bool,
    mtu: usize,
    credit: SendCredit,
    /// Size of the receive buffer, bytes.
    receive_room: u64,
    closed: Cell<bool>,
    state: RefCell<SimUdpSocketState>,
}

#[derive(Debug, Default)]
struct SimUdpSocketState {
    /// What was received and not taken yet.
    inbox: VecDeque<SimUdpReceived>,
    /// Bytes in the inbox, headers included.
    waiting: u64,
    /// The IPv4 identification of the last datagram that was sent.
    identification: u16,
    incomplete: VecDeque<Incomplete>,
}

/// A datagram some of whose fragments have arrived.
#[derive(Debug)]
struct Incomplete {
    identification: u16,
    /// How many fragments are missing, and which have arrived.
    missing: u16,
    arrived: Vec<bool>,
}

impl SimUdpSocket {
    /// The two sockets of a pair; `ports` are the initiator's and the responder's.
    pub(super) fn pair(route: &SimPairRoute, stack: &plan::Stack, ports: [u16; 2]) -> [Self; 2] {
        [PairSide::Initiator, PairSide::Responder].map(|side| Self::new(route, stack, side, ports))
    }

    fn new(route: &SimPairRoute, stack: &plan::Stack, side: PairSide, ports: [u16; 2]) -> Self {
        let [send_room, receive_room] =
            [SEND_BUFFER, RECEIVE_BUFFER].map(|option| stack.number(option.name).unwrap_or(BUFFER));
        Self {
            pair: route.pair,
            from: route.node(side),
            to: route.node(side.other()),
            ports: [side, side.other()].map(|side| ports[side.index()]),
            endpoint: route.endpoint(side),
            is_v6: is_over_ipv6(stack),
            mtu: usize::try_from(route.mtu).unwrap_or(usize::MAX).max(64),
            credit: SendCredit::new(send_room.min(route.rooms[side.index()])),
            receive_room,
            closed: Cell::new(false),
            state: RefCell::default(),
        }
    }

    pub(super) fn close(&self) {
        self.closed.set(true);
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// The sizes of its buffers, by option name.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let buffers = [
            (SEND_BUFFER, self.credit.bytes()),
            (RECEIVE_BUFFER, self.receive_room),
        ];
        buffers
            .map(|(option, bytes)| (option.name.to_string(), format!("{bytes} B")))
            .into()
    }

    // --- what leaves ---

    /// Sends a data unit as soon as there is room in the host's interface; its first bytes hold `number`.
    pub(super) async fn send_unit(
        &self,
        context: &SimEndpointContext,
        what: SimDepartureKind,
        number: u64,
        bytes: u64,
    ) -> Result<()> {
        let unit = context.trace(|line, at| line.leaves(at, what, bytes));
        self.drained(context, None).await?;
        let body = SimDatagramBody::Unit {
            number,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        };
        self.send(body, unit, &context.shared);
        context.trace(|line, at| line.left(at, what, bytes));
        Ok(())
    }

    /// Waits until at most `most` bytes of this socket are left in the host's interface; with `None`, until there is room to send.
    pub(super) async fn drained(
        &self,
        context: &SimEndpointContext,
        most: Option<u64>,
    ) -> Result<()> {
        let credit = |shared: &SimRunState| match most {
            Some(most) => self.credit.down_to(most, most, shared),
            None => self.credit.room(shared),
        };
        let room = || match credit(&context.shared) {
            Ok(()) => Some(()),
            Err(when) => {
                when.inspect(|at| context.wake_at(*at));
                None
            }
        };
        context.until("its host's interface", room).await
    }

    /// A packet of `bytes` bytes has left the host's interface at `at`, or was dropped there.
    pub(super) fn departed(&self, at: Instant, bytes: u32, shared: &SimRunState) {
        if self.credit.departed(at, bytes) {
            shared.wake(self.endpoint);
        }
    }

    /// Sends a datagram with that body; `unit` is the id of the data unit in a trace.
    pub(super) fn send(&self, body: SimDatagramBody, unit: Option<i64>, shared: &SimRunState) {
        let carried = match &body {
            SimDatagramBody::Unit { bytes, .. } => *bytes as usize,
            SimDatagramBody::Control(control) => control.len(),
            _ => 0,
        };
        let length = self.ip_header() + UDP_HEADER + carried;
        let identification = {
            let mut state = self.state.borrow_mut();
            state.identification = state.identification.wrapping_add(1);
            state.identification
        };
        if length > self.mtu
            && let SimDatagramBody::Unit { number, bytes } = body
        {
            return self.send_fragments(
                ReassembledSimDatagram {
                    identification,
                    number,
                    bytes,
                },
                unit,
                shared,
            );
        }
        let mut header = SocketHeader::default();
        if self.is_v6 {
            let behind = UDP_HEADER + carried;
            header.push(&ipv6_header(self.from, self.to, UDP, behind));
        } else {
            let (from, to) = (self.from, self.to);
            header.push(&ipv4_header(from, to, UDP, length, identification, 0));
        }
        header.push(&self.udp_header(UDP_HEADER + carried));
        self.hand_over(header.bytes(), length, body, unit, shared);
    }

    /// Bytes of the IP header of a whole datagram.
    const fn ip_header(&self) -> usize {
        if self.is_v6 { IPV6_HEADER } else { 20 }
    }

    fn udp_header(&self, length: usize) -> [u8; 8] {
        let mut header = [0; 8];
        header[..2].copy_from_slice(&self.ports[0].to_be_bytes());
        header[2..4].copy_from_slice(&self.ports[1].to_be_bytes());
        header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        header
    }

    /// Sends a datagram as fragments: all but the last carry a multiple of 8 bytes, the unit of the offset.
    fn send_fragments(
        &self,
        whole: ReassembledSimDatagram,
        unit: Option<i64>,
        shared: &SimRunState,
    ) {
        let total = UDP_HEADER + whole.bytes as usize;
        let before = self.ip_header() + if self.is_v6 { FRAGMENT_HEADER } else { 0 };
        let most = (self.mtu - before) & !7;
        let count = total.div_ceil(most);
        for index in 0..count {
            let offset = index * most;
            let n = most.min(total - offset);
            let mut header = SocketHeader::default();
            self.push_fragment(&mut header, &whole, offset as u16, n, index + 1 < count);
            let mut bytes = n;
            if index == 0 {
                header.push(&self.udp_header(total));
                bytes -= UDP_HEADER;
            }
            let body = SimDatagramBody::Fragment {
                whole,
                index: index as u16,
                count: count as u16,
                bytes: bytes as u32,
            };
            self.hand_over(header.bytes(), before + n, body, unit, shared);
        }
    }

    /// The IP headers of a fragment with `n` bytes from that offset of its datagram on.
    fn push_fragment(
        &self,
        header: &mut SocketHeader,
        whole: &ReassembledSimDatagram,
        offset: u16,
        n: usize,
        more: bool,
    ) {
        let (from, to, identification) = (self.from, self.to, whole.identification);
        if self.is_v6 {
            header.push(&ipv6_header(from, to, FRAGMENT, FRAGMENT_HEADER + n));
            let [high, low] = (offset | u16::from(more)).to_be_bytes();
            let [first, second] = identification.to_be_bytes();
            header.push(&[UDP, 0, high, low, 0, 0, first, second]);
        } else {
            let place = (offset / 8) | (u16::from(more) << 13);
            header.push(&ipv4_header(from, to, UDP, 20 + n, identification, place));
        }
    }

    fn hand_over(
        &self,
        header: &[u8],
        length: usize,
        body: SimDatagramBody,
        unit: Option<i64>,
        shared: &SimRunState,
    ) {
        if !matches!(body, SimDatagramBody::Refused) {
            self.credit.handed(length as u64);
        }
        let mut payload = SimDatagram::new(self.pair, 0, header, body);
        if let Some(unit) = unit {
            let bytes = payload.carried() as u32;
            payload = payload.at(unit as u64, bytes);
        }
        let (from, to, flow) = (self.from, self.to, self.pair);
        let segments = SegmentSizes::one(length as u32);
        shared.send(NetworkPacket {
            number: 0,
            from,
            to,
            flow,
            ecn: EcnMarking::NotCapable,
            dscp: 0,
            segments,
            payload,
        });
    }

    // --- what arrives ---

    pub(super) fn arrived(
        &self,
        datagram: &SimDatagram,
        token: &DatagramToken,
        shared: &Rc<SimRunState>,
    ) {
        let received = match datagram.body() {
            SimDatagramBody::Unit { number, bytes } => Some(SimUdpReceived::Unit {
                number: *number,
                bytes: *bytes,
            }),
            SimDatagramBody::Control(control) => read_control(control, token)
                .map(|(kind, value)| SimUdpReceived::Control { kind, value }),
            SimDatagramBody::Fragment {
                whole,
                index,
                count,
                ..
            } => self.whole(*whole, *index, *count),
            SimDatagramBody::Refused => Some(SimUdpReceived::Refused),
            SimDatagramBody::Zeros(_)
            | SimDatagramBody::Bytes(_)
            | SimDatagramBody::Message(_)
            | SimDatagramBody::Answer(..) => None,
        };
        let Some(received) = received else { return };
        if self.closed.get() {
            return self.refuse(received, shared);
        }
        let bytes = size(&received);
        let mut state = self.state.borrow_mut();
        if state.waiting + bytes <= self.receive_room || state.inbox.is_empty() {
            state.waiting += bytes;
            state.inbox.push_back(received);
            shared.wake(self.endpoint);
        }
    }

    /// Answers for a closed socket: ICMP port unreachable (type 3, code 3; over IPv6 type 1, code 4) with the headers of what came. Never
    /// answers ICMP itself.
    fn refuse(&self, received: SimUdpReceived, shared: &SimRunState) {
        if received != SimUdpReceived::Refused {
            let mut header = SocketHeader::default();
            let quoted = self.ip_header() + UDP_HEADER;
            let length = self.ip_header() + UDP_HEADER + quoted;
            if self.is_v6 {
                let behind = UDP_HEADER + quoted;
                header.push(&ipv6_header(self.from, self.to, ICMPV6, behind));
                header.push(&[1, 4, 0, 0, 0, 0, 0, 0]);
            } else {
                header.push(&ipv4_header(self.from, self.to, ICMP, length, 0, 0));
                header.push(&[3, 3, 0, 0, 0, 0, 0, 0]);
            }
            self.hand_over(
                header.bytes(),
                length,
                SimDatagramBody::Refused,
                None,
                shared,
            );
        }
    }

    /// Notes that a fragment has arrived. Returns the data unit when the datagram is complete.
    fn whole(
        &self,
        whole: ReassembledSimDatagram,
        index: u16,
        count: u16,
    ) -> Option<SimUdpReceived> {
        let incomplete = &mut self.state.borrow_mut().incomplete;
        let found = incomplete
            .iter()
            .position(|one| one.identification == whole.identification);
        let at = found.unwrap_or_else(|| {
            if incomplete.len() == INCOMPLETE {
                incomplete.pop_front();
            }
            let arrived = vec![false; usize::from(count)];
            incomplete.push_back(Incomplete {
                identification: whole.identification,
                missing: count,
                arrived,
            });
            incomplete.len() - 1
        });
        let one = &mut incomplete[at];
        let arrived = one.arrived.get_mut(usize::from(index))?;
        if !std::mem::replace(arrived, true) {
            one.missing -= 1;
        }
        if one.missing > 0 {
            return None;
        }
        incomplete.remove(at);
        Some(SimUdpReceived::Unit {
            number: whole.number,
            bytes: whole.bytes,
        })
    }

    /// Takes the next that was received.
    pub(super) fn take(&self) -> Option<SimUdpReceived> {
        let mut state = self.state.borrow_mut();
        let received = state.inbox.pop_front()?;
        state.waiting -= size(&received);
        Some(received)
    }

    /// Drops what was received and not taken.
    pub(super) fn clear(&self) {
        let mut state = self.state.borrow_mut();
        state.inbox.clear();
        state.waiting = 0;
    }
}

/// The headers of a packet while they are put together.
struct SocketHeader {
    bytes: [u8; LONGEST_HEADER],
    length: usize,
}

impl Default for SocketHeader {
    fn default() -> Self {
        Self {
            bytes: [0; LONGEST_HEADER],
            length: 0,
        }
    }
}

impl SocketHeader {
    fn push(&mut self, header: &[u8]) {
        self.bytes[self.length..][..header.len()].copy_from_slice(header);
        self.length += header.len();
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Bytes that count against the receive buffer; 25 is the size of a control datagram.
const fn size(received: &SimUdpReceived) -> u64 {
    match received {
        SimUdpReceived::Unit { bytes, .. } => HEADER as u64 + *bytes as u64,
        SimUdpReceived::Control { .. } => HEADER as u64 + 25,
        SimUdpReceived::Refused => 0,
    }
}
