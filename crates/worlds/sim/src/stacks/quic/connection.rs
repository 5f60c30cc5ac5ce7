//! One end of a QUIC connection with its streams: feeds quinn-proto's [`Connection`] with packets and timers, sends its packets, and
//! offers each pair that uses the connection a stream of its own.

use super::ending::{OVER, SimQuicLoss, UNWANTED};
use super::flight::SimQuicFlight;
use super::moment::{instant, moment};
use super::streams::{SimQuicSharing, SimQuicStream};
use super::wire::SimQuicWire;
use crate::connection_info::ConnectionInfo;
use crate::run_state::{ConnectionEnd, SimRunState, Timer};
use crate::run_trace::SimTraceLog;
use crate::stacks::byte_stream::Got;
use crate::stacks::time_accounting::{SenderHoldUp, TimeAccount};
use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, Dir, Endpoint, Event, ReadError, StreamEvent,
    StreamId, VarInt,
};
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::{Duration, Instant};
use stackline_events::catalogue::families::ConnectionReportEvent;
use stackline_events::catalogue::rows::QuicLost;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The content of data units. quinn-proto keeps unacknowledged data as references to this, so it takes no memory.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Where an end belongs: its socket's addresses, its side and its number.
#[derive(Clone, Debug)]
pub(super) struct SimQuicEndPlace {
    pub(super) wire: SimQuicWire,
    pub(super) side: PairSide,
    /// The endpoint that uses it.
    pub(super) endpoint: u32,
    /// Its number among the pair's connections.
    pub(super) number: u32,
    /// Where several pairs share the connections: further endpoints that use them, and whose stream is whose.
    pub(super) sharing: Option<SimQuicSharing>,
}

/// One end of a connection.
pub(crate) struct SimQuicEnd {
    touched: Cell<bool>,
    place: SimQuicEndPlace,
    /// Its number in its socket.
    pub(super) handle: ConnectionHandle,
    socket: Rc<RefCell<Endpoint>>,
    settings: BTreeMap<String, String>,
    /// The application has abandoned it: nobody reads what arrives.
    orphan: Cell<bool>,
    inner: RefCell<SimQuicEndState>,
}

/// After this many round trips without an acknowledgement, a lost packet counts as found by a timer.
const SILENT: f64 = 1.5;

/// The changing state of an end.
struct SimQuicEndState {
    pub(super) connection: Connection,
    /// By the number of the use of the connection; a pair of its own uses it once, with number 0.
    pub(super) streams: BTreeMap<u32, SimQuicStream>,
    /// The handshake is complete.
    connected: bool,
    /// How the connection was lost, if it was.
    lost: Option<SimQuicLoss>,
    /// Bytes that applications have read from the streams.
    received: u64,
    /// Bytes that applications have written to the streams.
    written: u64,
    flight: Arc<SimQuicFlight>,
    spent: TimeAccount,
    /// The count of BLOCKED frames when the application last wrote: more of them mean that the peer's credit is used up.
    reported_blocked: u64,
    /// While the run is traced: the state that was sampled last, and `received` and `written` then.
    looked: (ConnectionInfo, [u64; 2]),
    /// Lost packets and their bytes that were already recorded in the trace.
    reported_lost: (u64, u64),
    /// When the earliest timer that is set will expire.
    alarm: Option<Instant>,
}

impl fmt::Debug for SimQuicEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} of connection {} of pair {}",
            self.place.side, self.place.number, self.place.wire.pair
        )
    }
}

impl SimQuicEnd {
    pub(super) fn new(
        place: SimQuicEndPlace,
        socket: &Rc<RefCell<Endpoint>>,
        handle: ConnectionHandle,
        connection: Connection,
        settings: BTreeMap<String, String>,
    ) -> Self {
        let inner = SimQuicEndState {
            flight: SimQuicFlight::from_connection(&connection),
            connection,
            streams: BTreeMap::new(),
            connected: false,
            lost: None,
            received: 0,
            written: 0,
            spent: TimeAccount::default(),
            reported_blocked: 0,
            looked: Default::default(),
            reported_lost: (0, 0),
            alarm: None,
        };
        Self {
            touched: Cell::new(false),
            place,
            handle,
            socket: Rc::clone(socket),
            settings,
            orphan: Cell::new(false),
            inner: RefCell::new(inner),
        }
    }

