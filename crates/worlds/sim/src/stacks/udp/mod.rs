//! `udp`: data units as datagrams, numbered and controlled exactly as in the live world: the same packets in the same
//! order, so that a link's losses, drawn packet by packet, strike the same ones.

mod control;
mod datagrams;

use datagrams::Datagrams;

use super::pair::{Pair, Route, Stack};
use super::udp_socket::{LARGEST_DATAGRAM, RECEIVE_BUFFER, SEND_BUFFER, Socket};
use crate::context::Context;
use crate::datagram::Datagram;
use crate::error::Result;
use crate::executor::Executor;
use crate::world::{self, Connect, Work};
use stackline_core::catalogue::{
    ClosedForm, Mapping, OptionKind, OptionTable, PacketContent, StackFacts, StackTable,
};
use stackline_core::plan;
use stackline_core::program::Side;
use stackline_core::time::{Duration, Instant};
use stackline_net::Packet;
use stackline_proto::datagram::{NUMBER, Token};
use std::rc::Rc;

/// Of initiator and responder.
const PORTS: [u16; 2] = [40_000, 4000];

const TABLE: StackTable = StackTable {
    name: "udp",
    summary: "UDP datagrams over IPv4 in virtual time: unordered, unacknowledged, counted",
    largest_unit: LARGEST_DATAGRAM,
    least_bulk_unit: NUMBER as u64,
    reliable: false,
    files: false,
    options: &[
        SEND_BUFFER,
        RECEIVE_BUFFER,
        OptionTable::new(
            "timeout",
            OptionKind::Time,
            "1 s",
            "a call without an answer after this time counts as lost",
        ),
    ],
    mapping: &[
        Mapping {
            operation: "ConnectRequest",
            services: "control HELLO until answered",
        },
        Mapping {
            operation: "AwaitConnectIndication",
            services: "a HELLO with the token, answer",
        },
        Mapping {
            operation: "DataRequest",
            services: "a datagram, in fragments where the path's MTU is smaller",
        },
        Mapping {
            operation: "AwaitDataIndication",
            services: "a datagram",
        },
        Mapping {
            operation: "RPCCall",
            services: "a datagram each way; an answer to an earlier call is dropped, none within `timeout` is a loss",
        },
        Mapping {
            operation: "RPCAwaitCallInd",
            services: "a datagram",
        },
        Mapping {
            operation: "RPCReturn",
            services: "a datagram, with the number of the request",
        },
        Mapping {
            operation: "StartBulkGet, StartBulkPut",
            services: "control START until answered (or until data comes)",
        },
        Mapping {
            operation: "AwaitStartBulkGet, AwaitStartBulkPut",
            services: "START, answer",
        },
        Mapping {
            operation: "StopBulkGet, AwaitStopBulkPut",
            services: "END with the number of units sent, answer",
        },
        Mapping {
            operation: "AwaitStopBulkGet, StopBulkPut",
            services: "control END until answered",
        },
        Mapping {
            operation: "end of stream (time limit)",
            services: "control END until answered",
        },
        Mapping {
            operation: "DisconnectRequest",
            services: "control BYE until answered",
        },
        Mapping {
            operation: "AwaitDisconnectIndication",
            services: "BYE, answer",
        },
    ],
    facts: StackFacts {
        packets: PacketContent::Datagrams,
        form: ClosedForm::Udp,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// The stack.
pub(super) static STACK: Stack = Stack {
    table: &TABLE,
    pair: |route, stack, seed, _| Ok(Rc::new(UdpPair::new(route, stack, seed))),
};

/// The two sockets of a pair.
#[derive(Debug)]
struct UdpPair {
    route: Route,
    token: Token,
    timeout: Duration,
    sockets: [Socket; 2],
}

impl UdpPair {
    pub(super) fn new(route: Route, stack: &plan::Stack, seed: u64) -> Self {
        let sockets = Socket::pair(&route, stack, PORTS);
        let timeout = Duration::from_seconds(stack.seconds("timeout").unwrap_or(1.0));
        Self {
            route,
            token: control::token(seed),
            timeout,
            sockets,
        }
    }

    fn socket(&self, side: Side) -> &Socket {
        &self.sockets[side.index()]
    }

    /// Whether the other side's socket is there.
    fn peer_is_there(&self, side: Side) -> bool {
        !self.socket(side.other()).is_closed()
    }
}

impl Pair for UdpPair {
    fn route(&self) -> &Route {
        &self.route
    }

    fn spawn(self: Rc<Self>, context: Rc<Context>, replica: u32) -> Work {
        world::spawn(self, context, replica)
    }

    fn arrived(&self, side: Side, packet: &mut Packet<Datagram>, executor: &Rc<Executor>) {
        self.socket(side)
            .arrived(&packet.payload, &self.token, executor);
    }

    fn wants_departures(&self) -> bool {
        true
    }

    fn departed(&self, side: Side, at: Instant, bytes: u32, executor: &Executor) {
        self.socket(side).departed(at, bytes, executor);
    }
}

impl Connect for UdpPair {
    type Service = Datagrams;

    async fn connect(self: &Rc<Self>, context: &Rc<Context>) -> Result<Datagrams> {
        Datagrams::connect(self, context).await
    }

    async fn accept(self: &Rc<Self>, context: &Rc<Context>, first: bool) -> Result<Datagrams> {
        Datagrams::accept(self, context, first).await
    }

    fn close(&self, side: Side) {
        self.socket(side).close();
    }
}
