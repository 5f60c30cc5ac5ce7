//! The stack `ncp`: connections of the ARPANET's Host-Host protocol of 1972 between hosts of IMPs, with the machine of
//! `proto::papers::ncp` at each end.

mod end;

use super::byte_stream::{Introductions, SimStreamPair};
use super::pair::{SimConnectionPair, SimEndpointPair, SimPairRoute, SimStack, is_same_end};
use crate::datagram::{SimDatagram, SimDatagramBody};
use crate::error::Result;
use crate::run_state::{ConnectionEnd, SimRunState};
use crate::run_trace::SimTraceLog;
use end::SimNcpEnd;
use stackline_core::catalogue::{
    ClosedForm, FlowControl, OptionKind, OptionTable, PacketContent, PacketsInFlight,
    ServiceMapping, StackFacts, StackTable,
};
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::NetworkPacket;
use stackline_proto::papers::ncp::{
    MESSAGE_BYTES, NcpConnection, NcpMessageKind, NcpOptions, NcpState,
};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Default bytes that a receiver allocates: eight full messages.
const ALLOCATE: u64 = 8 * MESSAGE_BYTES as u64;
/// Default size of the send buffer, bytes.
const SEND_BUFFER: u64 = 16 << 10;

const MAPPING: ServiceMapping = ServiceMapping(
    "\
ConnectRequest -> one message each way that opens and allocates, then 16 bytes of introduction
AwaitConnectIndication -> the same, from the other side
DataRequest -> the whole unit into the send buffer, then in messages as free links and allocated space permit
AwaitDataIndication -> from the received data until the unit is complete; what is read is allocated again
RPCCall -> the request into the send buffer, the response from the received data
RPCAwaitCallInd, RPCReturn -> the same, from the other side
StartBulkGet, StartBulkPut -> 1 byte
StopBulkGet, AwaitStopBulkGet -> none: the last unit has arrived
StopBulkPut, AwaitStopBulkPut -> 1 byte that confirms arrival
end of stream (time limit) -> CLS once everything has been delivered
DisconnectRequest -> CLS
AwaitDisconnectIndication -> CLS from the peer, then a CLS in reply",
);

static TABLE: StackTable = StackTable {
    name: "ncp",
    summary: "the Host-Host protocol of 1972 over IMPs (NIC 8246), in virtual time",
    files: false,
    imps: true,
    options: &[
        OptionTable::new(
            "links",
            OptionKind::Number(1, 64),
            "1",
            "messages in flight at once: each link carries one until its RFNM arrives; NETSPD used 4",
        ),
        OptionTable::new(
            "allocate",
            OptionKind::Bytes(1, 1 << 30),
            "8 messages of 1003 B",
            "bytes that a receiver allocates to its sender, and reallocates as they are read",
        ),
        OptionTable::new(
            "send_buffer",
            OptionKind::BUFFER,
            "16 KiB",
            "undelivered bytes that the send buffer can hold",
        ),
    ],
    mapping: MAPPING,
    unreported: (
        &["cwnd_segments", "rtt_var_s", "busy_s"],
        "the protocol has no congestion window and does not measure round-trip times",
    ),
    facts: StackFacts {
        packets: PacketContent::Stream,
        form: ClosedForm::Messages,
        flow_control: FlowControl::Buffers,
        in_flight: Some(PacketsInFlight::Links(MESSAGE_BYTES as u64)),
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// The stack `ncp`.
pub(super) static STACK: SimStack = SimStack {
    table: &TABLE,
    group: None,
    pair,
};

#[expect(clippy::unnecessary_wraps, reason = "other stacks refuse")]
fn pair(
    route: SimPairRoute,
    stack: &plan::Stack,
    _seed: u64,
    introduces: bool,
) -> Result<Rc<dyn SimEndpointPair>> {
    let options = NcpOptions {
        links: stack
            .number("links")
            .and_then(|links| u16::try_from(links).ok())
            .unwrap_or(1),
        allocate: stack.number("allocate").unwrap_or(ALLOCATE),
        send_buffer: stack.number("send_buffer").unwrap_or(SEND_BUFFER),
    };
    Ok(Rc::new(NcpPair {
        route,
        options,
        introductions: Introductions::new(introduces),
        ends: Default::default(),
        backlog: RefCell::default(),
        dialled: Cell::new(0),
        seen: Cell::new(0),
    }))
}

/// The connections of a pair, one after the other.
#[derive(Debug)]
struct NcpPair {
    route: SimPairRoute,
    options: NcpOptions,
    introductions: Introductions,
    ends: [RefCell<Vec<Rc<SimNcpEnd>>>; 2],
    /// Connections that reached the responder and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<SimNcpEnd>>>,
    /// How many connections the initiator has dialled.
    dialled: Cell<u32>,
    /// How many of them the responder has seen.
    seen: Cell<u32>,
}

impl NcpPair {
    fn add(&self, connection: u32, side: PairSide, machine: NcpConnection) -> Rc<SimNcpEnd> {
        let end = Rc::new(SimNcpEnd::new(&self.route, connection, side, machine));
        self.ends[side.index()].borrow_mut().push(Rc::clone(&end));
        end
    }

    fn find(&self, connection: u32, side: PairSide) -> Option<Rc<SimNcpEnd>> {
        self.ends[side.index()]
            .borrow()
            .iter()
            .rev()
            .find(|end| end.connection() == connection)
            .map(Rc::clone)
    }
}

impl SimConnectionPair for NcpPair {
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
        let opens = matches!(packet.payload.body(), SimDatagramBody::Message(message) if message.kind == NcpMessageKind::Open);
        if side == PairSide::Responder && opens && connection >= self.seen.get() {
            self.seen.set(connection + 1);
            let end = self.add(
                connection,
                side,
                NcpConnection::listen(self.options, shared.now()),
            );
            self.backlog.borrow_mut().push_back(Rc::clone(&end));
            end.arrived(&packet.payload, shared);
        }
    }

    fn timer(&self, connection: u32, side: PairSide, shared: &Rc<SimRunState>) {
        if let Some(end) = self.find(connection, side) {
            end.rang(shared);
        }
    }

    fn sample(&self, at: Instant, log: &SimTraceLog) -> usize {
        self.ends
            .iter()
            .map(|ends| {
                ends.borrow()
                    .iter()
                    .filter(|end| end.sample(at, log))
                    .count()
            })
            .sum()
    }

    /// Removes an end that is over.
    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        self.ends[end.side().index()]
            .borrow_mut()
            .retain(|known| !is_same_end(known, &end));
    }
}

impl SimStreamPair for NcpPair {
    type End = Rc<SimNcpEnd>;

    fn introductions(&self) -> &Introductions {
        &self.introductions
    }

    fn dial(&self, shared: &Rc<SimRunState>) -> Result<Rc<SimNcpEnd>> {
        let connection = self.dialled.get();
        self.dialled.set(connection + 1);
        let end = self.add(
            connection,
            PairSide::Initiator,
            NcpConnection::connect(self.options, shared.now()),
        );
        end.touch(shared);
        Ok(end)
    }

    fn accept(&self) -> Option<Rc<SimNcpEnd>> {
        let mut backlog = self.backlog.borrow_mut();
        let ready = backlog
            .iter()
            .position(|end| end.state() != NcpState::Opening)?;
        backlog.remove(ready)
    }
}
