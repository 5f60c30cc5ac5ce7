//! The endpoint: walks the cursor of a procedure over a connection and reads the clock.
//!
//! Between StartMeasurement and StopMeasurement ("the clock runs") the endpoint reads the clock once a call and once a
//! connection, not once a data unit; it allocates nothing and logs nothing.

mod connections;
mod intervals;

use crate::call_series::CallSeries;
use crate::interval_series::IntervalSeries;
use crate::marks::ProgramMarks;
use crate::observation::EndpointObservation;
use crate::pacing::IntendedMoments;
use crate::service::{BulkDirection, ConnectionFacts, EndpointService};
use crate::task::EndpointTask;
use crate::times::{DurationSamples, OpeningSamples};
use crate::transport_sum::TransportSum;
use crate::world::{EndpointProcessor, EndpointStep, EndpointWorld};
use stackline_core::error::{Blame, Error, Result};
use stackline_core::procedure::{self, OperationCall, PairSide};
use stackline_core::procedure_cursor::{Cursor, CursorOperation};
use stackline_core::run_record::{self, TransportRecord};
use stackline_core::time::{Duration, Instant};
use std::mem;
use std::sync::Arc;

/// The state of an endpoint.
#[derive(Debug)]
pub struct Endpoint<W: EndpointWorld> {
    task: Arc<EndpointTask>,
    world: W,
    connection: Option<W::Service>,
    observation: EndpointObservation,
    /// Response times of calls.
    calls: DurationSamples,
    /// Connect time plus disconnect time of each connection.
    connects: DurationSamples,
    /// The parts of connecting, where the stack reports them.
    openings: OpeningSamples,
    /// The calls one by one, if the task asks for them.
    series: Option<CallSeries>,
    moments: IntendedMoments,
    /// What ended in each interval, if the task asks for it.
    intervals: Option<IntervalSeries>,
    marks: ProgramMarks,
    /// How long it took to open the present connection.
    connecting: Duration,
    /// What was read when the clock started; `None` before.
    started: Option<EndpointStart>,
    /// Whether the clock has stopped.
    stopped: bool,
    /// The endpoint is a responder whose own StartMeasurement is still to come.
    own_clock: bool,
    /// Whether connections come and go in a repeat, so that the period does not end with the first.
    loops: bool,
    /// When the peer was first heard from; a responder paces and times its marks from there.
    heard: Option<Instant>,
    /// Data units were sent, and nothing from the peer shows yet that they have arrived.
    unconfirmed: bool,
    /// The peer's stream on the present connection was found to have ended.
    stream_over: bool,
    /// What the present connection had reported when counting began; later reports count only beyond it.
    counted: ConnectionFacts,
    /// Data units were moved after the clock stopped: reports of the connection are not counted any more.
    beyond: bool,
    /// The connection has reported lost data units.
    lossy: bool,
    /// Bytes that arrived while the clock ran, as connections report them where units may be lost.
    arrived: u64,
    /// The sum of the transport reports of connections that ended while the clock ran.
    transports: TransportSum,
}

/// The values that were read when the clock started.
#[derive(Clone, Copy, Debug)]
struct EndpointStart {
    at: Instant,
    processor: Option<EndpointProcessor>,
    transport: Option<TransportRecord>,
}

/// The most units that a load receives in one operation, so that it can be ended in between.
const OF_A_LOAD: u64 = 16;