    /// Registers the end to be flushed, as there may be something to send.
    pub(super) fn touch(self: &Rc<Self>, shared: &SimRunState) {
        if !self.touched.replace(true) {
            let end: Rc<Self> = Rc::clone(self);
            shared.touch(end);
        }
    }

    /// Handles an event of the socket: a packet for this connection. What it makes due, such as an acknowledgement, leaves before the
    /// application goes on, as in quinn: data of the application may use up the congestion window, and quinn holds acknowledgements back
    /// with the data.
    pub(super) fn arrived(self: &Rc<Self>, event: ConnectionEvent, shared: &SimRunState) {
        let mut inner = self.inner.borrow_mut();
        inner.connection.handle_event(event);
        inner.account(shared.now());
        self.transmit_all(&mut inner, shared);
        self.touch(shared);
    }

    /// A timer of this end has expired.
    pub(super) fn rang(self: &Rc<Self>, shared: &SimRunState) {
        let now = shared.now();
        let mut inner = self.inner.borrow_mut();
        if inner.alarm.is_some_and(|alarm| alarm <= now) {
            inner.alarm = None;
        }
        inner.connection.handle_timeout(moment(now));
        self.attend(&mut inner, shared);
        self.touch(shared);
    }

    /// Sends all packets that may be sent now.
    fn transmit_all(&self, inner: &mut SimQuicEndState, shared: &SimRunState) {
        self.attend(inner, shared);
        while self.transmit(inner, shared.now(), shared) {
            self.attend(inner, shared);
        }
    }

    /// Sends the next packet, if there is one. Whether there was.
    fn transmit(&self, inner: &mut SimQuicEndState, now: Instant, shared: &SimRunState) -> bool {
        let made = {
            let mut frames = shared.frames.borrow_mut();
            frames.made.clear();
            inner
                .connection
                .poll_transmit(moment(now), 1, &mut frames.made)
        };
        if let Some(made) = &made {
            self.place.wire.send(self.place.number, made.ecn, shared);
        }
        made.is_some()
    }

    /// Records the packets that quinn-proto has declared lost. It reports only totals, so each gets the mean of their bytes.
    fn record_losses(&self, inner: &mut SimQuicEndState, log: &SimTraceLog, now: Instant) {
        let path = inner.connection.stats().path;
        let lost = (path.lost_packets, path.lost_bytes);
        let (packets, bytes) = std::mem::replace(&mut inner.reported_lost, lost);
        let (stream, host) = log.stream(self.pair(), self.place.side);
        let each = lost.1.saturating_sub(bytes) / lost.0.saturating_sub(packets).max(1);
        for _ in packets..lost.0 {
            let data = QuicLost {
                stream: stream.into(),
                bytes: each.into(),
                ..QuicLost::default()
            };
            log.emit(host, now, |log, at_ns| data.write(log, at_ns));
        }
    }

    /// Handles the connection's events: passes them to its socket, and wakes the application where it can go on.
    fn attend(&self, inner: &mut SimQuicEndState, shared: &SimRunState) {
        loop {
            while let Some(event) = inner.connection.poll_endpoint_events() {
                if let Some(answer) = self.socket.borrow_mut().handle_event(self.handle, event) {
                    inner.connection.handle_event(answer);
                }
            }
            let Some(event) = inner.connection.poll() else {
                return;
            };
            if self.heed(inner, event, shared) {
                self.wake(shared);
            }
        }
    }

    /// Wakes the endpoints that use the connection.
    fn wake(&self, shared: &SimRunState) {
        shared.wake(self.place.endpoint);
        let sharing = self.place.sharing.iter();
        for endpoint in sharing.flat_map(|sharing| sharing.sharers.iter()) {
            shared.wake(*endpoint);
        }
    }

