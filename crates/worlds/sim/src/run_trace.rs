//! Writes the events of a traced run: of endpoints and protocol machines, on their hosts' logs, each stamped by its
//! host's own clock. Tracing changes nothing of what happens; untraced runs have no [`SimTraceLog`].

use crate::clock::SimHostClock;
use crate::connection_info::ConnectionInfo;
use crate::port_events::{SimProcessorSpending, cpu_use};
use crate::window_waits::SimWindowWait;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::EndpointStep;
use stackline_events::catalogue::families::{
    ConnectionReport, ConnectionReportEvent, DataUnit, DataUnitEvent, ProtocolStep,
    ProtocolStepEvent, WindowWait, WindowWaitEvent,
};
use stackline_events::catalogue::rows::{
    AppAccepted, AppConnected, AppStart, AppStop, QuicConnected, TcpConnected, TlsConnected,
    UnitFramed,
};
use stackline_events::unit_ids::{self, EventStreamDirection, Numbering};
use stackline_events::{EventLog, EventLogs, EventValue};
use stackline_net::NodeIndex;
use stackline_proto::blast::event_tracer::{self as blast, EventKind};
use stackline_proto::http::HttpWait;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The parameters of a traced run.
#[derive(Debug)]
pub struct SimTraceParameters {
    /// By part: the number of its first flow; the flows of its replicas follow.
    pub flows: Vec<u32>,
    /// What a right clock reads at the beginning of the run, ns.
    pub zero_ns: u64,
    /// The logs that events are written to; their hosts are the network's, in order, and then its IMPs.
    pub event_logs: EventLogs,
}

/// The event logs of a run, and what is needed to write them.
#[derive(Debug)]
pub(crate) struct SimTraceLog {
    flows: Vec<u32>,
    zero_ns: u64,
    event_logs: RefCell<EventLogs>,
    clocks: Vec<Rc<SimHostClock>>,
    /// By pair: its flow, and the hosts of its two sides.
    pairs: RefCell<Vec<(u32, [usize; 2])>>,
    /// When connections are sampled next.
    next_sample: Cell<Instant>,
    /// By host: the time for copying and for programs at the last sample, ns.
    spent_ns: RefCell<BTreeMap<u32, (u64, u64)>>,
}

/// The time between two samples of connections and processors.
const SAMPLE_EVERY: Duration = Duration(100_000_000);

impl SimTraceLog {
    pub(crate) fn new(trace: SimTraceParameters, clocks: Vec<Rc<SimHostClock>>) -> Self {
        let SimTraceParameters {
            flows,
            zero_ns,
            event_logs,
        } = trace;
        Self {
            flows,
            zero_ns,
            event_logs: RefCell::new(event_logs),
            clocks,
            pairs: RefCell::default(),
            next_sample: Cell::new(Instant(0) + SAMPLE_EVERY),
            spent_ns: RefCell::default(),
        }
    }

    /// Adds the next pair: its part, the number of the replica, and its two hosts.
    pub(crate) fn add_pair(&self, part: usize, replica: u32, hosts: [usize; 2]) {
        let flow = self.flows.get(part).copied().unwrap_or(0) + replica;
        self.pairs.borrow_mut().push((flow, hosts));
    }

