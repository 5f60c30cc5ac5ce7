//! Emits events for the operations of a connection: a wrapper around any stack's connection, used only while a run is traced.
//!
//! Both ends give a data unit the same ID. Data units that the stack would send one after the other are passed to it one by one, so that
//! each has its own times; units that leave in one system call in any case (a batch of datagrams, a blast) have events before and after
//! that call. A flow is one pair of endpoints; it has a stream in each direction, and numbers count the units of a stream.

use crate::buffers::LiveThreadBuffers;
use crate::error::Result;
use crate::stacks::contract::{Connector, LiveConnection, LiveListener};
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_core::run_record::UnitLosses;
use stackline_core::time::Instant;
use stackline_endpoint::{BulkDirection, ConnectionOpening};
use stackline_events::catalogue::families::{DataUnit, DataUnitEvent};
use stackline_events::catalogue::rows::{AppAccepted, AppConnected};
use stackline_events::unit_ids::{EventStreamDirection, Numbering};
use stackline_events::{clock, recorder, scope};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Most data units sent in one call: the events of so many fit into the ring of the event recorder.
const MOST_TOGETHER: u64 = 4096;

/// What the connections of one endpoint share: the numbering of units goes on from one connection to the next.
#[derive(Clone, Debug)]
pub(crate) struct FlowTrace {
    numbering: Arc<Mutex<Numbering>>,
    /// The direction in which this endpoint sends.
    sends: EventStreamDirection,
    /// The direction in which this endpoint receives.
    takes: EventStreamDirection,
}

impl FlowTrace {
    /// For an endpoint of this flow on this side. `both_ways` says whether its procedure sends data units in both directions.
    pub(crate) fn new(flow: u32, side: PairSide, both_ways: bool) -> Self {
        let (sends, takes) = match side {
            PairSide::Initiator => (EventStreamDirection::There, EventStreamDirection::Back),
            PairSide::Responder => (EventStreamDirection::Back, EventStreamDirection::There),
        };
        Self {
            numbering: Arc::new(Mutex::new(Numbering::new(flow, both_ways))),
            sends,
            takes,
        }
    }

    /// Emits events of everything that goes over the connector's connections.
    pub(crate) fn connector(self, inner: Box<dyn Connector>) -> Box<dyn Connector> {
        Box::new(TracedLiveEndpoint {
            inner,
            flow_trace: self,
        })
    }

    /// Emits events of everything that goes over the listener's connections.
    pub(crate) fn listener(self, inner: Box<dyn LiveListener>) -> Box<dyn LiveListener> {
        Box::new(TracedLiveEndpoint {
            inner,
            flow_trace: self,
        })
    }

    /// Begins a new connection. Returns its ID and the numbering of its units.
    fn connect(&self) -> (i64, Numbers) {
        let mut numbering = self
            .numbering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let id = numbering.connect();
        let streams = (numbering.stream(self.sends), numbering.stream(self.takes));
        scope::begin_connection(id, streams);
        let taken_before = numbering.count(self.takes);
        (
            id,
            Numbers {
                numbering: numbering.clone(),
                taken_before,
                flow_trace: self.clone(),
            },
        )
    }
}

/// The numbering of one connection's units. Dropping it writes the counts back, and the next connection goes on from there.
struct Numbers {
    numbering: Numbering,
    /// How many units were received on earlier connections.
    taken_before: u64,
    flow_trace: FlowTrace,
}

impl Numbers {
    /// ID of the stream that this endpoint sends on.
    fn sends(&self) -> i64 {
        self.numbering.stream(self.flow_trace.sends)
    }

    /// Emits an event of the connection with this ID.
    fn emit(&self, event: DataUnitEvent, id: i64) {
        event.emit(&DataUnit {
            unit: id.into(),
            stream: self.sends().into(),
            ..DataUnit::default()
        });
    }

