//! One endpoint of one side: walks the cursor over a connection and reads the clock.
//!
//! Between StartMeasurement and StopMeasurement it reads the clock once a call and once a connection, not once a data unit;
//! it allocates nothing and logs nothing.

use crate::marks::Marks;
use crate::observation::Observation;
use crate::service::{Bulk, Facts, Service};
use crate::task::Task;
use crate::times::Times;
use crate::world::{Processor, Step, World};
use stackline_core::cursor::{Cursor, Operation};
use stackline_core::error::{Blame, Error, Result};
use stackline_core::program::{self, Side};
use stackline_core::record::{self, Transport};
use stackline_core::time::{Duration, Instant};
use std::mem;
use std::sync::Arc;

/// An endpoint's state.
#[derive(Debug)]
pub struct Endpoint<W: World> {
    task: Arc<Task>,
    world: W,
    connection: Option<W::Service>,
    observation: Observation,
    calls: Times,
    connects: Times,
    lateness: Times,
    marks: Marks,
    /// How long the present connection took to come about.
    connecting: Duration,
    /// The last intended moment, and whether the next call counts from it.
    intended: Option<Instant>,
    paced: bool,
    started: Option<Start>,
    stopped: bool,
    /// A responder's own StartMeasurement is still to come.
    own_clock: bool,
    /// Whether connections come and go in a repeat, so that the period does not end with the first.
    loops: bool,
    /// When the peer was first heard of; what a responder paces and marks from.
    heard: Option<Instant>,
    /// Data units sent that nothing from the peer has followed yet.
    unconfirmed: bool,
    /// The present connection's stream was found to have ended.
    stream_over: bool,
    /// What the present connection had reported when counting began.
    counted: Facts,
    /// Data units moved after the clock: what the connection reports of them is not counted.
    beyond: bool,
    /// Data units were seen to be lost.
    lossy: bool,
    /// Bytes that arrived while the clock ran, where cursors cannot know.
    arrived: u64,
}

/// What was read when the clock started.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: Instant,
    processor: Option<Processor>,
    transport: Option<Transport>,
}

/// Units of a load that are received in one operation.
const OF_A_LOAD: u64 = 16;

impl<W: World> Endpoint<W> {
    /// An endpoint that has not begun.
    #[must_use]
    pub fn new(task: Arc<Task>, world: W) -> Self {
        let expected = task.expected_units().unwrap_or(u64::MAX);
        let times = |wanted: bool| world.times(if wanted { expected } else { 0 });
        Self {
            connection: None,
            observation: Observation::default(),
            calls: times(task.does("RPCCall")),
            connects: if task.carries_data {
                world.times(64)
            } else {
                times(true)
            },
            lateness: times(task.does("Pace")),
            marks: Marks::default(),
            connecting: Duration::default(),
            intended: None,
            paced: false,
            started: None,
            stopped: false,
            own_clock: task.side == Side::Responder && task.does("StartMeasurement"),
            loops: program::repeats_connections(&task.steps),
            heard: None,
            unconfirmed: false,
            stream_over: false,
            counted: Facts::default(),
            beyond: false,
            lossy: false,
            arrived: 0,
            task,
            world,
        }
    }