    /// Handles an event. Whether the application has to be woken.
    fn heed(&self, inner: &mut SimQuicEndState, event: Event, shared: &SimRunState) -> bool {
        match event {
            Event::Connected => inner.connected = true,
            Event::ConnectionLost { reason } => {
                inner.lost = Some(SimQuicLoss::from_reason(&reason));
                if self.is_shared() && inner.has_no_users() {
                    self.orphan.set(true);
                }
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                self.welcome_streams(inner);
                self.refuse_unwanted(inner, shared);
            }
            Event::Stream(StreamEvent::Readable { .. }) => self.refuse_unwanted(inner, shared),
            Event::Stream(StreamEvent::Writable { id }) => {
                return inner.stream(id).is_some_and(|stream| stream.wants_room);
            }
            Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => return self.is_shared(),
            Event::Stream(StreamEvent::Stopped { id, .. }) if self.is_shared() => {
                self.finished(inner, id, shared);
            }
            Event::Stream(StreamEvent::Stopped { .. }) => {}
            Event::Stream(StreamEvent::Finished { id }) => self.finished(inner, id, shared),
            _ => return false,
        }
        true
    }

    /// Whether several pairs share the connection.
    fn is_shared(&self) -> bool {
        self.place.sharing.is_some()
    }

    /// Takes the streams that the peer has opened.
    fn welcome_streams(&self, inner: &mut SimQuicEndState) {
        while let Some(id) = inner.connection.streams().accept(Dir::Bi) {
            let number = match &self.place.sharing {
                Some(sharing) => sharing.owners.number_of(id),
                None => Some(0),
            };
            let stream = number.map(|number| inner.streams.entry(number).or_default());
            if let Some(stream) = stream {
                stream.id.get_or_insert(id);
            }
        }
    }

    /// The peer has acknowledged the end of the own half of a stream.
    fn finished(&self, inner: &mut SimQuicEndState, id: StreamId, shared: &SimRunState) {
        if let Some(stream) = inner.stream(id) {
            stream.finished = true;
        }
        if self.orphan.get() && inner.is_finished() {
            inner.shut(OVER, shared);
        }
    }

    /// Closes an abandoned connection when data comes that nobody will read.
    fn refuse_unwanted(&self, inner: &mut SimQuicEndState, shared: &SimRunState) {
        if self.orphan.get() && !self.is_shared() && inner.take(0, 1) > 0 {
            inner.shut(UNWANTED, shared);
        }
    }

    /// Whether the handshake has failed.
    pub(super) fn failed(&self) -> bool {
        let inner = self.inner.borrow();
        inner.lost.is_some() && !inner.connected
    }

    /// Records a `QUIC_INFO` event if data is under way or has moved since the last sample. Whether it did.
    pub(super) fn sample(&self, at: Instant, log: &SimTraceLog) -> bool {
        let mut inner = self.inner.borrow_mut();
        let (now, moved) = (inner.info(at), [inner.received, inner.written]);
        let (before, moved_before) = std::mem::replace(&mut inner.looked, (now, moved));
        let reports = inner.spent.is_busy() || moved != moved_before;
        if reports {
            log.info(
                ConnectionReportEvent::QuicInfo,
                self.pair(),
                self.place.side,
                at,
                &before,
                &now,
            );
        }
        reports
    }
}

impl SimQuicEndState {
    /// The application has written `bytes` bytes.
    fn handed_over(&mut self, bytes: u64, now: Instant) {
        self.written += bytes;
        self.reported_blocked = self.blocked_frames();
        self.spent.begin(now);
    }