    /// Advances the count of received units to what the peer says it has sent on this connection, so that lost units are counted too.
    fn peer_sent(&mut self, units: Option<u64>) {
        if let Some(units) = units {
            self.numbering
                .go_on(self.flow_trace.takes, self.taken_before + units);
        }
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        let mut shared = self
            .flow_trace
            .numbering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for direction in [self.flow_trace.sends, self.flow_trace.takes] {
            shared.go_on(direction, self.numbering.count(direction));
        }
    }
}

/// A connector or listener whose connections emit events.
struct TracedLiveEndpoint<T> {
    inner: T,
    flow_trace: FlowTrace,
}

impl Connector for TracedLiveEndpoint<Box<dyn Connector>> {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (id, numbers) = self.flow_trace.connect();
        numbers.emit(DataUnitEvent::AppConnect, id);
        let inner = self.inner.connect(buffers)?;
        Ok(Box::new(TracedLiveConnection::open(
            inner,
            id,
            numbers,
            PairSide::Initiator,
        )))
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.inner.counts()
    }
}

impl LiveListener for TracedLiveEndpoint<Box<dyn LiveListener>> {
    fn address(&self) -> String {
        self.inner.address()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (id, numbers) = self.flow_trace.connect();
        let inner = self.inner.accept(buffers)?;
        Ok(Box::new(TracedLiveConnection::open(
            inner,
            id,
            numbers,
            PairSide::Responder,
        )))
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.inner.counts()
    }
}

/// One data unit as its events describe it.
#[derive(Clone, Copy)]
struct TracedDataUnit {
    id: i64,
    /// ID of its stream.
    stream: i64,
    /// Where it begins in the byte stream, bytes; `None` over a stack without byte streams.
    offset: Option<u64>,
    bytes: u64,
}

impl TracedDataUnit {
    fn emit(self, event: DataUnitEvent) {
        if recorder::is_recording() {
            event.emit(&DataUnit {
                unit: self.id.into(),
                stream: self.stream.into(),
                offset: self.offset.into(),
                bytes: self.bytes.into(),
            });
        }
    }
}

/// A connection that emits events.
struct TracedLiveConnection {
    inner: Box<dyn LiveConnection>,
    /// ID of the connection.
    id: i64,
    numbers: Numbers,
    /// ID of the request that was received and not yet replied to.
    called: Option<i64>,
}

impl TracedLiveConnection {
    /// Wraps an open connection and emits that this side of a pair has connected or accepted.
    fn open(inner: Box<dyn LiveConnection>, id: i64, numbers: Numbers, side: PairSide) -> Self {
        // The time is read first: the queries below take a while.
        let at_ns = clock::now_ns();
        let places = inner.places();
        let addresses = inner
            .addresses()
            .map(|(local, remote)| (shown(local), shown(remote)));
        let (local, remote) = addresses
            .as_ref()
            .map(|(local, remote)| (local.as_str(), remote.as_str()))
            .unzip();
        let data = DataUnit {
            unit: id.into(),
            stream: numbers.sends().into(),
            offset: places.map(|(sent, _)| sent).into(),
            ..DataUnit::default()
        };
        let (local, remote) = (local.into(), remote.into());
        match side {
            PairSide::Initiator => AppConnected {
                local,
                remote,
                ..data.into()
            }
            .emit_at(at_ns),
            PairSide::Responder => AppAccepted {
                local,
                remote,
                ..data.into()
            }
            .emit_at(at_ns),
        }
        Self {
            inner,
            id,
            numbers,
            called: None,
        }
    }

    /// The unit that is `ahead` units, of `bytes` bytes each, after the next one to send.
    fn outgoing(&self, bytes: u64, ahead: u64) -> TracedDataUnit {
        let (numbering, direction) = (&self.numbers.numbering, self.numbers.flow_trace.sends);
        let offset = self.inner.places().map(|(sent, _)| sent + ahead * bytes);
        TracedDataUnit {
            id: numbering.id(direction, numbering.count(direction) + ahead),
            stream: numbering.stream(direction),
            offset,
            bytes,
        }
    }

