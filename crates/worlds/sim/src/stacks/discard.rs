//! `discard`: data units as UDP datagrams to a server that throws them away and never answers (RFC 863).
//!
//! Only data is sent. What UDP does not say (that somebody listens, that a stream has ended and how many units it had)
//! the responder is given by the simulator. It continues when all units have arrived, or when none has arrived for
//! `patience`.

use super::pair::{SimConnectionPair, SimPairRoute, SimStack};
use super::udp_socket::{
    LARGEST_DATAGRAM, RECEIVE_BUFFER, SEND_BUFFER, SimUdpReceived, SimUdpSocket,
};
use crate::context::SimEndpointContext;
use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::run_state::SimRunState;
use crate::run_trace::{Coming, SimDepartureKind};
use crate::world::Connect;
use stackline_core::catalogue::{
    ClosedForm, OptionKind, OptionTable, PacketContent, ServiceMapping, StackFacts, StackTable,
};
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::{BulkDirection, ConnectionFacts, EndpointService};
use stackline_net::NetworkPacket;
use stackline_proto::datagram::loss_counter::Sequence;
use stackline_proto::datagram::{DatagramToken, NUMBER};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The lower bits of a datagram's first eight bytes that number the unit; the bits above number the connection.
const NUMBER_BITS: u32 = 40;
/// The initiator's UDP port (arbitrary), and the port of RFC 863.
const PORTS: [u16; 2] = [40_000, 9];

