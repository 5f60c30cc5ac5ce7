//! One endpoint of one side: walks the cursor over a connection and reads its host's clock, as the live world's does.
//!
//! It is written as if it blocked; where it waits, the engine goes on and looks at it again when its socket or its timer
//! may have changed.

use crate::error::{Error, Result, vanished};
use crate::job::Seen;
use crate::recorder::Recorder;
use crate::stacks::{Bulk, Connection, Door};
use crate::trace::Life;
use crate::world::Desk;
use stackline_core::cursor::{Cursor, Operation};
use stackline_core::error::Blame;
use stackline_core::program::{self, Side};
use stackline_core::record::Transport;
use stackline_core::time::{Duration, Instant};
use std::mem;
use std::rc::Rc;

/// One endpoint's state. Moments are true ones; lengths of time are what its host reads.
pub(crate) struct Endpoint {
    desk: Rc<Desk>,
    door: Door,
    connection: Option<Connection>,
    seen: Seen,
    calls: Recorder,
    connects: Recorder,
    lateness: Recorder,
    marks: Vec<Recorder>,
    /// When the present connection was asked for.
    connecting: Instant,
    /// The last intended moment, and whether the next call counts from it.
    intended: Option<Instant>,
    paced: bool,
    started: Option<(Instant, Option<Transport>)>,
    stopped: bool,
    /// Whether connections come and go in a repeat, so that the period does not end with the first.
    loops: bool,
    /// When the peer was first heard of; what a responder paces and marks from.
    heard: Option<Instant>,
    /// Data units sent that nothing from the peer has followed yet.
    unconfirmed: bool,
    /// The present connection's stream was found to have ended.
    stream_over: bool,
    /// Bytes that arrived on earlier connections, where cursors cannot know.
    arrived_before: u64,
}

impl Endpoint {
    pub(crate) fn new(desk: Rc<Desk>, door: Door) -> Self {
        let loops = program::repeats_connections(&desk.job.task.steps);
        Self {
            desk,
            door,
            connection: None,
            seen: Seen::default(),
            calls: Recorder::default(),
            connects: Recorder::default(),
            lateness: Recorder::default(),
            marks: Vec::new(),
            connecting: Instant::default(),
            intended: None,
            paced: false,
            started: None,
            stopped: false,
            loops,
            heard: None,
            unconfirmed: false,
            stream_over: false,
            arrived_before: 0,
        }
    }

    /// Walks the whole program (again and again for a load). What was seen counts also when it was ended.
    pub(crate) async fn run(mut self, replica: u32) -> Result<Seen> {
        let desk = Rc::clone(&self.desk);
        let task = &desk.job.task;
        let seed = task.seed.index(u64::from(replica));
        // A responder without data waits in accept: its period is the whole of its life.
        if task.side == Side::Responder && !task.carries_data {
            self.start();
        }
        loop {
            let mut cursor = Cursor::new(&task.steps, &task.data, seed);
            if self.marks.len() < cursor.marks().len() {
                self.marks = cursor.marks().iter().map(|_| Recorder::default()).collect();
            }
            let flags = &desk.job.flags;
            match self.walk(&mut cursor).await {
                Ok(()) if task.background && !self.seen.limited && !flags.limit() => {}
                Ok(()) => return Ok(self.finish(&cursor)),
                Err(error) if error.blame == Blame::Interrupted => return Ok(self.finish(&cursor)),
                Err(_) if task.background && flags.limit() => return Ok(self.finish(&cursor)),
                Err(fault) => return Err(fault),
            }
        }
    }

    async fn walk(&mut self, cursor: &mut Cursor) -> Result<()> {
        loop {
            if self.desk.job.flags.limit() {
                cursor.limit_reached();
            }
            let Some(operation) = cursor.advance() else { return Ok(()) };
            self.execute(operation, cursor).await?;
        }
    }

    async fn execute(&mut self, operation: Operation, cursor: &mut Cursor) -> Result<()> {
        match operation {
            Operation::RpcAwaitCallInd { bytes } => {
                if !self.open()?.await_call(bytes).await? {
                    return self.stream_ended(cursor);
                }
                self.hear();
                Ok(())
            }
            Operation::RpcServe { request, response, times } => self.serve(request, response, times, cursor).await,
            Operation::RpcReturn { bytes } => self.open()?.reply(bytes).await,
            Operation::RpcCall { request, response, times } => self.call(request, response, times).await,
            Operation::DataRequest { bytes, times } => self.send(bytes, times).await,
            Operation::AwaitDataIndication { bytes, times } => self.receive(bytes, times, cursor).await,
            Operation::ConnectRequest => self.connect().await,
            Operation::AwaitConnectIndication => self.accept().await,
            Operation::DisconnectRequest => self.disconnect().await,
            Operation::AwaitDisconnectIndication => self.await_disconnect().await,
            Operation::StartBulkGet => self.open()?.start_bulk(Bulk::Get).await,
            Operation::StartBulkPut => self.open()?.start_bulk(Bulk::Put).await,
            Operation::AwaitStartBulkGet => self.await_start_bulk(Bulk::Get, cursor).await,
            Operation::AwaitStartBulkPut => self.await_start_bulk(Bulk::Put, cursor).await,
            Operation::StopBulkGet => self.stop_bulk(Bulk::Get).await,
            Operation::StopBulkPut => self.stop_bulk(Bulk::Put).await,
            Operation::AwaitStopBulkGet => self.open()?.await_stop_bulk(Bulk::Get).await,
            Operation::AwaitStopBulkPut => self.open()?.await_stop_bulk(Bulk::Put).await,
            Operation::EndStream => self.end_stream().await,
            Operation::StartMeasurement => self.start_measurement().await,
            Operation::StopMeasurement => {
                self.stop();
                if self.unconfirmed {
                    self.seen.record.notes.push("not confirmed: the clock stopped with data units in transit".into());
                }
                Ok(())
            }
            Operation::Delay(time) => self.desk.sleep(self.desk.now() + time).await.map(drop),
            Operation::Pace(time) => self.pace(time, cursor).await,
            Operation::ReadFile { .. } | Operation::WriteFile { .. } => {
                Err(Error::measurement("files are not simulated").into())
            }
            Operation::Mark(index) => {
                self.mark(index);
                Ok(())
            }
        }
    }