    /// The next unit to receive, as far as it is known before it arrives: its number may turn out differently if units are lost.
    fn incoming(&self, bytes: u64) -> TracedDataUnit {
        let (numbering, direction) = (&self.numbers.numbering, self.numbers.flow_trace.takes);
        let offset = self.inner.places().map(|(_, taken)| taken);
        TracedDataUnit {
            id: numbering.id(direction, numbering.count(direction)),
            stream: numbering.stream(direction),
            offset,
            bytes,
        }
    }

    /// Corrects the ID of a unit that has arrived if it carries another number than expected, and counts it.
    fn came(&mut self, unit: TracedDataUnit) -> TracedDataUnit {
        let Numbers {
            numbering,
            taken_before,
            flow_trace,
        } = &mut self.numbers;
        let (direction, before) = (flow_trace.takes, *taken_before);
        let expected = numbering.count(direction);
        let carried = self
            .inner
            .number()
            .map(|(number, bits)| before + near(number, bits, expected - before));
        let number = carried.unwrap_or(expected);
        numbering.go_on(direction, number + 1);
        let id = numbering.id(direction, number);
        scope::note_received_unit(id);
        TracedDataUnit { id, ..unit }
    }

    /// Emits which bytes of the connection's stream the unit took that was sent last, where a protocol between the operation and the socket
    /// puts units into records or frames of its own.
    fn emit_framed(&self) {
        if self.inner.places().is_none() {
            scope::unit_framed();
        }
    }

    /// Sends `units` units in one call of the stack, with an event for each before and after. Returns how many were sent.
    fn send_together(
        &mut self,
        bytes: usize,
        units: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let unit = self.outgoing(bytes as u64, 0);
        scope::send_unit(unit.id, unit.bytes);
        unit.emit(DataUnitEvent::AppSend);
        let others: Vec<TracedDataUnit> = (1..units)
            .map(|ahead| self.outgoing(bytes as u64, ahead))
            .collect();
        others
            .iter()
            .for_each(|unit| unit.emit(DataUnitEvent::AppSend));
        let sent = self.inner.send(bytes, units, buffers)?;
        self.emit_framed();
        let all = std::iter::once(&unit).chain(&others);
        all.take(usize::try_from(sent).unwrap_or(usize::MAX))
            .for_each(|unit| unit.emit(DataUnitEvent::AppSent));
        let direction = self.numbers.flow_trace.sends;
        self.numbers
            .numbering
            .go_on(direction, self.numbers.numbering.count(direction) + sent);
        Ok(sent)
    }
}

/// The number nearest to `expected` whose low `bits` bits are those of `number`.
fn near(number: u64, bits: u32, expected: u64) -> u64 {
    if bits >= u64::BITS {
        return number;
    }
    let round = 1 << bits;
    let candidate = (expected & !(round - 1)) | (number & (round - 1));
    let half = round / 2;
    match () {
        () if candidate + half < expected => candidate + round,
        () if candidate > expected + half && candidate >= round => candidate - round,
        () => candidate,
    }
}

/// An address as events show it: an IPv4-mapped IPv6 address as IPv4.
fn shown(address: SocketAddr) -> String {
    SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
}

