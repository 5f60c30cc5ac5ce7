//! One thread of one side: walks the cursor over a connection and reads the clock.
//!
//! Between StartMeasurement and StopMeasurement it reads the clock once a call and once a connection, not once a data
//! unit; it allocates nothing and logs nothing.

use crate::clock;
use crate::ends::{Alarm, Ends};
use crate::fault::{self, Blame, Fault, Result};
use crate::gate::Gate;
use crate::meter::{self, Recorder};
use crate::placement;
use crate::stacks::{Bulk, Connection, Dialer, Listener, vanished};
use stackline_core::cursor::{Cursor, Operation};
use stackline_core::plan::Count;
use stackline_core::program::{self, Side, Step};
use stackline_core::record::{Histogram, SideRecord, Transport, Usage};
use stackline_core::time::{Duration, Instant};
use stackline_events::unit::{self, Direction};
use stackline_events::{Value, event};
use std::sync::Arc;

use crate::control::Task;

/// How a thread gets its connections.
pub enum Door {
    /// The initiator's.
    Dial(Box<dyn Dialer>),
    /// The responder's.
    Listen(Box<dyn Listener>),
}

/// What one thread saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Counters and settings.
    pub record: SideRecord,
    /// When its clock started and stopped.
    pub period: Option<(Instant, Instant)>,
    /// Whether the limit cut it short.
    pub limited: bool,
    /// Response times.
    pub calls: Histogram,
    /// Connect plus disconnect times.
    pub connects: Histogram,
    /// Lateness of paced operations.
    pub lateness: Histogram,
}

/// One thread's state.
pub struct Endpoint<'t> {
    task: &'t Task,
    door: Door,
    ends: Ends,
    gate: Arc<Gate>,
    alarm: Option<Arc<Alarm>>,
    reliable: bool,
    connection: Option<Box<dyn Connection>>,
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
    started: Option<Start>,
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
    /// The stream it sends on, when the run is traced.
    stream: Option<i64>,
}

/// What was read when the clock started.
struct Start {
    at: Instant,
    usage: Usage,
    transport: Option<Transport>,
    cpu: (usize, bool),
}

impl<'t> Endpoint<'t> {
    /// An endpoint that has not begun.
    #[must_use]
    pub fn new(
        task: &'t Task,
        door: Door,
        ends: Ends,
        gate: Arc<Gate>,
        alarm: Option<Arc<Alarm>>,
        reliable: bool,
    ) -> Self {
        let expected = match task.data.count {
            Count::Units(n) if !task.background && task.time_limit.is_none() => n,
            _ => u64::MAX,
        };
        let calls = has(task, "RPCCall");
        let connects = !task.carries_data;
        let paced = has(task, "Pace");
        let of = |wanted: bool| Recorder::new(if wanted { expected } else { 0 });
        Self {
            task,
            door,
            ends,
            gate,
            alarm,
            reliable,
            connection: None,
            seen: Seen::default(),
            calls: of(calls),
            connects: if connects { of(true) } else { Recorder::new(64) },
            lateness: of(paced),
            marks: Vec::new(),
            connecting: Instant::default(),
            intended: None,
            paced: false,
            started: None,
            stopped: false,
            loops: program::repeats_connections(&task.steps),
            heard: None,
            unconfirmed: false,
            stream_over: false,
            arrived_before: 0,
            stream: None,
        }
    }