const TABLE: StackTable = StackTable {
    name: "discard",
    summary: "UDP datagrams over IPv4 in virtual time, never answered (RFC 863)",
    largest_unit: LARGEST_DATAGRAM,
    least_bulk_unit: NUMBER as u64,
    reliable: false,
    one_way: true,
    files: false,
    options: &[
        SEND_BUFFER,
        RECEIVE_BUFFER,
        OptionTable::new(
            "patience",
            OptionKind::Time,
            "1 s",
            "data still missing this long after the last datagram counts as lost",
        ),
        super::ip_options::DSCP,
    ],
    mapping: ServiceMapping(
        "\
ConnectRequest -> nothing is sent; waits until the responder has finished the previous connection
AwaitConnectIndication -> nothing is sent
DataRequest -> a datagram, in fragments where the path's MTU is smaller
AwaitDataIndication -> a datagram
StartBulkPut, AwaitStartBulkPut -> nothing is sent
StopBulkPut -> nothing is sent; returns when the last unit has left the host
AwaitStopBulkPut -> waits until all units have arrived, or none has arrived for `patience`
DisconnectRequest -> nothing is sent
AwaitDisconnectIndication -> waits until all units have arrived, or none has arrived for `patience`",
    ),
    facts: StackFacts {
        packets: PacketContent::Datagrams,
        form: ClosedForm::Udp,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// The stack.
pub(super) static STACK: SimStack = SimStack {
    table: &TABLE,
    group: None,
    pair: |route, stack, _, _| Ok(Rc::new(DiscardPair::new(route, stack))),
};

/// What the initiator has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndedDiscardScope {
    Stream,
    Connection,
}

/// The end of a stream or of a connection.
#[derive(Clone, Copy, Debug)]
struct DiscardEnding {
    what: EndedDiscardScope,
    at: Instant,
    /// Units that were sent before it.
    sent: u64,
}

/// What the simulator knows of a connection without any packet.
#[derive(Debug, Default)]
struct DiscardConnectionTruth {
    accepted: bool,
    sent: u64,
    /// Ends that the responder has not gone past yet.
    ends: VecDeque<DiscardEnding>,
}

/// The two sockets of a pair.
#[derive(Debug)]
struct DiscardPair {
    route: SimPairRoute,
    patience: Duration,
    sockets: [SimUdpSocket; 2],
    /// The number of connections so far, including the present one.
    connections: Cell<u64>,
    /// Whether the present connection is open.
    open: Cell<bool>,
    known: RefCell<DiscardConnectionTruth>,
    arrived: RefCell<DiscardReceiverState>,
}

/// What has arrived over a connection.
#[derive(Debug, Default)]
struct DiscardReceiverState {
    sequence: Sequence,
    units: u64,
    bytes: u64,
    /// The numbers and sizes of the units that were not taken yet.
    waiting: VecDeque<(u64, u32)>,
    last: Instant,
}

impl DiscardPair {
    fn new(route: SimPairRoute, stack: &plan::Stack) -> Self {
        let sockets = SimUdpSocket::pair(&route, stack, PORTS);
        let patience = Duration::from_seconds(stack.seconds("patience").unwrap_or(1.0));
        let (connections, open) = (Cell::new(0), Cell::new(false));
        Self {
            route,
            patience,
            sockets,
            connections,
            open,
            known: RefCell::default(),
            arrived: RefCell::default(),
        }
    }

    fn socket(&self, side: PairSide) -> &SimUdpSocket {
        &self.sockets[side.index()]
    }

    /// Notes that the initiator has ended something, and wakes the responder to check whether it has everything.
    fn end(&self, what: EndedDiscardScope, context: &SimEndpointContext) {
        let mut known = self.known.borrow_mut();
        let sent = known.sent;
        known.ends.push_back(DiscardEnding {
            what,
            at: context.now(),
            sent,
        });
        context
            .shared
            .wake(self.route.endpoint(PairSide::Responder));
    }

    /// Takes the units that the socket has received.
    fn gather(&self, now: Instant) {
        let mut arrived = self.arrived.borrow_mut();
        while let Some(received) = self.socket(PairSide::Responder).take() {
            if let SimUdpReceived::Unit { number, bytes } = received
                && number >> NUMBER_BITS == self.connections.get()
            {
                let number = number & (u64::MAX >> (u64::BITS - NUMBER_BITS));
                arrived.last = now;
                if arrived.sequence.arrived(number) {
                    arrived.units += 1;
                    arrived.bytes += u64::from(bytes);
                    arrived.waiting.push_back((number, bytes));
                }
            }
        }
    }

    /// The next end, once no unit sent before it is expected any more; otherwise until when they are waited for.
    fn ended(&self, now: Instant) -> Result<DiscardEnding, Option<Instant>> {
        let Some(end) = self.known.borrow().ends.front().copied() else {
            return Err(None);
        };
        let arrived = self.arrived.borrow();
        let until = end.at.max(arrived.last) + self.patience;
        if arrived.units >= end.sent || now >= until {
            Ok(end)
        } else {
            Err(Some(until))
        }
    }

    /// The next unit before the next end; `Err` at that end, `None` while there is neither.
    fn next(&self, context: &SimEndpointContext) -> Option<Result<(u64, u32), DiscardEnding>> {
        self.gather(context.now());
        let end = self.ended(context.now());
        let last = self
            .known
            .borrow()
            .ends
            .front()
            .map_or(u64::MAX, |end| end.sent);
        let waiting = &mut self.arrived.borrow_mut().waiting;
        if waiting.front().is_some_and(|(number, _)| *number < last) {
            return waiting.pop_front().map(Ok);
        }
        match end {
            Ok(end) => Some(Err(end)),
            Err(until) => {
                until.inspect(|until| context.wake_at(*until));
                None
            }
        }
    }
}

impl SimConnectionPair for DiscardPair {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        self.socket(side)
            .arrived(&packet.payload, &DatagramToken::default(), shared);
    }

    fn wants_departures(&self) -> bool {
        true
    }

    fn departed(&self, side: PairSide, at: Instant, bytes: u32, shared: &SimRunState) {
        self.socket(side).departed(at, bytes, shared);
    }
}

impl Connect for DiscardPair {
    type Service = Discard;

    async fn connect(self: &Rc<Self>, context: &Rc<SimEndpointContext>) -> Result<Discard> {
        let free = || (!self.open.replace(true)).then_some(());
        context
            .until("the responder to finish the previous connection", free)
            .await?;
        self.connections.set(self.connections.get() + 1);
        self.known.replace(DiscardConnectionTruth::default());
        self.arrived.replace(DiscardReceiverState::default());
        context
            .shared
            .wake(self.route.endpoint(PairSide::Responder));
        Ok(Discard::new(self, PairSide::Initiator, context))
    }

    async fn accept(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
        _first: bool,
    ) -> Result<Discard> {
        let asked = || {
            (self.open.get() && !std::mem::replace(&mut self.known.borrow_mut().accepted, true))
                .then_some(())
        };
        context.until("a connection", asked).await?;
        Ok(Discard::new(self, PairSide::Responder, context))
    }

