//! `udp`: data units as datagrams, numbered and controlled exactly as in the live world: the same packets in the same
//! order, so that a link's losses, drawn packet by packet, strike the same ones.

mod control;
mod datagrams;

use datagrams::SimUdpConversation;

use super::pair::{SimConnectionPair, SimPairRoute, SimStack};
use super::udp_socket::{LARGEST_DATAGRAM, RECEIVE_BUFFER, SEND_BUFFER, SimUdpSocket};
use crate::context::SimEndpointContext;
use crate::datagram::SimDatagram;
use crate::error::Result;
use crate::run_state::SimRunState;
use crate::world::Connect;
use stackline_core::catalogue::{
    ClosedForm, IP_FAMILY, PacketContent, ServiceMapping, StackFacts, StackTable,
    least_mtu_of_family,
};
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_net::NetworkPacket;
use stackline_proto::datagram::{DatagramToken, NUMBER, TIMEOUT, call_timeout};
use std::rc::Rc;

/// The UDP ports of initiator and responder.
const PORTS: [u16; 2] = [40_000, 4000];

const TABLE: StackTable = StackTable {
    name: "udp",
    summary: "UDP datagrams over IPv4 or IPv6 in virtual time: unordered, unacknowledged, counted",
    least_mtu: least_mtu_of_family,
    largest_unit: LARGEST_DATAGRAM,
    least_bulk_unit: NUMBER as u64,
    reliable: false,
    files: false,
    options: &[
        SEND_BUFFER,
        RECEIVE_BUFFER,
        TIMEOUT,
        IP_FAMILY,
        super::ip_options::DSCP,
    ],
    mapping: ServiceMapping(
"\
ConnectRequest -> control HELLO until answered
AwaitConnectIndication -> a HELLO with the token, answer
DataRequest -> a datagram, in fragments where the path's MTU is smaller
AwaitDataIndication -> a datagram
RPCCall -> a datagram each way; an answer to an earlier call is dropped; no answer within `timeout` counts as a loss
RPCAwaitCallInd -> a datagram
RPCReturn -> a datagram, with the number of the request
StartBulkGet, StartBulkPut -> control START until answered (or until data arrives)
AwaitStartBulkGet, AwaitStartBulkPut -> START, answer
StopBulkGet, AwaitStopBulkPut -> END with the number of units sent, answer
AwaitStopBulkGet, StopBulkPut -> control END until answered
end of stream (time limit) -> control END until answered
DisconnectRequest -> control BYE until answered
AwaitDisconnectIndication -> BYE, answer",
),
    facts: StackFacts {
        packets: PacketContent::Datagrams,
        form: ClosedForm::Udp,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// The stack `udp`.
pub(super) static STACK: SimStack = SimStack {
    table: &TABLE,
    group: None,
    pair: |route, stack, seed, _| Ok(Rc::new(UdpPair::new(route, stack, seed))),
};

/// The two sockets of a pair.
#[derive(Debug)]
struct UdpPair {
    token: DatagramToken,
    timeout: Duration,
    sockets: [SimUdpSocket; 2],
}

impl UdpPair {
    pub(super) fn new(route: SimPairRoute, stack: &plan::Stack, seed: u64) -> Self {
        let sockets = SimUdpSocket::pair(&route, stack, PORTS);
        let timeout = call_timeout(stack);
        Self {
            token: control::seeded_token(seed),
            timeout,
            sockets,
        }
    }

    fn socket(&self, side: PairSide) -> &SimUdpSocket {
        &self.sockets[side.index()]
    }

    /// Whether the other side's socket is open.
    fn peer_is_there(&self, side: PairSide) -> bool {
        !self.socket(side.other()).is_closed()
    }
}

impl SimConnectionPair for UdpPair {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        self.socket(side)
            .arrived(&packet.payload, &self.token, shared);
    }

    fn wants_departures(&self) -> bool {
        true
    }

    fn departed(&self, side: PairSide, at: Instant, bytes: u32, shared: &SimRunState) {
        self.socket(side).departed(at, bytes, shared);
    }
}

impl Connect for UdpPair {
    type Service = SimUdpConversation;

    async fn connect(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<SimUdpConversation> {
        SimUdpConversation::connect(self, context).await
    }

    async fn accept(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
        first: bool,
    ) -> Result<SimUdpConversation> {
        SimUdpConversation::accept(self, context, first).await
    }

    fn close(&self, side: PairSide) {
        self.socket(side).close();
    }
}