    fn pair(&self, pair: u32) -> (u32, [usize; 2]) {
        self.pairs
            .borrow()
            .get(pair as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The next moment of a sample if it lies before `until`.
    #[inline]
    pub(crate) fn look_before(&self, until: Instant) -> Option<Instant> {
        let next = self.next_sample.get();
        (next < until).then(|| {
            self.next_sample.set(next + SAMPLE_EVERY);
            next
        })
    }

    /// Skips the samples before `at`.
    pub(crate) fn skip_to(&self, at: Instant) {
        let ahead = at.since(self.next_sample.get()).0 / SAMPLE_EVERY.0;
        self.next_sample
            .set(self.next_sample.get() + Duration(ahead * SAMPLE_EVERY.0));
    }

    /// A connection as its machine reports it now, for one side of a pair.
    pub(crate) fn info(
        &self,
        event: ConnectionReportEvent,
        pair: u32,
        side: PairSide,
        at: Instant,
        before: &ConnectionInfo,
        now: &ConnectionInfo,
    ) {
        let (stream, host) = self.stream(pair, side);
        let report = ConnectionReport {
            stream: stream.into(),
            ..now.since(before, SAMPLE_EVERY)
        };
        self.emit(host, at, |log, at_ns| event.write(&report, log, at_ns));
    }

    /// Writes the use of a host's processor since the last sample, given the time spent until now. Returns false when
    /// it did nothing.
    pub(crate) fn processor(
        &self,
        NodeIndex(host): NodeIndex,
        at: Instant,
        copied_ns: u64,
        worked_ns: u64,
    ) -> bool {
        let (copied, worked) = self
            .spent_ns
            .borrow_mut()
            .insert(host, (copied_ns, worked_ns))
            .unwrap_or_default();
        let now = SimProcessorSpending {
            copied_ns,
            worked_ns,
        };
        let did = now.since(SimProcessorSpending {
            copied_ns: copied,
            worked_ns: worked,
        });
        let used = cpu_use(SAMPLE_EVERY, did);
        let busy =
            used.user_ppm != EventValue::Number(0) || used.system_ppm != EventValue::Number(0);
        if busy {
            self.emit(host as usize, at, |log, at_ns| used.write(log, at_ns));
        }
        busy
    }

    /// Writes an event of a `proto::blast` machine on one side of a pair.
    pub(crate) fn blast(&self, pair: u32, side: PairSide, at: Instant, event: blast::BlastEvent) {
        let (own, host) = self.stream(pair, side);
        let stream = if event.kind.is_own() {
            own
        } else {
            self.stream(pair, side.other()).0
        };
        let step = match event.kind {
            EventKind::Send => ProtocolStepEvent::BlastSend,
            EventKind::Retransmit => ProtocolStepEvent::BlastRetransmit,
            EventKind::Timer => ProtocolStepEvent::BlastTimer,
            EventKind::Nak => ProtocolStepEvent::BlastNak,
            EventKind::Ack => ProtocolStepEvent::BlastAck,
        };
        let data = ProtocolStep {
            unit: EventValue::Absent,
            stream: stream.into(),
            offset: event.offset.into(),
            bytes: event.bytes.into(),
            cause: EventValue::Text(event.cause),
        };
        self.emit(host, at, |log, at_ns| step.write(&data, log, at_ns));
    }

    /// Writes an event on a host's log; `at` is the true moment, `write` gets the reading of the host's clock, ns.
    #[inline]
    pub(crate) fn emit(&self, host: usize, at: Instant, write: impl FnOnce(&mut EventLog, u64)) {
        let reading = self
            .clocks
            .get(host)
            .map_or(i128::from(at.0), |clock| clock.reading_ns(at));
        let at_ns = u64::try_from((i128::from(self.zero_ns) + reading).max(0)).unwrap_or(u64::MAX);
        self.event_logs
            .borrow_mut()
            .write(host, |log| write(log, at_ns));
    }

    /// The stream that one side of a pair sends, and its host.
    pub(crate) fn stream(&self, pair: u32, side: PairSide) -> (i64, usize) {
        let (flow, hosts) = self.pair(pair);
        (
            unit_ids::stream(flow, direction_of(side)),
            hosts[direction_of(side) as usize],
        )
    }

    /// Hands on the remaining events.
    ///
    /// # Errors
    /// Why something could not be kept.
    pub(crate) fn finish(&self) -> Result<(), String> {
        self.event_logs
            .replace(EventLogs::new([], |_, _| Ok(())))
            .finish()
    }
}

/// The direction of the data that a side sends.
pub(crate) const fn direction_of(side: PairSide) -> EventStreamDirection {
    match side {
        PairSide::Initiator => EventStreamDirection::There,
        PairSide::Responder => EventStreamDirection::Back,
    }
}

const fn opposite(direction: EventStreamDirection) -> EventStreamDirection {
    match direction {
        EventStreamDirection::There => EventStreamDirection::Back,
        EventStreamDirection::Back => EventStreamDirection::There,
    }
}

/// One of several equal shares of a range.
pub(crate) fn nth_share([begins, ends]: [u64; 2], number: usize, count: usize) -> [u64; 2] {
    let share = |number: usize| {
        let part = u128::from(ends - begins) * number as u128 / count.max(1) as u128;
        begins + part as u64
    };
    [share(number), share(number + 1)]
}

/// What an endpoint sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimDepartureKind {
    Unit,
    Call,
    Reply,
}

/// What an endpoint receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coming {
    Unit,
    Call,
    Response,
}