    /// Books what held the sender up until now, if an acknowledgement has come that shows it.
    fn account(&mut self, now: Instant) {
        let wants_room = self.streams.values().any(|stream| stream.wants_room);
        let Some(acknowledged) = self.flight.take() else {
            return;
        };
        let held = match (acknowledged.starved, acknowledged.starts) {
            _ if acknowledged.recovers && self.is_silent(now) => SenderHoldUp::Timeout,
            _ if acknowledged.recovers => SenderHoldUp::Recovery,
            (true, _) if wants_room => self.blocked_by(),
            (true, _) => SenderHoldUp::Network,
            (false, true) => SenderHoldUp::SlowStart,
            (false, false) => SenderHoldUp::CongestionWindow,
        };
        self.spent.book(held, now);
        if acknowledged.all && acknowledged.starved && !wants_room {
            self.spent.end();
        }
    }

    /// Whether no acknowledgement has come for clearly longer than a round trip.
    fn is_silent(&self, now: Instant) -> bool {
        let trip_s = self.connection.stats().path.rtt.as_secs_f64();
        self.spent.unbooked(now).seconds() > SILENT * trip_s
    }

    /// What keeps the application from writing more. QUIC sends a BLOCKED frame when the peer's credit is used up; without one it is the
    /// own send buffer.
    fn blocked_by(&self) -> SenderHoldUp {
        if self.blocked_frames() > self.reported_blocked {
            SenderHoldUp::ReceiveWindow
        } else {
            SenderHoldUp::SendBuffer
        }
    }

    /// The number of `DATA_BLOCKED` and `STREAM_DATA_BLOCKED` frames sent so far.
    fn blocked_frames(&self) -> u64 {
        let sent = self.connection.stats().frame_tx;
        sent.data_blocked + sent.stream_data_blocked
    }

    /// The present state for a `QUIC_INFO` event. quinn-proto does not report which bytes of the stream were sent or acknowledged, nor how
    /// much credit is left.
    fn info(&self, now: Instant) -> ConnectionInfo {
        let path = self.connection.stats().path;
        ConnectionInfo {
            cwnd_bytes: Some(path.cwnd),
            in_flight_bytes: Some(if self.spent.is_busy() {
                self.flight.bytes()
            } else {
                0
            }),
            rtt: Some(Duration(
                u64::try_from(path.rtt.as_nanos()).unwrap_or(u64::MAX),
            )),
            retransmits: path.lost_packets,
            busy: Some(self.spent.busy(now)),
            receive_window_limited: Some(self.spent.by(SenderHoldUp::ReceiveWindow, now)),
            send_buffer_limited: Some(self.spent.by(SenderHoldUp::SendBuffer, now)),
            mss_bytes: Some(u64::from(path.current_mtu)),
            ..ConnectionInfo::default()
        }
    }

    /// The stream with that id.
    fn stream(&mut self, id: StreamId) -> Option<&mut SimQuicStream> {
        let mut streams = self.streams.values_mut();
        streams.find(|stream| stream.id == Some(id))
    }

    /// Whether nobody uses the connection any more.
    fn has_no_users(&self) -> bool {
        self.streams.values().all(|stream| stream.orphan)
    }

    /// Whether the peer has acknowledged the ends of all streams.
    fn is_finished(&self) -> bool {
        let mut streams = self.streams.values();
        streams.all(|stream| stream.finished || stream.id.is_none())
    }

    /// A use's stream; the initiator opens it at the first use, the responder has none until the peer's data arrives.
    fn open(&mut self, number: u32, place: &SimQuicEndPlace) -> Option<StreamId> {
        let stream = self.streams.entry(number).or_default();
        if place.side == PairSide::Initiator && stream.id.is_none() {
            stream.id = self.connection.streams().open(Dir::Bi);
            if let (Some(sharing), Some(id)) = (&place.sharing, stream.id) {
                sharing.owners.insert(id, number);
            }
        }
        stream.id
    }

    /// Ends the own half of a stream. False if there is no stream, the connection is lost, or the peer has already acknowledged the end.
    fn finish(&mut self, number: u32, place: &SimQuicEndPlace) -> bool {
        let Some(id) = self.open(number, place) else {
            return false;
        };
        let finished = self
            .streams
            .get(&number)
            .is_some_and(|stream| stream.finished);
        self.lost.is_none() && (self.connection.send_stream(id).finish().is_ok() || !finished)
    }