impl LiveConnection for TracedLiveConnection {
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        let together = self.inner.together(bytes).clamp(1, MOST_TOGETHER);
        let mut done = 0;
        while done < times && !(times > 1 && buffers.flags.limit()) {
            // A single unit that would be left over is sent together with those before it.
            let left = times - done;
            let units = if left <= together + 1 && together > 1 {
                left
            } else {
                left.min(together)
            };
            let sent = self.send_together(bytes, units, buffers)?;
            done += sent;
            if sent < units {
                break;
            }
        }
        Ok(done)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        for done in 0..times {
            let unit = self.incoming(bytes as u64);
            scope::work_for(Some(unit.id));
            unit.emit(DataUnitEvent::AppAwait);
            if self.inner.receive(bytes, 1, buffers)? == 0 {
                unit.emit(DataUnitEvent::AppEnded);
                return Ok(done);
            }
            let unit = self.came(unit);
            unit.emit(DataUnitEvent::AppReceived);
        }
        Ok(times)
    }

    fn call(
        &mut self,
        request: usize,
        response: usize,
        since: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let unit = self.outgoing(request as u64, 0);
        scope::send_unit(unit.id, unit.bytes);
        unit.emit(DataUnitEvent::AppCall);
        self.numbers.numbering.next(self.numbers.flow_trace.sends);
        let back = TracedDataUnit {
            id: unit.id,
            ..self.incoming(response as u64)
        };
        let answered = self.inner.call(request, response, since, buffers)?;
        if answered {
            scope::note_received_unit(unit.id);
            back.emit(DataUnitEvent::AppResponse);
        } else {
            unit.emit(DataUnitEvent::AppLost);
        }
        Ok(answered)
    }

    fn await_call(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        let unit = self.incoming(bytes as u64);
        scope::work_for(Some(unit.id));
        if !self.inner.await_call(bytes, buffers)? {
            return Ok(false);
        }
        let unit = self.came(unit);
        unit.emit(DataUnitEvent::AppIndication);
        self.called = Some(unit.id);
        Ok(true)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let unit = self.outgoing(bytes as u64, 0);
        let unit = TracedDataUnit {
            id: self.called.take().unwrap_or(unit.id),
            ..unit
        };
        scope::send_unit(unit.id, unit.bytes);
        unit.emit(DataUnitEvent::AppReply);
        self.inner.reply(bytes, buffers)?;
        self.emit_framed();
        unit.emit(DataUnitEvent::AppReplied);
        Ok(())
    }

    fn settle(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.inner.settle(buffers)
    }

    fn confirms(&self) -> bool {
        self.inner.confirms()
    }

    fn closed(&self) -> bool {
        self.inner.closed()
    }

    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        scope::work_for(None);
        self.inner.start_bulk(direction, buffers)
    }

    fn prepare_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.inner.prepare_bulk(direction, buffers)
    }

    fn conclude_bulk(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        scope::work_for(None);
        self.inner.conclude_bulk(buffers)
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        scope::work_for(None);
        self.inner.await_start_bulk(direction, buffers)
    }

    fn stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        scope::work_for(None);
        self.inner.stop_bulk(direction, buffers)
    }

    fn await_stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        scope::work_for(None);
        self.inner.await_stop_bulk(direction, buffers)
    }

    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        scope::work_for(None);
        self.inner.end_stream(buffers)
    }

    fn disconnect(self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        scope::work_for(None);
        let Self {
            inner,
            id,
            mut numbers,
            ..
        } = *self;
        numbers.emit(DataUnitEvent::AppDisconnect, id);
        numbers.peer_sent(inner.peer_sent());
        inner.disconnect(buffers)?;
        numbers.emit(DataUnitEvent::AppDisconnected, id);
        Ok(())
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        scope::work_for(None);
        self.inner.await_disconnect(buffers)?;
        self.numbers.peer_sent(self.inner.peer_sent());
        self.numbers.emit(DataUnitEvent::AppDisconnected, self.id);
        Ok(())
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.inner.transport()
    }

    fn opening(&self) -> Option<ConnectionOpening> {
        self.inner.opening()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.inner.settings()
    }

    fn losses(&self) -> Option<UnitLosses> {
        self.inner.losses()
    }

    fn progress(&self) -> Option<(u64, u64)> {
        self.inner.progress()
    }

    fn received_bytes(&self) -> Option<u64> {
        self.inner.received_bytes()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}