impl<W: EndpointWorld> Endpoint<W> {
    /// An endpoint that has not begun.
    #[must_use]
    pub fn new(task: Arc<EndpointTask>, world: W) -> Self {
        let expected = task.expected_units().unwrap_or(u64::MAX);
        let times = |wanted: bool| world.times(if wanted { expected } else { 0 });
        Self {
            connection: None,
            observation: EndpointObservation::default(),
            calls: times(task.does("RPCCall")),
            connects: if task.carries_data {
                world.times(64)
            } else {
                times(true)
            },
            openings: OpeningSamples::default(),
            series: (task.keeps_calls && task.does("RPCCall")).then(CallSeries::new),
            moments: IntendedMoments::new(&task, times(task.does("Pace"))),
            intervals: intervals::series(&task),
            marks: ProgramMarks::default(),
            connecting: Duration::default(),
            started: None,
            stopped: false,
            own_clock: task.side == PairSide::Responder && task.does("StartMeasurement"),
            loops: procedure::repeats_connections(&task.steps),
            heard: None,
            unconfirmed: false,
            stream_over: false,
            counted: ConnectionFacts::default(),
            beyond: false,
            lossy: false,
            arrived: 0,
            transports: TransportSum::default(),
            task,
            world,
        }
    }

    /// Walks the whole program, again and again for a load. Returns what was observed, also when the limit or a stop
    /// ended the endpoint.
    ///
    /// # Errors
    /// An [`Error`] of the stack, the peer or the files.
    pub async fn run(mut self, replica: u32) -> Result<EndpointObservation> {
        let seed = self.task.seed.index(u64::from(replica));
        self.moments.set_turn(replica, &self.task);
        // A responder without data waits in accept: its period is the whole of its life.
        if self.task.side == PairSide::Responder && !self.task.carries_data {
            self.start();
        }
        loop {
            let mut cursor = Cursor::new(&self.task.steps, &self.task.data, seed);
            self.marks
                .make_room(cursor.marks().len(), || self.world.times(u64::MAX));
            let limited =
                |endpoint: &Self| endpoint.task.background && endpoint.world.limit_reached();
            match self.walk(&mut cursor).await {
                Ok(()) if self.task.background && !self.observation.limited && !limited(&self) => {}
                Ok(()) => return Ok(self.finish(&cursor)),
                Err(error) if error.blame == Blame::Interrupted || limited(&self) => {
                    return Ok(self.finish(&cursor));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Carries out one pass of the program.
    async fn walk(&mut self, cursor: &mut Cursor) -> Result<()> {
        loop {
            if self.world.limit_reached() {
                cursor.limit_reached();
            }
            let Some(operation) = cursor.advance() else {
                return Ok(());
            };
            self.execute(operation, cursor).await?;
        }
    }

    #[inline]
    async fn execute(&mut self, operation: CursorOperation, cursor: &mut Cursor) -> Result<()> {
        match operation {
            CursorOperation::RpcAwaitCallInd { bytes } => {
                if !self.open()?.await_call(bytes).await? {
                    return self.stream_ended(cursor);
                }
                self.hear();
                Ok(())
            }
            CursorOperation::RpcServe {
                request,
                response,
                times,
            } => self.serve(request, response, times, cursor).await,
            CursorOperation::RpcReturn { bytes } => self.open()?.reply(bytes).await,
            CursorOperation::RpcCall {
                request,
                response,
                times,
            } => self.call(request, response, times, cursor).await,
            CursorOperation::DataRequest { bytes, times } => self.send(bytes, times, cursor).await,
            CursorOperation::AwaitDataIndication { bytes, times } => {
                self.receive(bytes, times, cursor).await
            }
            CursorOperation::ConnectRequest => self.connect().await,
            CursorOperation::AwaitConnectIndication => self.accept().await,
            CursorOperation::DisconnectRequest => self.disconnect().await,
            CursorOperation::AwaitDisconnectIndication => self.await_disconnect().await,
            CursorOperation::StartBulkGet => self.start_bulk(BulkDirection::Get).await,
            CursorOperation::StartBulkPut => self.start_bulk(BulkDirection::Put).await,
            CursorOperation::AwaitStartBulkGet => {
                self.await_start_bulk(BulkDirection::Get, cursor).await
            }
            CursorOperation::AwaitStartBulkPut => {
                self.await_start_bulk(BulkDirection::Put, cursor).await
            }
            CursorOperation::StopBulkGet => self.stop_bulk(BulkDirection::Get).await,
            CursorOperation::StopBulkPut => self.stop_bulk(BulkDirection::Put).await,
            CursorOperation::AwaitStopBulkGet => {
                self.open()?.await_stop_bulk(BulkDirection::Get).await
            }
            CursorOperation::AwaitStopBulkPut => {
                self.open()?.await_stop_bulk(BulkDirection::Put).await
            }
            CursorOperation::EndStream => self.end_stream().await,
            CursorOperation::StartMeasurement => self.start_measurement().await,
            CursorOperation::StopMeasurement => {
                self.stop_measurement();
                match &mut self.connection {
                    Some(connection) => connection.conclude_bulk().await,
                    None => Ok(()),
                }
            }
            CursorOperation::Delay(time) => self
                .world
                .sleep_until(self.world.now() + time)
                .await
                .map(drop),
            CursorOperation::Pace(time) => self.pace(time, cursor).await,
            CursorOperation::ReadFile { bytes } => self.world.read_file(bytes).await,
            CursorOperation::WriteFile { bytes } => self.world.write_file(bytes).await,
            CursorOperation::Mark(index) => {
                self.mark(index);
                Ok(())
            }
        }
    }

    /// The open connection; an input error when there is none.
    fn open(&mut self) -> Result<&mut W::Service> {
        let missing = || Error::input("the procedure uses a connection before opening one");
        self.connection.as_mut().ok_or_else(missing)
    }

    /// Whether the clock runs.
    const fn measuring(&self) -> bool {
        self.started.is_some() && !self.stopped
    }

    // --- data ---

    async fn send(&mut self, bytes: u64, times: u64, cursor: &mut Cursor) -> Result<()> {
        self.close_counts();
        let mut left = times;
        while left > 0 {
            let wanted = left.min(self.sent_portion(bytes));
            // Of a portion of one unit the service does not ask for the limit.
            if wanted < times && self.world.limit_reached() {
                cursor.cut_short();
                return self.end_stream().await;
            }
            let connection = self.open()?;
            let done = connection.send(bytes, wanted).await?;
            self.unconfirmed = !connection.confirms();
            if self.measuring() {
                self.observation.record.sent_units += done;
                self.observation.record.sent_bytes += done * bytes;
                self.note_moved(false, done, bytes);
            }
            if done < wanted {
                cursor.cut_short();
                return self.end_stream().await;
            }
            left -= done;
        }
        Ok(())
    }

    async fn receive(&mut self, bytes: u64, times: u64, cursor: &mut Cursor) -> Result<()> {
        self.close_counts();
        let mut left = times;
        while left > 0 {
            // A load may be ended in the midst of it: what came until then has come.
            let wanted = if self.task.background {
                left.min(OF_A_LOAD)
            } else {
                left.min(self.received_portion(bytes))
            };
            let done = self.open()?.receive(bytes, wanted).await?;
            self.unconfirmed = false;
            if self.measuring() {
                self.observation.record.received_units += done;
                self.observation.record.received_bytes += done * bytes;
                self.note_moved(true, done, bytes);
            }
            if done < wanted {
                return self.stream_ended(cursor);
            }
            left -= done;
        }
        Ok(())
    }

    /// The peer sends no more: expected under a time limit, from a load and where data can be lost.
    fn stream_ended(&mut self, cursor: &mut Cursor) -> Result<()> {
        let task = &self.task;
        self.world.emit(EndpointStep::StreamEnded);
        // The first time, what follows the awaited units may still have to be done: a put is confirmed.
        let closed = self
            .connection
            .as_ref()
            .is_none_or(EndpointService::is_closed);
        let over = closed && mem::replace(&mut self.stream_over, true);
        if task.reliable && task.time_limit.is_none() && !task.background {
            return Err(self.world.vanished("before it had sent everything"));
        }
        self.observation.limited |= task.background || (task.time_limit.is_some() && task.reliable);
        cursor.leave(over);
        Ok(())
    }

    /// Ends the own stream of data units because the limit was reached.
    async fn end_stream(&mut self) -> Result<()> {
        self.observation.limited = true;
        match &mut self.connection {
            Some(connection) => connection.end_stream().await,
            None => Ok(()),
        }
    }

    async fn call(
        &mut self,
        request: u64,
        response: u64,
        times: u64,
        cursor: &mut Cursor,
    ) -> Result<()> {
        self.close_counts();
        let measuring = self.measuring();
        let mut before = self.world.now();
        let mut since = before;
        if let Some(intended) = self.moments.take() {
            before = intended;
        }
        let mut cut = false;
        let Some(connection) = &mut self.connection else {
            return self.open().map(drop);
        };
        for _ in 0..times {
            if times > 1 && self.world.limit_reached() {
                cut = true;
                break;
            }
            let answered = connection.call(request, response, since).await?;
            let after = self.world.now();
            // An answer shows that everything sent before it has arrived.
            self.unconfirmed &= !answered;
            if answered && measuring {
                let took = self.world.between(before, after);
                self.calls.record(took);
                if let Some(series) = &mut self.series {
                    series.add(before, took);
                }
                if let Some(intervals) = &mut self.intervals {
                    intervals::note_call(intervals, after, took, connection);
                }
            }
            // One reading of the clock serves both: the next call begins where this one ends.
            (before, since) = (after, after);
        }
        self.moments.free(since);
        if cut {
            cursor.cut_short();
            return self.end_stream().await;
        }
        Ok(())
    }

    async fn serve(
        &mut self,
        request: u64,
        response: u64,
        times: u64,
        cursor: &mut Cursor,
    ) -> Result<()> {
        for done in 0..times {
            if !self.open()?.await_call(request).await? {
                return self.stream_ended(cursor);
            }
            self.unconfirmed = false;
            if done == 0 {
                self.hear();
            }
            self.open()?.reply(response).await?;
        }
        Ok(())
    }

    /// Begins a bulk transfer. It is paced from where its data may begin: a stack may first have to exchange a message
    /// with the peer.
    async fn start_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.open()?.start_bulk(direction).await?;
        self.moments.restart(Some(self.world.now()));
        Ok(())
    }

    async fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        cursor: &mut Cursor,
    ) -> Result<()> {
        self.world.emit(EndpointStep::AwaitsWord);
        if !self.open()?.await_start_bulk(direction).await? {
            return self.stream_ended(cursor);
        }
        self.hear();
        self.moments.restart(None);
        self.heard = Some(self.world.now());
        self.world.start_time_limit();
        Ok(())
    }

    async fn stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        if direction == BulkDirection::Put {
            self.world.emit(EndpointStep::AwaitsWord);
        }
        self.open()?.stop_bulk(direction).await?;
        self.unconfirmed = false;
        Ok(())
    }

    // --- time ---

    /// Starts the clock. A responder has this operation where data units lie before the clock: its counts then start
    /// with those of the initiator.
    async fn start_measurement(&mut self) -> Result<()> {
        self.moments.restart(None);
        self.counted = self
            .connection
            .as_ref()
            .map(EndpointService::facts)
            .unwrap_or_default();
        if self.task.side == PairSide::Responder {
            self.heard = None;
            self.own_clock = false;
            self.start();
            return Ok(());
        }
        if let Some(connection) = &mut self.connection {
            // An unacknowledged message of the connection's setup would hold back a small request (Nagle).
            connection.settle().await?;
        }
        self.world.barrier().await?;
        let first = procedure::bulk_at_clock_start(&self.task.steps);
        if let (Some(call), Some(connection)) = (first, &mut self.connection) {
            let direction = match call {
                OperationCall::StartBulkGet => BulkDirection::Get,
                _ => BulkDirection::Put,
            };
            connection.prepare_bulk(direction).await?;
        }
        self.start();
        Ok(())
    }

    /// Stops the clock, and notes data units that may still be in transit.
    fn stop_measurement(&mut self) {
        self.stop();
        if self.unconfirmed && self.task.side == PairSide::Initiator {
            self.observation
                .record
                .notes
                .push(run_record::IN_TRANSIT.into());
        }
    }

    /// Reads the transport, the processor and the clock at the start of the measured period.
    fn start(&mut self) {
        let transport = self
            .connection
            .as_ref()
            .and_then(EndpointService::transport);
        let processor = self.world.processor(EndpointStep::ClockStarts);
        if self.task.side == PairSide::Initiator {
            self.world.start_time_limit();
        }
        self.world.emit(EndpointStep::ClockStarts);
        let at = self.world.now();
        self.begin_intervals(at, transport);
        self.started = Some(EndpointStart {
            at,
            processor,
            transport,
        });
    }

    /// Reads the clock, the processor and the transport at the end of the measured period; does nothing a second time.
    fn stop(&mut self) {
        let Some(start) = self.started.filter(|_| !self.stopped) else {
            return;
        };
        let at = self.world.now();
        let processor = self.world.processor(EndpointStep::ClockStops);
        self.stopped = true;
        self.world.emit(EndpointStep::ClockStops);
        let record = &mut self.observation.record;
        if let (Some(before), Some(after)) = (start.processor, processor) {
            record.usage = after.usage.since(&before.usage);
            record.cpu = Some((before.core, after.core, before.pinned));
        }
        let now = self
            .connection
            .as_ref()
            .and_then(EndpointService::transport);
        record.transport = self.transports.total(start.transport, now);
        self.end_intervals(at, now);
        self.observation.period = Some((self.world.reading(start.at), self.world.reading(at)));
    }

    /// Notes the first message from the peer. A responder restarts its clock here: what it used while it waited is not
    /// part of the period.
    fn hear(&mut self) {
        if self.heard.is_some() || self.task.side == PairSide::Initiator {
            return;
        }
        self.heard = Some(self.world.now());
        if !self.loops && !self.own_clock {
            self.start();
        }
    }

    /// The instant from which paces and marks are timed.
    fn begun(&self) -> Option<Instant> {
        self.heard.or(self.started.map(|start| start.at))
    }

    /// Waits until `time` after the last intended moment, and records how late that was.
    async fn pace(&mut self, time: Duration, cursor: &mut Cursor) -> Result<()> {
        let begun = self.begun().unwrap_or_else(|| self.world.now());
        let moment = self.moments.next(time, begun);
        if !self.world.sleep_until(moment).await? && cursor.cut() {
            return Ok(());
        }
        self.moments.arm();
        if self.measuring() {
            let (world, now) = (&self.world, self.world.now());
            self.moments
                .record(moment, now, |from, to| world.between(from, to));
        }
        Ok(())
    }

    /// Records the time at which a mark of the program is passed.
    fn mark(&mut self, index: usize) {
        let Some(begun) = self.begun() else { return };
        let (world, now) = (&self.world, self.world.now());
        let since = |from| world.between(from, now);
        self.marks
            .pass(index, now, since(begun), since, || world.times(u64::MAX));
    }

    /// Stops the clock and gathers everything observed.
    fn finish(mut self, cursor: &Cursor) -> EndpointObservation {
        self.stop();
        self.note_connection();
        let counts = self.world.counts();
        let record = &mut self.observation.record;
        record.counts = counts;
        if self.lossy
            && record.received_units > 0
            && procedure::moves_outside_clock(&self.task.steps)
        {
            record.notes.push(run_record::UNPLACED.into());
        }
        self.observation.calls = self.calls.finish();
        self.observation.connects = self.connects.finish();
        (self.observation.lateness, self.observation.own_lateness) = self.moments.finish();
        self.observation.opening = self.openings.finish();
        let series = self
            .series
            .map(|calls| calls.finish(|at| self.world.reading(at)));
        self.observation.timed_calls = series.unwrap_or_default();
        self.observation.record.marks = self.marks.finish(cursor.marks()).into_iter().collect();
        self.observation
    }
}