/// The part of a trace that belongs to one endpoint: the numbers of its data units, and the positions in its streams.
#[derive(Debug)]
pub(crate) struct SimEndpointTrace {
    log: Rc<SimTraceLog>,
    host: usize,
    own: EventStreamDirection,
    numbering: RefCell<Numbering>,
    connection: Cell<i64>,
    /// Bytes written on this connection.
    out: Cell<u64>,
    /// Bytes read on this connection.
    taken: Cell<u64>,
    /// Whether the connection carries byte streams, so that events have offsets.
    streams: Cell<bool>,
    /// The unit that is being sent, and the offset at which it begins.
    leaving: Cell<(i64, u64)>,
    /// The number of the call that was last made or received.
    call: Cell<i64>,
    /// The numbers of units in both directions before this connection.
    before: Cell<[u64; 2]>,
}

impl SimEndpointTrace {
    pub(crate) fn new(log: &Rc<SimTraceLog>, pair: u32, side: PairSide, both_ways: bool) -> Self {
        let (flow, hosts) = log.pair(pair);
        let own = direction_of(side);
        Self {
            log: Rc::clone(log),
            host: hosts[own as usize],
            own,
            numbering: RefCell::new(Numbering::new(flow, both_ways)),
            connection: Cell::new(0),
            out: Cell::new(0),
            taken: Cell::new(0),
            streams: Cell::new(false),
            leaving: Cell::new((0, 0)),
            call: Cell::new(0),
            before: Cell::new([0; 2]),
        }
    }

    fn offset(&self, of: &Cell<u64>) -> Option<u64> {
        self.streams.get().then_some(of.get())
    }

    /// A new connection begins.
    fn begin(&self) {
        let mut numbering = self.numbering.borrow_mut();
        self.connection.set(numbering.connect());
        self.before.set(
            [EventStreamDirection::There, EventStreamDirection::Back]
                .map(|direction| numbering.count(direction)),
        );
        self.out.set(0);
        self.taken.set(0);
    }

    fn number(&self, direction: EventStreamDirection, number: Option<u64>) -> i64 {
        let mut numbering = self.numbering.borrow_mut();
        match number {
            Some(number) => {
                let number = self.before.get()[direction as usize] + number;
                numbering.go_on(direction, number + 1);
                numbering.id(direction, number)
            }
            None => numbering.next(direction),
        }
    }

    fn write(&self, at: Instant, write: impl FnOnce(&mut EventLog, u64)) {
        self.log.emit(self.host, at, write);
    }

    fn emit(&self, at: Instant, event: DataUnitEvent, data: &DataUnit<'_>) {
        self.write(at, |log, at_ns| event.write(data, log, at_ns));
    }

    /// The stream that the endpoint sends.
    fn own_stream(&self) -> i64 {
        self.numbering.borrow().stream(self.own)
    }

    /// The stream that the endpoint receives.
    fn peer_stream(&self) -> i64 {
        self.numbering.borrow().stream(opposite(self.own))
    }

    /// Writes a step of the endpoint.
    pub(crate) fn step(&self, at: Instant, step: EndpointStep) {
        if matches!(step, EndpointStep::Connect | EndpointStep::Accept) {
            self.begin();
        }
        let connection = DataUnit {
            unit: self.connection.get().into(),
            stream: self.own_stream().into(),
            ..DataUnit::default()
        };
        let DataUnit { unit, stream, .. } = connection;
        let open = DataUnit {
            offset: self.offset(&self.out).into(),
            ..connection
        };
        match step {
            // Nothing is recorded when a responder begins to wait.
            EndpointStep::Accept => {}
            EndpointStep::Connect => self.emit(at, DataUnitEvent::AppConnect, &connection),
            EndpointStep::Connected => {
                self.write(at, |log, at_ns| AppConnected::from(open).write(log, at_ns))
            }
            EndpointStep::Accepted => {
                self.write(at, |log, at_ns| AppAccepted::from(open).write(log, at_ns))
            }
            EndpointStep::Disconnect => self.emit(at, DataUnitEvent::AppDisconnect, &connection),
            EndpointStep::Disconnected => {
                self.emit(at, DataUnitEvent::AppDisconnected, &connection)
            }
            EndpointStep::ClockStarts => {
                self.write(at, |log, at_ns| AppStart { unit, stream }.write(log, at_ns))
            }
            EndpointStep::ClockStops => {
                self.write(at, |log, at_ns| AppStop { unit, stream }.write(log, at_ns))
            }
            EndpointStep::AwaitsWord => {
                let data = DataUnit {
                    stream: self.peer_stream().into(),
                    offset: self.offset(&self.taken).into(),
                    ..DataUnit::default()
                };
                self.emit(at, DataUnitEvent::AppAwait, &data);
            }
            EndpointStep::StreamEnded => {
                let (unit, stream) = self.next_taken();
                let data = DataUnit {
                    unit: unit.into(),
                    stream: stream.into(),
                    offset: self.offset(&self.taken).into(),
                    ..DataUnit::default()
                };
                self.emit(at, DataUnitEvent::AppEnded, &data);
            }
        }
    }