    /// Reads at most `most` bytes from a stream. Returns how many.
    fn take(&mut self, number: u32, most: usize) -> usize {
        let Some(known) = self.streams.get_mut(&number) else {
            return 0;
        };
        let Some(id) = known.id else { return 0 };
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return 0;
        };
        let mut done = 0;
        while done < most {
            match chunks.next(most - done) {
                Ok(Some(chunk)) => done += chunk.bytes.len(),
                Ok(None) => {
                    known.ended = true;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(_)) => {
                    self.lost = Some(SimQuicLoss::Broken);
                    break;
                }
            }
        }
        // The result says whether credit has to be sent to the peer; the next packet carries it anyway.
        let _ = chunks.finalize();
        self.received += done as u64;
        done
    }

    /// Closes the connection with an error code, unless it is closed already.
    fn shut(&mut self, why: VarInt, shared: &SimRunState) {
        if !self.connection.is_closed() {
            self.connection
                .close(moment(shared.now()), why, Bytes::new());
        }
    }
}

impl ConnectionEnd for SimQuicEnd {
    fn pair(&self) -> u32 {
        self.place.wire.pair
    }

    fn side(&self) -> PairSide {
        self.place.side
    }

    fn untouch(&self) {
        self.touched.set(false);
    }

    fn flush(&self, shared: &SimRunState) {
        let now = shared.now();
        let mut inner = self.inner.borrow_mut();
        self.transmit_all(&mut inner, shared);
        if let Some(log) = &shared.log {
            self.record_losses(&mut inner, log, now);
        }
        let Some(next) = inner.connection.poll_timeout() else {
            return;
        };
        // A timer due now would be set again for the same time, for ever.
        let next = instant(next).max(now + Duration(1));
        if inner.alarm.is_none_or(|alarm| next < alarm) {
            inner.alarm = Some(next);
            let (pair, connection) = (self.pair(), self.handle.0 as u32);
            shared.set_timer(
                next,
                Timer::End {
                    pair,
                    connection,
                    side: self.place.side,
                },
            );
        }
    }

    fn is_over(&self) -> bool {
        self.orphan.get() && self.inner.borrow().connection.is_drained()
    }
}

/// What an application does with its stream, by the number of its use of the connection.
impl SimQuicEnd {
    /// The connection is used once more.
    pub(super) fn join(&self, number: u32) {
        self.inner.borrow_mut().streams.entry(number).or_default();
    }

    /// Whether a pair has used the connection, by the number of that use.
    pub(super) fn has_joined(&self, number: u32) -> bool {
        self.inner.borrow().streams.contains_key(&number)
    }

    /// Whether further pairs may use the connection.
    pub(super) fn is_joinable(&self) -> bool {
        let inner = self.inner.borrow();
        inner.lost.is_none() && !inner.has_no_users()
    }

    /// Its number among the pair's connections.
    pub(super) const fn number(&self) -> u32 {
        self.place.number
    }

    pub(super) fn answered(&self) -> Option<bool> {
        let inner = self.inner.borrow();
        match inner.lost {
            _ if inner.connected => Some(true),
            // A silent peer has neither accepted nor refused: the caller goes on waiting.
            None | Some(SimQuicLoss::Silence) => None,
            Some(_) => Some(false),
        }
    }

    pub(super) fn send(
        self: &Rc<Self>,
        number: u32,
        bytes: usize,
        shared: &SimRunState,
    ) -> Option<usize> {
        let mut inner = self.inner.borrow_mut();
        let mut done = 0;
        if inner.lost.is_some() {
            return None;
        }
        if let Some(stream) = inner.open(number, &self.place) {
            while done < bytes {
                let piece = Bytes::from_static(&ZEROS[..ZEROS.len().min(bytes - done)]);
                match inner
                    .connection
                    .send_stream(stream)
                    .write_chunks(&mut [piece])
                {
                    Ok(written) => done += written.bytes,
                    Err(quinn_proto::WriteError::Blocked) => break,
                    Err(_) => return None,
                }
            }
        }
        if done > 0 {
            inner.handed_over(done as u64, shared.now());
            self.touch(shared);
        }
        inner.streams.entry(number).or_default().wants_room = done < bytes;
        Some(done)
    }

