//! `udp`: data units as datagrams, numbered and controlled exactly as in the live world: the same packets in the same
//! order, so that a link's losses, drawn packet by packet, strike the same ones.

mod control;
mod datagrams;
mod socket;

pub(super) use datagrams::Datagrams;
use socket::Socket;

use super::{Route, other, place};
use crate::datagram::Datagram;
use crate::world::World;
use stackline_core::catalogue::{ClosedForm, Mapping, OptionKind, OptionTable, PacketContent, StackFacts, StackTable};
use stackline_core::plan::Stack;
use stackline_core::program::Side;
use stackline_core::time::{Duration, Instant};
use stackline_net::Packet;
use stackline_proto::datagram::{NUMBER, Token};
use std::rc::Rc;

/// Largest payload of an IPv4 datagram.
const LARGEST_DATAGRAM: u64 = 65_507;
/// Both buffers of a socket, as Linux sets them out.
const BUFFER: u64 = 212_992;

pub(super) const TABLE: StackTable = StackTable {
    name: "udp",
    summary: "UDP datagrams over IPv4 in virtual time: unordered, unacknowledged, counted",
    largest_unit: LARGEST_DATAGRAM,
    least_bulk_unit: NUMBER as u64,
    reliable: false,
    files: false,
    options: &[
        OptionTable::new(
            "send_buffer",
            OptionKind::BUFFER,
            "208 KiB",
            "bytes that may wait in the host's interface before a sender waits",
        ),
        OptionTable::new(
            "receive_buffer",
            OptionKind::BUFFER,
            "208 KiB",
            "bytes that may wait for a receiver that does something else; more are lost",
        ),
        OptionTable::new("timeout", OptionKind::Time, "1 s", "a call without an answer after this time counts as lost"),
    ],
    mapping: &[
        Mapping { operation: "ConnectRequest", services: "control HELLO until answered" },
        Mapping { operation: "AwaitConnectIndication", services: "a HELLO with the token, answer" },
        Mapping { operation: "DataRequest", services: "a datagram, in fragments where the path's MTU is smaller" },
        Mapping { operation: "AwaitDataIndication", services: "a datagram" },
        Mapping {
            operation: "RPCCall",
            services: "a datagram each way; an answer to an earlier call is dropped, none within `timeout` is a loss",
        },
        Mapping { operation: "RPCAwaitCallInd", services: "a datagram" },
        Mapping { operation: "RPCReturn", services: "a datagram, with the number of the request" },
        Mapping {
            operation: "StartBulkGet, StartBulkPut",
            services: "control START until answered (or until data comes)",
        },
        Mapping { operation: "AwaitStartBulkGet, AwaitStartBulkPut", services: "START, answer" },
        Mapping { operation: "StopBulkGet, AwaitStopBulkPut", services: "END with the number of units sent, answer" },
        Mapping { operation: "AwaitStopBulkGet, StopBulkPut", services: "control END until answered" },
        Mapping { operation: "end of stream (time limit)", services: "control END until answered" },
        Mapping { operation: "DisconnectRequest", services: "control BYE until answered" },
        Mapping { operation: "AwaitDisconnectIndication", services: "BYE, answer" },
    ],
    facts: StackFacts { packets: PacketContent::Datagrams, form: ClosedForm::Udp, ..StackTable::RELIABLE.facts },
    ..StackTable::RELIABLE
};

/// The two sockets of a pair.
#[derive(Debug)]
pub(crate) struct UdpPair {
    pub(crate) route: Route,
    token: Token,
    timeout: Duration,
    sockets: [Socket; 2],
}

impl UdpPair {
    pub(super) fn new(route: Route, stack: &Stack, seed: u64) -> Self {
        let buffer = |name: &str| stack.number(name).unwrap_or(BUFFER);
        let socket = |side| Socket::new(&route, side, buffer("send_buffer"), buffer("receive_buffer"));
        Self {
            route,
            token: control::token(seed),
            timeout: Duration::from_seconds(stack.seconds("timeout").unwrap_or(1.0)),
            sockets: [socket(Side::Initiator), socket(Side::Responder)],
        }
    }

    fn socket(&self, side: Side) -> &Socket {
        &self.sockets[place(side)]
    }

    pub(super) fn arrived(&self, side: Side, packet: &Packet<Datagram>, world: &Rc<World>) {
        self.socket(side).arrived(&packet.payload, &self.token, world);
    }

    pub(super) fn departed(&self, side: Side, at: Instant, bytes: u32, world: &World) {
        self.socket(side).departed(at, bytes, world);
    }

    pub(super) fn close(&self, side: Side) {
        self.socket(side).close();
    }

    /// Whether the other side's socket is there.
    fn peer_is_there(&self, side: Side) -> bool {
        !self.socket(other(side)).is_closed()
    }
}