    fn open(&mut self) -> Result<&mut Connection> {
        let missing = || Error::measurement("the procedure uses a connection before it opens one");
        self.connection.as_mut().ok_or_else(|| missing().into())
    }

    const fn measuring(&self) -> bool {
        self.started.is_some() && !self.stopped
    }

    // --- data ---

    async fn send(&mut self, bytes: u64, times: u64) -> Result<()> {
        let connection = self.open()?;
        let done = connection.send(bytes, times).await?;
        let confirmed = connection.confirms();
        self.unconfirmed = !confirmed;
        if self.measuring() {
            self.seen.record.sent_units += done;
            self.seen.record.sent_bytes += done * bytes;
        }
        if done < times {
            self.end_stream().await?;
        }
        Ok(())
    }

    async fn receive(&mut self, bytes: u64, times: u64, cursor: &mut Cursor) -> Result<()> {
        let done = self.open()?.receive(bytes, times).await?;
        self.unconfirmed = false;
        if self.measuring() {
            self.seen.record.received_units += done;
            self.seen.record.received_bytes += done * bytes;
        }
        if done < times { self.stream_ended(cursor) } else { Ok(()) }
    }

    /// The peer sends no more: expected under a time limit, from a load and where data can be lost.
    fn stream_ended(&mut self, cursor: &mut Cursor) -> Result<()> {
        let task = &self.desk.job.task;
        self.desk.trace_ended();
        // The first time, what follows the awaited units may still have to be done: a put is confirmed.
        let closed = self.connection.as_ref().is_none_or(Connection::closed);
        let over = closed && mem::replace(&mut self.stream_over, true);
        if task.reliable && task.time_limit.is_none() && !task.background {
            return Err(vanished("before it had sent everything"));
        }
        self.seen.limited |= task.background || (task.time_limit.is_some() && task.reliable);
        cursor.leave(over);
        Ok(())
    }

    async fn end_stream(&mut self) -> Result<()> {
        self.seen.limited = true;
        match &mut self.connection {
            Some(connection) => connection.end_stream().await,
            None => Ok(()),
        }
    }

    async fn call(&mut self, request: u64, response: u64, times: u64) -> Result<()> {
        let measuring = self.measuring();
        let mut before = self.desk.now();
        let mut since = before;
        if let Some(intended) = self.intended.filter(|_| self.paced) {
            before = intended;
        }
        self.paced = false;
        for _ in 0..times {
            if times > 1 && self.desk.job.flags.limit() {
                return self.end_stream().await;
            }
            let answered = self.open()?.call(request, response, since).await?;
            let after = self.desk.now();
            if answered && measuring {
                self.calls.record(self.desk.between(before, after));
            }
            (before, since) = (after, after);
        }
        Ok(())
    }

    async fn serve(&mut self, request: u64, response: u64, times: u64, cursor: &mut Cursor) -> Result<()> {
        for done in 0..times {
            if !self.open()?.await_call(request).await? {
                return self.stream_ended(cursor);
            }
            if done == 0 {
                self.hear();
            }
            self.open()?.reply(response).await?;
        }
        Ok(())
    }

    async fn await_start_bulk(&mut self, way: Bulk, cursor: &mut Cursor) -> Result<()> {
        self.desk.trace_awaits_word();
        if !self.open()?.await_start_bulk(way).await? {
            return self.stream_ended(cursor);
        }
        self.hear();
        // Each transfer is paced from its own beginning.
        self.intended = None;
        self.heard = Some(self.desk.now());
        self.desk.job.arm(&self.desk.world);
        Ok(())
    }

    async fn stop_bulk(&mut self, way: Bulk) -> Result<()> {
        if way == Bulk::Put {
            self.desk.trace_awaits_word();
        }
        self.open()?.stop_bulk(way).await?;
        self.unconfirmed = false;
        Ok(())
    }

    // --- connections ---