    pub(super) fn receive(self: &Rc<Self>, number: u32, most: usize, shared: &SimRunState) -> Got {
        let mut inner = self.inner.borrow_mut();
        let done = inner.take(number, most);
        if done > 0 {
            // The peer may have to learn that it may send more.
            self.touch(shared);
            return Got::Bytes(done);
        }
        let ended = inner
            .streams
            .get(&number)
            .is_some_and(|stream| stream.ended);
        match inner.lost {
            _ if ended => Got::End,
            None => Got::Nothing,
            Some(SimQuicLoss::Closed) => Got::End,
            Some(_) => Got::Broken,
        }
    }

    pub(super) fn close(self: &Rc<Self>, number: u32, shared: &SimRunState) {
        self.inner.borrow_mut().finish(number, &self.place);
        self.touch(shared);
    }

    pub(super) fn abandon(self: &Rc<Self>, number: u32, shared: &SimRunState) {
        let mut inner = self.inner.borrow_mut();
        inner.streams.entry(number).or_default().orphan = true;
        if self.is_shared() {
            self.leave(&mut inner, number, shared);
        } else {
            self.orphan.set(true);
            let finished = inner
                .streams
                .get(&number)
                .is_some_and(|stream| stream.finished);
            if inner.take(number, 1) > 0 {
                inner.shut(UNWANTED, shared);
            } else if !inner.connected || finished || !inner.finish(number, &self.place) {
                inner.shut(OVER, shared);
            }
        }
        self.touch(shared);
    }

    /// A pair leaves a connection that others may go on using. The last initiator closes it when all streams have ended.
    fn leave(&self, inner: &mut SimQuicEndState, number: u32, shared: &SimRunState) {
        let unread = inner.take(number, 1) > 0;
        let id = inner.streams.get(&number).and_then(|stream| stream.id);
        if let Some(id) = id.filter(|_| unread) {
            // It may have ended meanwhile.
            let _ = inner.connection.recv_stream(id).stop(UNWANTED);
        }
        if inner.connected {
            inner.finish(number, &self.place);
        }
        let is_last = inner.has_no_users();
        if is_last {
            // Pairs may wait for that to connect again.
            self.wake(shared);
        }
        let may_close = self.place.side == PairSide::Initiator || inner.lost.is_some();
        if is_last && may_close {
            self.orphan.set(true);
            if !inner.connected || inner.lost.is_some() || inner.is_finished() {
                inner.shut(OVER, shared);
            }
        }
    }

    pub(super) fn transport(&self, now: Instant) -> TransportRecord {
        let inner = self.inner.borrow();
        let path = inner.connection.stats().path;
        let mtu = u64::from(path.current_mtu);
        let seconds = |time: Duration| Some(time.seconds());
        TransportRecord {
            retransmits: path.lost_packets,
            rtt_s: path.rtt.as_secs_f64(),
            cwnd_segments: Some(path.cwnd / mtu.max(1)),
            mss_bytes: mtu,
            busy_s: seconds(inner.spent.busy(now)),
            receive_window_limited_s: seconds(inner.spent.by(SenderHoldUp::ReceiveWindow, now)),
            send_buffer_limited_s: seconds(inner.spent.by(SenderHoldUp::SendBuffer, now)),
            bytes_received: inner.received,
            spent: Some(inner.spent.limits(now)),
            ..TransportRecord::default()
        }
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let inner = self.inner.borrow();
        let window = inner.connection.congestion_state().initial_window();
        let now = [
            ("initial_window", window),
            ("mtu", u64::from(inner.connection.current_mtu())),
        ];
        let now = now.map(|(name, bytes)| (name.to_string(), format!("{bytes} B")));
        self.settings.clone().into_iter().chain(now).collect()
    }
}