    /// Walks the whole program (again and again for a load). What was observed counts also when it was ended.
    ///
    /// # Errors
    /// An [`Error`] of the stack, the peer or the files.
    pub async fn run(mut self, replica: u32) -> Result<Observation> {
        let seed = self.task.seed.index(u64::from(replica));
        // A responder without data waits in accept: its period is the whole of its life.
        if self.task.side == Side::Responder && !self.task.carries_data {
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
    async fn execute(&mut self, operation: Operation, cursor: &mut Cursor) -> Result<()> {
        match operation {
            Operation::RpcAwaitCallInd { bytes } => {
                if !self.open()?.await_call(bytes).await? {
                    return self.stream_ended(cursor);
                }
                self.hear();
                Ok(())
            }
            Operation::RpcServe {
                request,
                response,
                times,
            } => self.serve(request, response, times, cursor).await,
            Operation::RpcReturn { bytes } => self.open()?.reply(bytes).await,
            Operation::RpcCall {
                request,
                response,
                times,
            } => self.call(request, response, times, cursor).await,
            Operation::DataRequest { bytes, times } => self.send(bytes, times, cursor).await,
            Operation::AwaitDataIndication { bytes, times } => {
                self.receive(bytes, times, cursor).await
            }
            Operation::ConnectRequest => self.connect().await,
            Operation::AwaitConnectIndication => self.accept().await,
            Operation::DisconnectRequest => self.disconnect().await,
            Operation::AwaitDisconnectIndication => self.await_disconnect().await,
            Operation::StartBulkGet => self.start_bulk(Bulk::Get).await,
            Operation::StartBulkPut => self.start_bulk(Bulk::Put).await,
            Operation::AwaitStartBulkGet => self.await_start_bulk(Bulk::Get, cursor).await,
            Operation::AwaitStartBulkPut => self.await_start_bulk(Bulk::Put, cursor).await,
            Operation::StopBulkGet => self.stop_bulk(Bulk::Get).await,
            Operation::StopBulkPut => self.stop_bulk(Bulk::Put).await,
            Operation::AwaitStopBulkGet => self.open()?.await_stop_bulk(Bulk::Get).await,
            Operation::AwaitStopBulkPut => self.open()?.await_stop_bulk(Bulk::Put).await,
            Operation::EndStream => self.end_stream().await,
            Operation::StartMeasurement => self.start_measurement().await,
            Operation::StopMeasurement => {
                self.stop_measurement();
                Ok(())
            }
            Operation::Delay(time) => self
                .world
                .sleep_until(self.world.now() + time)
                .await
                .map(drop),
            Operation::Pace(time) => self.pace(time, cursor).await,
            Operation::ReadFile { bytes } => self.world.read_file(bytes).await,
            Operation::WriteFile { bytes } => self.world.write_file(bytes).await,
            Operation::Mark(index) => {
                self.mark(index);
                Ok(())
            }
        }
    }

    fn open(&mut self) -> Result<&mut W::Service> {
        let missing = || Error::input("the procedure uses a connection before it opens one");
        self.connection.as_mut().ok_or_else(missing)
    }

    const fn measuring(&self) -> bool {
        self.started.is_some() && !self.stopped
    }

    // --- data ---

    async fn send(&mut self, bytes: u64, times: u64, cursor: &mut Cursor) -> Result<()> {
        self.close_counts();
        let connection = self.open()?;
        let done = connection.send(bytes, times).await?;
        self.unconfirmed = !connection.confirms();
        if self.measuring() {
            self.observation.record.sent_units += done;
            self.observation.record.sent_bytes += done * bytes;
        }
        if done < times {
            cursor.cut_short();
            return self.end_stream().await;
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
                left
            };
            let done = self.open()?.receive(bytes, wanted).await?;
            self.unconfirmed = false;
            if self.measuring() {
                self.observation.record.received_units += done;
                self.observation.record.received_bytes += done * bytes;
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
        self.world.emit(Step::StreamEnded);
        // The first time, what follows the awaited units may still have to be done: a put is confirmed.
        let closed = self.connection.as_ref().is_none_or(Service::is_closed);
        let over = closed && mem::replace(&mut self.stream_over, true);
        if task.reliable && task.time_limit.is_none() && !task.background {
            return Err(self.world.vanished("before it had sent everything"));
        }
        self.observation.limited |= task.background || (task.time_limit.is_some() && task.reliable);
        cursor.leave(over);
        Ok(())
    }

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
        if let Some(intended) = self.intended.filter(|_| self.paced) {
            before = intended;
        }
        self.paced = false;
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
            // What was sent before it has been there before the answer.
            self.unconfirmed &= !answered;
            if answered && measuring {
                self.calls.record(self.world.between(before, after));
            }
            (before, since) = (after, after);
        }
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

    /// Each transfer is paced from where its data may begin: a stack may first have to exchange a word with the peer.
    async fn start_bulk(&mut self, way: Bulk) -> Result<()> {
        self.open()?.start_bulk(way).await?;
        self.intended = Some(self.world.now());
        self.paced = false;
        Ok(())
    }

    async fn await_start_bulk(&mut self, way: Bulk, cursor: &mut Cursor) -> Result<()> {
        self.world.emit(Step::AwaitsWord);
        if !self.open()?.await_start_bulk(way).await? {
            return self.stream_ended(cursor);
        }
        self.hear();
        self.intended = None;
        self.heard = Some(self.world.now());
        self.world.start_time_limit();
        Ok(())
    }

    async fn stop_bulk(&mut self, way: Bulk) -> Result<()> {
        if way == Bulk::Put {
            self.world.emit(Step::AwaitsWord);
        }
        self.open()?.stop_bulk(way).await?;
        self.unconfirmed = false;
        Ok(())
    }

    // --- connections ---

    async fn connect(&mut self) -> Result<()> {
        let from = self
            .intended
            .filter(|_| self.paced)
            .unwrap_or_else(|| self.world.now());
        self.paced = false;
        self.world.emit(Step::Connect);
        self.connection = Some(self.world.connect().await?);
        self.connecting = self.world.between(from, self.world.now());
        self.world.emit(Step::Connected);
        self.note_settings();
        Ok(())
    }

    async fn accept(&mut self) -> Result<()> {
        self.world.emit(Step::Accept);
        self.connection = Some(self.world.accept().await?);
        self.world.emit(Step::Accepted);
        self.note_settings();
        if self.started.is_none() && !self.own_clock {
            self.start();
        }
        Ok(())
    }

    /// Before anything is sent: the end of a bulk transfer may switch what a specification did not ask for. In a loop of
    /// connections without data the query would be measured with the first, so it is made when that one ends.
    fn note_settings(&mut self) {
        self.stream_over = false;
        self.counted = Facts::default();
        if let Some(connection) = self.connection.as_ref().filter(|_| self.task.carries_data)
            && self.observation.record.settings.is_empty()
        {
            self.observation.record.settings = connection.settings();
        }
    }

    async fn disconnect(&mut self) -> Result<()> {
        self.note_connection();
        let Some(connection) = self.connection.take() else {
            return self.open().map(drop);
        };
        self.world.emit(Step::Disconnect);
        let from = self.world.now();
        connection.disconnect().await?;
        self.world.emit(Step::Disconnected);
        if self.measuring() {
            // What lay between the two is no part of either.
            self.connects
                .record(self.connecting + self.world.between(from, self.world.now()));
        }
        Ok(())
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        // A loop of connections goes on being measured; otherwise what follows is only the peer's leisure.
        if !self.loops {
            self.stop();
        }
        self.open()?.await_disconnect().await?;
        self.world.emit(Step::Disconnected);
        self.note_connection();
        self.connection = None;
        Ok(())
    }

    /// Keeps what the connection reports before it goes.
    fn note_connection(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let record = &mut self.observation.record;
        if record.settings.is_empty() {
            record.settings = connection.settings();
        }
        if !self.task.carries_data {
            return;
        }
        let facts = connection.facts();
        self.lossy |= lost_any(&facts);
        record.notes.extend(facts.notes);
        if !self.beyond {
            self.count_facts();
        }
    }

    /// What the connection reports beyond what was counted already.
    fn count_facts(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let record = &mut self.observation.record;
        let facts = connection.facts();
        self.lossy |= lost_any(&facts);
        if let Some(losses) = facts.losses {
            let before = self.counted.losses.unwrap_or_default();
            let add = |sum: &mut Option<u64>, now: u64, before: u64| {
                *sum = Some(sum.unwrap_or(0) + now.saturating_sub(before))
            };
            add(&mut record.lost, losses.lost, before.lost);
            add(&mut record.duplicated, losses.duplicated, before.duplicated);
            add(&mut record.reordered, losses.reordered, before.reordered);
        }
        if let Some(bytes) = facts.received_bytes
            && record.received_units > 0
        {
            self.arrived += bytes.saturating_sub(self.counted.received_bytes.unwrap_or(0));
            record.received_bytes = self.arrived;
        }
        self.counted = facts;
    }

    /// The first data unit or call after the clock: what the connection reports from here on is not counted.
    fn close_counts(&mut self) {
        if self.stopped && !self.beyond {
            self.count_facts();
            self.beyond = true;
        }
    }

    // --- time ---

    /// A responder has one where data units lie before the clock: its counts start with those of the initiator.
    async fn start_measurement(&mut self) -> Result<()> {
        self.intended = None;
        self.counted = self
            .connection
            .as_ref()
            .map(Service::facts)
            .unwrap_or_default();
        if self.task.side == Side::Responder {
            self.heard = None;
            self.own_clock = false;
            self.start();
            return Ok(());
        }
        if let Some(connection) = &mut self.connection {
            // The introduction, unacknowledged, would hold back a small request (Nagle).
            connection.settle().await?;
        }
        self.world.barrier().await?;
        self.start();
        Ok(())
    }

    fn stop_measurement(&mut self) {
        self.stop();
        if self.unconfirmed && self.task.side == Side::Initiator {
            self.observation
                .record
                .notes
                .push(record::IN_TRANSIT.into());
        }
    }

    fn start(&mut self) {
        let transport = self.connection.as_ref().and_then(Service::transport);
        let processor = self.world.processor(Step::ClockStarts);
        if self.task.side == Side::Initiator {
            self.world.start_time_limit();
        }
        self.world.emit(Step::ClockStarts);
        self.started = Some(Start {
            at: self.world.now(),
            processor,
            transport,
        });
    }

    fn stop(&mut self) {
        let Some(start) = self.started.filter(|_| !self.stopped) else {
            return;
        };
        let at = self.world.now();
        let processor = self.world.processor(Step::ClockStops);
        self.stopped = true;
        self.world.emit(Step::ClockStops);
        let record = &mut self.observation.record;
        if let (Some(before), Some(after)) = (start.processor, processor) {
            record.usage = after.usage.since(&before.usage);
            record.cpu = Some((before.core, after.core, before.pinned));
        }
        record.transport = start
            .transport
            .zip(self.connection.as_ref().and_then(Service::transport));
        self.observation.period = Some((self.world.reading(start.at), self.world.reading(at)));
    }

    /// The peer is heard of for the first time: what a responder used while it waited for that is none of the period's.
    fn hear(&mut self) {
        if self.heard.is_some() || self.task.side == Side::Initiator {
            return;
        }
        self.heard = Some(self.world.now());
        if !self.loops && !self.own_clock {
            self.start();
        }
    }

    /// What paces and marks count from.
    fn begun(&self) -> Option<Instant> {
        self.heard.or(self.started.map(|start| start.at))
    }

    async fn pace(&mut self, time: Duration, cursor: &mut Cursor) -> Result<()> {
        let from = self
            .intended
            .or(self.begun())
            .unwrap_or_else(|| self.world.now());
        let moment = from + time;
        self.intended = Some(moment);
        if !self.world.sleep_until(moment).await? && cursor.cut() {
            return Ok(());
        }
        self.paced = true;
        if self.measuring() {
            self.lateness
                .record(self.world.between(moment, self.world.now()));
        }
        Ok(())
    }

    fn mark(&mut self, index: usize) {
        let Some(begun) = self.begun() else { return };
        let (world, now) = (&self.world, self.world.now());
        let since = |from| world.between(from, now);
        self.marks
            .pass(index, now, since(begun), since, || world.times(u64::MAX));
    }

    fn finish(mut self, cursor: &Cursor) -> Observation {
        self.stop();
        self.note_connection();
        let record = &mut self.observation.record;
        if self.lossy && record.received_units > 0 && program::moves_outside_clock(&self.task.steps)
        {
            record.notes.push(record::UNPLACED.into());
        }
        self.observation.calls = self.calls.finish();
        self.observation.connects = self.connects.finish();
        self.observation.lateness = self.lateness.finish();
        self.observation.record.marks = self.marks.finish(cursor.marks()).into_iter().collect();
        self.observation
    }
}

fn lost_any(facts: &Facts) -> bool {
    facts.losses.is_some_and(|losses| losses.lost > 0)
}