    /// Walks the whole program (again and again for a load). What was seen counts also when it was ended.
    ///
    /// # Errors
    /// A [`Fault`] of the stack, the peer or the files.
    pub fn run(mut self, replica: u32) -> Result<Seen> {
        let seed = self.task.seed.index(u64::from(replica));
        let way = if self.task.side == Side::Initiator { Direction::There } else { Direction::Back };
        self.stream = self.task.flow.map(|first| unit::stream(first + replica, way));
        // A responder without data waits in accept: its period is the whole of its life.
        if self.task.side == Side::Responder && !self.task.carries_data {
            self.start();
        }
        loop {
            let mut cursor = Cursor::new(&self.task.steps, &self.task.data, seed);
            if self.marks.len() < cursor.marks().len() {
                self.marks = cursor.marks().iter().map(|_| Recorder::new(u64::MAX)).collect();
            }
            match self.walk(&mut cursor) {
                Ok(()) if self.task.background && !self.seen.limited && !self.ends.flags.limit() => {}
                Ok(()) => return Ok(self.finish(&cursor)),
                Err(fault)
                    if fault.blame == Blame::Interrupted || (self.task.background && self.ends.flags.limit()) =>
                {
                    return Ok(self.finish(&cursor));
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    fn walk(&mut self, cursor: &mut Cursor) -> Result<()> {
        loop {
            if self.ends.flags.limit() {
                cursor.limit_reached();
            }
            let Some(operation) = cursor.advance() else { return Ok(()) };
            self.execute(operation, cursor)?;
        }
    }

    #[inline]
    fn execute(&mut self, operation: Operation, cursor: &mut Cursor) -> Result<()> {
        match operation {
            Operation::RpcAwaitCallInd { bytes } => {
                let (connection, ends) = self.open()?;
                if !connection.await_call(bytes as usize, ends)? {
                    return self.stream_ended(cursor);
                }
                self.hear();
                Ok(())
            }
            Operation::RpcServe { request, response, times } => {
                self.serve(request as usize, response as usize, times, cursor)
            }
            Operation::RpcReturn { bytes } => {
                let (connection, ends) = self.open()?;
                connection.reply(bytes as usize, ends)
            }
            Operation::RpcCall { request, response, times } => self.call(request as usize, response as usize, times),
            Operation::DataRequest { bytes, times } => self.send(bytes, times),
            Operation::AwaitDataIndication { bytes, times } => self.receive(bytes, times, cursor),
            Operation::ConnectRequest => self.connect(),
            Operation::AwaitConnectIndication => self.accept(),
            Operation::DisconnectRequest => self.disconnect(),
            Operation::AwaitDisconnectIndication => self.await_disconnect(),
            Operation::StartBulkGet => self.start_bulk(Bulk::Get),
            Operation::StartBulkPut => self.start_bulk(Bulk::Put),
            Operation::AwaitStartBulkGet => self.await_start_bulk(Bulk::Get, cursor),
            Operation::AwaitStartBulkPut => self.await_start_bulk(Bulk::Put, cursor),
            Operation::StopBulkGet => self.stop_bulk(Bulk::Get),
            Operation::StopBulkPut => self.stop_bulk(Bulk::Put),
            Operation::AwaitStopBulkGet => self.await_stop_bulk(Bulk::Get),
            Operation::AwaitStopBulkPut => self.await_stop_bulk(Bulk::Put),
            Operation::EndStream => self.end_stream(),
            Operation::StartMeasurement => {
                if let Some(connection) = &mut self.connection {
                    // The introduction, unacknowledged, would hold back a small request (Nagle).
                    connection.settle(&mut self.ends)?;
                }
                self.gate.wait(&self.ends.flags)?;
                self.start();
                Ok(())
            }
            Operation::StopMeasurement => {
                self.stop();
                if self.unconfirmed {
                    self.seen.record.notes.push("not confirmed: the clock stopped with data units in transit".into());
                }
                Ok(())
            }
            Operation::Delay(time) => self.wait_until(clock::now() + time).map(drop),
            Operation::Pace(time) => self.pace(time, cursor),
            Operation::ReadFile { bytes } => {
                self.ends.read_file(bytes as usize).map_err(|e| fault::io("reading the source", &e))
            }
            Operation::WriteFile { bytes } => {
                self.ends.write_file(bytes as usize).map_err(|e| fault::io("writing the destination", &e))
            }
            Operation::Mark(index) => {
                self.mark(index);
                Ok(())
            }
        }
    }

    fn open(&mut self) -> Result<(&mut Box<dyn Connection>, &mut Ends)> {
        match &mut self.connection {
            Some(connection) => Ok((connection, &mut self.ends)),
            None => Err(Fault::input("the procedure uses a connection before it opens one")),
        }
    }

    const fn measuring(&self) -> bool {
        self.started.is_some() && !self.stopped
    }

    // --- data ---

    fn send(&mut self, bytes: u64, times: u64) -> Result<()> {
        let (connection, ends) = self.open()?;
        let done = connection.send(bytes as usize, times, ends)?;
        let confirmed = connection.confirms();
        self.unconfirmed = !confirmed;
        if self.measuring() {
            self.seen.record.sent_units += done;
            self.seen.record.sent_bytes += done * bytes;
        }
        if done < times {
            self.end_stream()?;
        }
        Ok(())
    }

    fn receive(&mut self, bytes: u64, times: u64, cursor: &mut Cursor) -> Result<()> {
        let (connection, ends) = self.open()?;
        let done = connection.receive(bytes as usize, times, ends)?;
        self.unconfirmed = false;
        if self.measuring() {
            self.seen.record.received_units += done;
            self.seen.record.received_bytes += done * bytes;
        }
        if done < times { self.stream_ended(cursor) } else { Ok(()) }
    }

    /// The peer sends no more: expected under a time limit, from a load and where data can be lost.
    fn stream_ended(&mut self, cursor: &mut Cursor) -> Result<()> {
        // The first time, what follows the awaited units may still have to be done: a put is confirmed.
        let closed = self.connection.as_ref().is_none_or(|connection| connection.closed());
        let over = closed && std::mem::replace(&mut self.stream_over, true);
        if self.reliable && self.task.time_limit.is_none() && !self.task.background {
            return Err(vanished("before it had sent everything"));
        }
        self.seen.limited |= self.task.background || (self.task.time_limit.is_some() && self.reliable);
        cursor.leave(over);
        Ok(())
    }

    fn end_stream(&mut self) -> Result<()> {
        self.seen.limited = true;
        match &mut self.connection {
            Some(connection) => connection.end_stream(&mut self.ends),
            None => Ok(()),
        }
    }

    fn call(&mut self, request: usize, response: usize, times: u64) -> Result<()> {
        let measuring = self.measuring();
        let mut before = clock::now();
        let mut since = before;
        if let Some(intended) = self.intended.filter(|_| self.paced) {
            before = intended;
        }
        self.paced = false;
        let mut cut = false;
        let Some(connection) = &mut self.connection else { return self.open().map(drop) };
        for _ in 0..times {
            if times > 1 && self.ends.flags.limit() {
                cut = true;
                break;
            }
            let answered = connection.call(request, response, since, &mut self.ends)?;
            let after = clock::now();
            if answered && measuring {
                self.calls.record((after - before).0);
            }
            (before, since) = (after, after);
        }
        if cut { self.end_stream() } else { Ok(()) }
    }

    fn serve(&mut self, request: usize, response: usize, times: u64, cursor: &mut Cursor) -> Result<()> {
        for done in 0..times {
            let (connection, ends) = self.open()?;
            if !connection.await_call(request, ends)? {
                return self.stream_ended(cursor);
            }
            if done == 0 {
                self.hear();
            }
            let (connection, ends) = self.open()?;
            connection.reply(response, ends)?;
        }
        Ok(())
    }

    fn start_bulk(&mut self, way: Bulk) -> Result<()> {
        let (connection, ends) = self.open()?;
        connection.start_bulk(way, ends)
    }

    fn await_start_bulk(&mut self, way: Bulk, cursor: &mut Cursor) -> Result<()> {
        let (connection, ends) = self.open()?;
        if !connection.await_start_bulk(way, ends)? {
            return self.stream_ended(cursor);
        }
        self.hear();
        // Each transfer is paced from its own beginning.
        self.intended = None;
        self.heard = Some(clock::now());
        if let Some(alarm) = &self.alarm {
            alarm.arm();
        }
        Ok(())
    }

    fn stop_bulk(&mut self, way: Bulk) -> Result<()> {
        let (connection, ends) = self.open()?;
        connection.stop_bulk(way, ends)?;
        self.unconfirmed = false;
        Ok(())
    }

    fn await_stop_bulk(&mut self, way: Bulk) -> Result<()> {
        let (connection, ends) = self.open()?;
        connection.await_stop_bulk(way, ends)
    }

    // --- connections ---

    fn connect(&mut self) -> Result<()> {
        self.connecting = self.intended.filter(|_| self.paced).unwrap_or_else(clock::now);
        self.paced = false;
        let Door::Dial(dialer) = &mut self.door else { return Err(Fault::input("a responder cannot connect")) };
        self.connection = Some(dialer.connect(&mut self.ends)?);
        self.note_settings();
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        let Door::Listen(listener) = &mut self.door else { return Err(Fault::input("an initiator cannot accept")) };
        self.connection = Some(listener.accept(&mut self.ends)?);
        self.note_settings();
        if self.started.is_none() {
            self.start();
        }
        Ok(())
    }

    /// Before anything is sent: the end of a bulk transfer may switch what a specification did not ask for. In a loop of
    /// connections without data asking would be measured with the first, so it is asked when that one ends.
    fn note_settings(&mut self) {
        self.stream_over = false;
        if let Some(connection) = self.connection.as_ref().filter(|_| self.task.carries_data)
            && self.seen.record.settings.is_empty()
        {
            self.seen.record.settings = connection.settings();
        }
    }

    fn disconnect(&mut self) -> Result<()> {
        self.note_connection();
        let Some(connection) = self.connection.take() else { return self.open().map(drop) };
        connection.disconnect(&mut self.ends)?;
        if self.measuring() {
            self.connects.record((clock::now() - self.connecting).0);
        }
        Ok(())
    }

    fn await_disconnect(&mut self) -> Result<()> {
        // A loop of connections goes on being measured; otherwise what follows is only the peer's leisure.
        if !self.loops {
            self.stop();
        }
        let (connection, ends) = self.open()?;
        connection.await_disconnect(ends)?;
        self.note_connection();
        self.connection = None;
        Ok(())
    }

    /// Keeps what the connection knows before it goes.
    fn note_connection(&mut self) {
        let Some(connection) = &self.connection else { return };
        // In a loop of connections the first one tells the settings; asking each would be measured with it.
        if self.seen.record.settings.is_empty() {
            self.seen.record.settings = connection.settings();
        }
        if !self.task.carries_data {
            return;
        }
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
        record.notes.extend(connection.notes());
    }

    // --- time ---

    fn start(&mut self) {
        let transport = self.connection.as_ref().and_then(|c| c.transport());
        let cpu = placement::here();
        let usage = meter::thread_usage();
        if self.task.side == Side::Initiator
            && let Some(alarm) = &self.alarm
        {
            alarm.arm();
        }
        event!("APP_START", Value::Absent, self.stream);
        self.started = Some(Start { at: clock::now(), usage, transport, cpu });
    }

    fn stop(&mut self) {
        let at = clock::now();
        let usage = meter::thread_usage();
        let Some(start) = &self.started else { return };
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        event!("APP_STOP", Value::Absent, self.stream);
        let record = &mut self.seen.record;
        record.usage = meter::usage_between(&start.usage, &usage);
        record.cpu = Some((start.cpu.0, placement::here().0, start.cpu.1));
        let transport = self.connection.as_ref().and_then(|c| c.transport());
        record.transport = start.transport.zip(transport);
        self.seen.period = Some((start.at, at));
    }

    /// The peer is heard of for the first time: what a responder used while it waited for that is none of the period's.
    fn hear(&mut self) {
        if self.heard.is_some() || self.task.side == Side::Initiator {
            return;
        }
        self.heard = Some(clock::now());
        if !self.loops {
            self.start();
        }
    }

    /// False when the limit came first.
    fn wait_until(&mut self, moment: Instant) -> Result<bool> {
        let spin = self.task.stack.word("receive") == Some("spin");
        crate::ends::wait_until(moment, &self.ends.flags, spin)
    }

    fn pace(&mut self, time: Duration, cursor: &mut Cursor) -> Result<()> {
        let begun = self.heard.or(self.started.as_ref().map(|s| s.at));
        let moment = self.intended.or(begun).unwrap_or_else(clock::now) + time;
        self.intended = Some(moment);
        if !self.wait_until(moment)? && cursor.cut() {
            return Ok(());
        }
        self.paced = true;
        if self.measuring() {
            self.lateness.record((clock::now() - moment).0);
        }
        Ok(())
    }

    fn mark(&mut self, index: usize) {
        let begun = self.heard.or(self.started.as_ref().map(|s| s.at));
        if let (Some(begun), Some(recorder)) = (begun, self.marks.get_mut(index)) {
            recorder.record((clock::now() - begun).0);
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

fn has(task: &Task, name: &str) -> bool {
    program::any(&task.steps, &|call| call.name() == name)
}

/// Whether a side begins anything by itself that a time limit can keep it from going on with.
#[must_use]
pub fn drives(steps: &[Step]) -> bool {
    program::any(steps, &|call| call.drives() == Some(true))
}