    /// The id of the next unit to be received, and its stream.
    fn next_taken(&self) -> (i64, i64) {
        let (numbering, direction) = (self.numbering.borrow(), opposite(self.own));
        (
            numbering.id(direction, numbering.count(direction)),
            numbering.stream(direction),
        )
    }

    /// Notes that this connection carries byte streams.
    pub(crate) fn carries_streams(&self) {
        self.streams.set(true);
    }

    /// Notes bytes that were written to the stream, and bytes that were read from it.
    pub(crate) fn moved(&self, out: u64, taken: u64) {
        self.out.set(self.out.get() + out);
        self.taken.set(self.taken.get() + taken);
    }

    /// Writes that the sending of a data unit of `bytes` begins. Returns its id. A reply has the number of its call.
    pub(crate) fn leaves(&self, at: Instant, what: SimDepartureKind, bytes: u64) -> i64 {
        let unit = if what == SimDepartureKind::Reply {
            self.call.get()
        } else {
            self.number(self.own, None)
        };
        let event = match what {
            SimDepartureKind::Unit => DataUnitEvent::AppSend,
            SimDepartureKind::Call => DataUnitEvent::AppCall,
            SimDepartureKind::Reply => DataUnitEvent::AppReply,
        };
        if what == SimDepartureKind::Call {
            self.call.set(unit);
        }
        self.leaving.set((unit, self.out.get()));
        let offset = self.offset(&self.out);
        let data = DataUnit {
            unit: unit.into(),
            stream: self.own_stream().into(),
            offset: offset.into(),
            bytes: bytes.into(),
        };
        self.emit(at, event, &data);
        unit
    }

    /// Writes which bytes of the connection's stream a unit of `payload` bytes took: those from `begins` to `ends`.
    pub(crate) fn framed(&self, at: Instant, unit: i64, [begins, ends]: [u64; 2], payload: u64) {
        let frames = UnitFramed {
            unit: unit.into(),
            stream: self.own_stream().into(),
            offset: begins.into(),
            bytes: (ends - begins).into(),
            payload: payload.into(),
        };
        self.write(at, |log, at_ns| frames.write(log, at_ns));
    }

    /// The unit that is being sent, or was called last.
    pub(crate) const fn leaving_unit(&self) -> i64 {
        self.leaving.get().0
    }

    /// Writes how a unit waited for a flow-control window of HTTP/2.
    pub(crate) fn waited(&self, unit: i64, window: HttpWait, wait: SimWindowWait) {
        let (blocked, released) = match window {
            HttpWait::StreamWindow => (
                WindowWaitEvent::StreamBlocked,
                WindowWaitEvent::StreamReleased,
            ),
            HttpWait::ConnectionWindow => (
                WindowWaitEvent::ConnectionBlocked,
                WindowWaitEvent::ConnectionReleased,
            ),
        };
        let begins = WindowWait {
            unit: unit.into(),
            stream: self.own_stream().into(),
            ..WindowWait::default()
        };
        let ends = WindowWait {
            waited_ns: wait.waited.0.into(),
            ..begins
        };
        self.write(wait.first, |log, at_ns| blocked.write(&begins, log, at_ns));
        self.write(wait.last, |log, at_ns| released.write(&ends, log, at_ns));
    }

    /// Writes that the TCP connection below another protocol is open.
    pub(crate) fn tcp_is_open(&self, at: Instant) {
        let open = TcpConnected {
            unit: self.connection.get().into(),
            stream: self.own_stream().into(),
            ..TcpConnected::default()
        };
        self.write(at, |log, at_ns| open.write(log, at_ns));
    }