    fn close(&self, side: PairSide) {
        self.socket(side).close();
    }
}

/// One end of a connection.
#[derive(Debug)]
struct Discard {
    pair: Rc<DiscardPair>,
    side: PairSide,
    context: Rc<SimEndpointContext>,
    /// The own stream has ended.
    ended: bool,
    /// The peer's connection has ended.
    over: bool,
}

impl Discard {
    fn new(pair: &Rc<DiscardPair>, side: PairSide, context: &Rc<SimEndpointContext>) -> Self {
        Self {
            pair: Rc::clone(pair),
            side,
            context: Rc::clone(context),
            ended: false,
            over: false,
        }
    }

    /// Waits for the next end of that kind; units before it are dropped.
    async fn pass(&self, what: EndedDiscardScope, words: &'static str) -> Result<()> {
        loop {
            let next = self
                .context
                .until(words, || self.pair.next(&self.context))
                .await?;
            if let Err(end) = next {
                self.pair.known.borrow_mut().ends.pop_front();
                if end.what == what {
                    return Ok(());
                }
            }
        }
    }
}

/// The error for operations that the specification check refuses before anything runs.
fn unanswered<T>() -> Result<T> {
    Err(Error::input("over `discard`, the responder never sends"))
}

impl EndpointService for Discard {
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        for done in 0..times {
            if self.context.job.flags.limit() && times > 1 {
                return Ok(done);
            }
            let number = self.pair.known.borrow().sent | self.pair.connections.get() << NUMBER_BITS;
            self.pair.known.borrow_mut().sent += 1;
            self.pair
                .socket(self.side)
                .send_unit(&self.context, SimDepartureKind::Unit, number, bytes)
                .await?;
        }
        Ok(times)
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        for done in 0..times {
            self.context.trace(|line, at| line.awaits(at, bytes));
            match self
                .context
                .until("a data unit", || self.pair.next(&self.context))
                .await?
            {
                Ok((number, bytes)) => {
                    self.context.trace(|line, at| {
                        line.comes(at, Coming::Unit, u64::from(bytes), Some(number))
                    });
                }
                Err(end) => {
                    self.over = end.what == EndedDiscardScope::Connection;
                    return Ok(done);
                }
            }
        }
        Ok(times)
    }

    async fn call(&mut self, _request: u64, _response: u64, _since: Instant) -> Result<bool> {
        unanswered()
    }

    async fn await_call(&mut self, _bytes: u64) -> Result<bool> {
        unanswered()
    }

    async fn reply(&mut self, _bytes: u64) -> Result<()> {
        unanswered()
    }

    async fn start_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        self.ended = false;
        Ok(())
    }

    async fn await_start_bulk(&mut self, _direction: BulkDirection) -> Result<bool> {
        Ok(true)
    }

    async fn stop_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        self.end_stream().await?;
        self.pair
            .socket(self.side)
            .drained(&self.context, Some(0))
            .await
    }

    async fn await_stop_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        self.pass(EndedDiscardScope::Stream, "the bulk transfer to end")
            .await
    }

    async fn end_stream(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.ended, true) {
            self.pair.end(EndedDiscardScope::Stream, &self.context);
        }
        Ok(())
    }

    async fn disconnect(self) -> Result<()> {
        self.pair.end(EndedDiscardScope::Connection, &self.context);
        Ok(())
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        self.pass(EndedDiscardScope::Connection, "the peer to disconnect")
            .await?;
        self.pair.open.set(false);
        self.context
            .shared
            .wake(self.pair.route.endpoint(PairSide::Initiator));
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.over
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let patience = stackline_core::units::format_time(self.pair.patience.seconds());
        let mut settings = self.pair.socket(self.side).settings();
        settings.insert("patience".into(), patience);
        settings
    }

    fn facts(&self) -> ConnectionFacts {
        let arrived = self.pair.arrived.borrow();
        let losses = arrived.sequence.losses(self.pair.known.borrow().sent);
        let (losses, notes) = match self.side {
            PairSide::Responder => (Some(losses), Vec::new()),
            PairSide::Initiator => (
                None,
                vec![
                    "not confirmed: the clock stopped when the last unit had left its host".into(),
                ],
            ),
        };
        ConnectionFacts {
            losses,
            received_bytes: Some(arrived.bytes),
            notes,
        }
    }
}