    async fn connect(&mut self) -> Result<()> {
        self.connecting = self.intended.filter(|_| self.paced).unwrap_or_else(|| self.desk.now());
        self.paced = false;
        self.desk.trace_life(Life::Connect);
        self.connection = Some(self.door.connect(&self.desk).await?);
        self.desk.trace_life(Life::Connected);
        self.note_settings();
        Ok(())
    }

    async fn accept(&mut self) -> Result<()> {
        self.desk.trace_life(Life::Accept);
        self.connection = Some(self.door.accept(&self.desk).await?);
        self.desk.trace_life(Life::Accepted);
        self.note_settings();
        if self.started.is_none() {
            self.start();
        }
        Ok(())
    }

    fn note_settings(&mut self) {
        self.stream_over = false;
        if let Some(connection) = self.connection.as_ref()
            && self.seen.record.settings.is_empty()
        {
            self.seen.record.settings = connection.settings();
        }
    }

    async fn disconnect(&mut self) -> Result<()> {
        self.note_connection();
        let Some(connection) = self.connection.take() else { return self.open().map(drop) };
        self.desk.trace_life(Life::Disconnect);
        connection.disconnect().await?;
        self.desk.trace_life(Life::Disconnected);
        if self.measuring() {
            self.connects.record(self.desk.between(self.connecting, self.desk.now()));
        }
        Ok(())
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        // A loop of connections goes on being measured; otherwise what follows is only the peer's leisure.
        if !self.loops {
            self.stop();
        }
        self.open()?.await_disconnect().await?;
        self.desk.trace_life(Life::Disconnected);
        self.note_connection();
        self.connection = None;
        Ok(())
    }

    /// Keeps what the connection knows before it goes.
    fn note_connection(&mut self) {
        let Some(connection) = self.connection.as_ref().filter(|_| self.desk.job.task.carries_data) else { return };
        let record = &mut self.seen.record;
        if let Some(losses) = connection.losses() {
            record.lost = Some(record.lost.unwrap_or(0) + losses.lost);
            record.duplicated = Some(record.duplicated.unwrap_or(0) + losses.duplicated);
            record.reordered = Some(record.reordered.unwrap_or(0) + losses.reordered);
        }
        if let Some(bytes) = connection.received_bytes()
            && record.received_units > 0
        {
            self.arrived_before += bytes;
            record.received_bytes = self.arrived_before;
        }
    }

    // --- time ---

    async fn start_measurement(&mut self) -> Result<()> {
        let job = &self.desk.job;
        job.waiting.set(job.waiting.get() + 1);
        self.desk.world.tell_news();
        self.desk.until("the others to be connected", || job.open.get().then_some(())).await?;
        if job.flags.ended() {
            return Err(Error::interrupted());
        }
        self.start();
        Ok(())
    }

    fn start(&mut self) {
        let transport = self.connection.as_ref().and_then(Connection::transport);
        if self.desk.job.task.side == Side::Initiator {
            self.desk.job.arm(&self.desk.world);
        }
        self.started = Some((self.desk.now(), transport));
        self.desk.trace_clock(true);
    }

    fn stop(&mut self) {
        let Some((started, before)) = self.started else { return };
        if mem::replace(&mut self.stopped, true) {
            return;
        }
        self.desk.trace_clock(false);
        let transport = self.connection.as_ref().and_then(Connection::transport);
        self.seen.record.transport = before.zip(transport);
        let clock = &self.desk.clock;
        self.seen.period = Some((clock.reading(started), clock.reading(self.desk.now())));
    }

    /// The peer is heard of for the first time: what a responder did while it waited for that is none of the period's.
    fn hear(&mut self) {
        if self.heard.is_some() || self.desk.job.task.side == Side::Initiator {
            return;
        }
        self.heard = Some(self.desk.now());
        if !self.loops {
            self.start();
        }
    }

    async fn pace(&mut self, time: Duration, cursor: &mut Cursor) -> Result<()> {
        let begun = self.heard.or(self.started.map(|(at, _)| at));
        let moment = self.intended.or(begun).unwrap_or_else(|| self.desk.now()) + time;
        self.intended = Some(moment);
        if !self.desk.sleep(moment).await? && cursor.cut() {
            return Ok(());
        }
        self.paced = true;
        if self.measuring() {
            self.lateness.record(self.desk.between(moment, self.desk.now()));
        }
        Ok(())
    }

    fn mark(&mut self, index: usize) {
        let begun = self.heard.or(self.started.map(|(at, _)| at));
        if let (Some(begun), Some(recorder)) = (begun, self.marks.get_mut(index)) {
            recorder.record(self.desk.between(begun, self.desk.now()));
        }
    }

    fn finish(mut self, cursor: &Cursor) -> Seen {
        self.stop();
        self.note_connection();
        self.seen.calls = self.calls.finish();
        self.seen.connects = self.connects.finish();
        self.seen.lateness = self.lateness.finish();
        for (name, recorder) in cursor.marks().iter().zip(self.marks) {
            let histogram = recorder.finish();
            if histogram.n() > 0 {
                self.seen.record.marks.insert(name.clone(), histogram);
            }
        }
        self.seen
    }
}