    /// Writes that the TLS handshake is over.
    pub(crate) fn tls_is_open(&self, at: Instant, version: &str, handshake: &str) {
        let open = TlsConnected {
            unit: self.connection.get().into(),
            stream: self.own_stream().into(),
            version: EventValue::Text(version),
            handshake: EventValue::Text(handshake),
            ..TlsConnected::default()
        };
        self.write(at, |log, at_ns| open.write(log, at_ns));
    }

    /// Writes that the QUIC handshake is over; no session is resumed.
    pub(crate) fn quic_is_open(&self, at: Instant) {
        let open = QuicConnected {
            unit: self.connection.get().into(),
            stream: self.own_stream().into(),
            handshake: EventValue::Text("full"),
            ..QuicConnected::default()
        };
        self.write(at, |log, at_ns| open.write(log, at_ns));
    }

    /// Writes that the operation that sent the unit returns.
    pub(crate) fn left(&self, at: Instant, what: SimDepartureKind, bytes: u64) {
        let (unit, begin) = self.leaving.get();
        let event = match what {
            SimDepartureKind::Unit => DataUnitEvent::AppSent,
            SimDepartureKind::Reply => DataUnitEvent::AppReplied,
            SimDepartureKind::Call => return,
        };
        self.has_left(at, event, unit, begin, bytes);
    }

    fn has_left(&self, at: Instant, event: DataUnitEvent, unit: i64, begin: u64, bytes: u64) {
        let begin = self.streams.get().then_some(begin);
        let data = DataUnit {
            unit: unit.into(),
            stream: self.own_stream().into(),
            offset: begin.into(),
            bytes: bytes.into(),
        };
        self.emit(at, event, &data);
    }

    /// Writes that units of `bytes` bytes each have all left; `units` are their ids and offsets.
    pub(crate) fn all_left(&self, at: Instant, units: &[(i64, u64)], bytes: u64) {
        units.iter().for_each(|(unit, begin)| {
            self.has_left(at, DataUnitEvent::AppSent, *unit, *begin, bytes)
        });
    }

    /// Writes that the sending of units of `bytes` bytes began, at each moment that many. Returns their ids and
    /// offsets.
    pub(crate) fn handed(&self, handed: &[(Instant, u64)], bytes: u64) -> Vec<(i64, u64)> {
        let moments = handed
            .iter()
            .flat_map(|(at, units)| (0..*units).map(move |_| *at));
        let hand = |at: Instant| {
            let unit = self.leaves(at, SimDepartureKind::Unit, bytes);
            let begin = self.out.get();
            self.moved(bytes, 0);
            (unit, begin)
        };
        moments.map(hand).collect()
    }

    /// Writes that the application waits for its next data unit, or for a call.
    pub(crate) fn awaits(&self, at: Instant, bytes: u64) {
        let (unit, stream) = self.next_taken();
        let data = DataUnit {
            unit: unit.into(),
            stream: stream.into(),
            offset: self.offset(&self.taken).into(),
            bytes: bytes.into(),
        };
        self.emit(at, DataUnitEvent::AppAwait, &data);
    }

    /// Writes that a whole data unit has arrived. `number` is its number on this connection, where a packet shows it.
    pub(crate) fn comes(&self, at: Instant, what: Coming, bytes: u64, number: Option<u64>) {
        let direction = opposite(self.own);
        let (event, unit) = match what {
            Coming::Unit => (DataUnitEvent::AppReceived, self.number(direction, number)),
            Coming::Call => (DataUnitEvent::AppIndication, self.number(direction, number)),
            Coming::Response => (DataUnitEvent::AppResponse, self.call.get()),
        };
        if what == Coming::Call {
            self.call.set(unit);
        }
        let offset = self.offset(&self.taken);
        let data = DataUnit {
            unit: unit.into(),
            stream: self.peer_stream().into(),
            offset: offset.into(),
            bytes: bytes.into(),
        };
        self.emit(at, event, &data);
    }

    /// Writes that the last call is given up as lost.
    pub(crate) fn lost(&self, at: Instant, bytes: u64) {
        let data = DataUnit {
            unit: self.call.get().into(),
            stream: self.own_stream().into(),
            offset: EventValue::Absent,
            bytes: bytes.into(),
        };
        self.emit(at, DataUnitEvent::AppLost, &data);
    }
}
