//! The scope of the calling thread: the data unit that it works for, and its position in the streams of its
//! connection. The code that makes system calls emits events with it, so that these events can be associated with
//! units that this code does not know.
//!
//! Nothing is counted or emitted while no recorder runs.

use crate::catalogue::families::{WindowWait, WindowWaitEvent};
use crate::catalogue::rows::{
    QuicConnected, SockReceive, SockReceived, SockSend, SockSent, TcpConnected, TlsConnected,
    UnitFramed,
};
use crate::recorder::is_recording;
use crate::{EventValue, clock};
use std::cell::Cell;

/// One direction of the connection that the thread works on.
#[derive(Debug)]
struct ScopeDirection {
    /// The id of the stream in this direction.
    stream: Cell<Option<i64>>,
    /// Bytes of the stream that passed the socket; `None` where the socket does not carry a stream of bytes.
    at: Cell<Option<u64>>,
}

impl ScopeDirection {
    const fn none() -> Self {
        Self {
            stream: Cell::new(None),
            at: Cell::new(None),
        }
    }

    /// Counts bytes that passed the socket, if they are counted.
    fn pass(&self, bytes: u64) {
        self.at.set(self.at.get().map(|at| at + bytes));
    }
}

/// The scope of a piece of work that the thread has set aside (see [`swap_scope`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct KeptScope {
    connection: Option<i64>,
    unit: Option<i64>,
    framed: Option<FramedUnit>,
    window: Option<FlowControlWindow>,
    out: (Option<i64>, Option<u64>),
    into: (Option<i64>, Option<u64>),
    waits: bool,
    gave: Option<Gave>,
}

/// The scope of a thread.
#[derive(Debug)]
struct ThreadScope {
    /// The id of the connection.
    connection: Cell<Option<i64>>,
    unit: Cell<Option<i64>>,
    /// What is known of the frames of the unit, until it is known where they end.
    framed: Cell<Option<FramedUnit>>,
    /// The window that is used up first when the connection sends.
    window: Cell<Option<FlowControlWindow>>,
    out: ScopeDirection,
    into: ScopeDirection,
    /// Whether the event of a receiving call was emitted and no data has been received since.
    waits: Cell<bool>,
    /// A receiving call that returned a datagram: its events wait until it is known which unit the datagram belongs
    /// to.
    gave: Cell<Option<Gave>>,
}

/// A unit that is being sent in records or frames.
#[derive(Clone, Copy, Debug)]
struct FramedUnit {
    /// Where in the sent stream its frames begin.
    begins: u64,
    /// Bytes of the unit itself.
    payload: u64,
    wait: Option<UnitWait>,
}

/// How a unit waited for a window.
#[derive(Clone, Copy, Debug)]
struct UnitWait {
    /// When it first began to wait, ns.
    first_ns: u64,
    /// When it last ended to wait, ns.
    last_ns: u64,
    /// How long it has waited, ns.
    waited_ns: u64,
    /// Since when it waits, ns.
    since_ns: Option<u64>,
}

impl UnitWait {
    /// A wait that goes on, or begins now, perhaps after others.
    fn begun(before: Option<Self>, now_ns: u64) -> Self {
        let mut wait = before.unwrap_or(Self {
            first_ns: now_ns,
            last_ns: now_ns,
            waited_ns: 0,
            since_ns: None,
        });
        wait.since_ns = wait.since_ns.or(Some(now_ns));
        wait
    }

    fn end(&mut self) {
        if let Some(since_ns) = self.since_ns.take() {
            self.last_ns = clock::now_ns();
            self.waited_ns += self.last_ns.saturating_sub(since_ns);
        }
    }

    fn emit(self, window: FlowControlWindow, unit: EventValue<'_>, stream: EventValue<'_>) {
        let (blocked, released) = match window {
            FlowControlWindow::Stream => (
                WindowWaitEvent::StreamBlocked,
                WindowWaitEvent::StreamReleased,
            ),
            FlowControlWindow::Connection => (
                WindowWaitEvent::ConnectionBlocked,
                WindowWaitEvent::ConnectionReleased,
            ),
        };
        let data = WindowWait {
            unit,
            stream,
            ..WindowWait::default()
        };
        blocked.emit_at(&data, self.first_ns);
        let data = WindowWait {
            waited_ns: self.waited_ns.into(),
            ..data
        };
        released.emit_at(&data, self.last_ns);
    }
}

/// A receiving call on a datagram socket.
#[derive(Clone, Copy, Debug)]
struct Gave {
    /// When the call began, ns.
    began_ns: u64,
    /// When the call returned, ns.
    ended_ns: u64,
    /// Size of the buffer, bytes.
    room: usize,
    /// Bytes received.
    bytes: usize,
}

impl ThreadScope {
    fn emit_step(&self, step: ConnectionStep<'_>) {
        let [unit, stream] = [self.connection.get(), self.out.stream.get()].map(EventValue::from);
        match step {
            ConnectionStep::Tcp => TcpConnected {
                unit,
                stream,
                ..TcpConnected::default()
            }
            .emit(),
            ConnectionStep::Tls { version, handshake } => TlsConnected {
                unit,
                stream,
                version: version.into(),
                handshake: handshake.into(),
                ..TlsConnected::default()
            }
            .emit(),
            ConnectionStep::Quic { handshake } => QuicConnected {
                unit,
                stream,
                handshake: handshake.into(),
                ..QuicConnected::default()
            }
            .emit(),
        }
    }

    fn emit_framed(&self) {
        let (Some(framed), Some(ends)) = (self.framed.take(), self.out.at.get()) else {
            return;
        };
        let [unit, stream] = [self.unit.get(), self.out.stream.get()].map(EventValue::from);
        if let (Some(wait), Some(window)) = (framed.wait, self.window.get()) {
            wait.emit(window, unit, stream);
        }
        if ends > framed.begins {
            UnitFramed {
                unit,
                stream,
                offset: framed.begins.into(),
                bytes: (ends - framed.begins).into(),
                payload: framed.payload.into(),
            }
            .emit();
        }
    }

    /// The unit that the thread works for, unless nothing of it was sent yet: what comes then is the protocol's own.
    fn answered_unit(&self) -> Option<i64> {
        let framed = self.framed.get();
        let is_unsent = framed.is_some_and(|framed| self.out.at.get() == Some(framed.begins));
        self.unit.get().filter(|_| !is_unsent)
    }

    fn begin_window_wait(&self) {
        let (Some(mut framed), Some(at)) = (self.framed.get(), self.out.at.get()) else {
            return;
        };
        // Frames are longer than what is in them.
        if at - framed.begins < framed.payload && self.window.get().is_some() {
            let now_ns = clock::now_ns();
            framed.wait = Some(UnitWait::begun(framed.wait, now_ns));
            self.framed.set(Some(framed));
        }
    }

    /// Something is sent: what waited for a window has waited until now.
    fn end_window_wait(&self) {
        if let Some(mut framed) = self.framed.get()
            && let Some(wait) = &mut framed.wait
        {
            wait.end();
            self.framed.set(Some(framed));
        }
    }

    /// Emits the events of the call that returned a datagram, with the unit that the datagram belongs to.
    fn emit_receive(&self, unit: Option<i64>) {
        let Some(gave) = self.gave.take() else { return };
        let [unit, stream] = [unit, self.into.stream.get()].map(EventValue::from);
        SockReceive {
            unit,
            stream,
            offset: EventValue::Absent,
            bytes: gave.room.into(),
        }
        .emit_at(gave.began_ns);
        SockReceived {
            unit,
            stream,
            offset: EventValue::Absent,
            bytes: gave.bytes.into(),
        }
        .emit_at(gave.ended_ns);
    }
}

thread_local! {
    static SCOPE: ThreadScope = const {
        ThreadScope {
            connection: Cell::new(None),
            unit: Cell::new(None),
            framed: Cell::new(None),
            window: Cell::new(None),
            out: ScopeDirection::none(),
            into: ScopeDirection::none(),
            waits: Cell::new(false),
            gave: Cell::new(None),
        }
    };
}

/// Switches the thread to other work: exchanges the current scope with the one in `kept`.
#[inline]
pub fn swap_scope(kept: &mut KeptScope) {
    if is_recording() {
        SCOPE.with(|scope| {
            let half = |half: &ScopeDirection, (stream, at)| {
                (half.stream.replace(stream), half.at.replace(at))
            };
            *kept = KeptScope {
                connection: scope.connection.replace(kept.connection),
                unit: scope.unit.replace(kept.unit),
                framed: scope.framed.replace(kept.framed),
                window: scope.window.replace(kept.window),
                out: half(&scope.out, kept.out),
                into: half(&scope.into, kept.into),
                waits: scope.waits.replace(kept.waits),
                gave: scope.gave.replace(kept.gave),
            };
        });
    }
}

/// Begins the connection with this id and these streams, `(sent, received)`.
pub fn begin_connection(connection: i64, streams: (i64, i64)) {
    SCOPE.with(|scope| {
        scope.emit_receive(None);
        scope.connection.set(Some(connection));
        scope.unit.set(None);
        scope.framed.set(None);
        scope.window.set(None);
        scope.waits.set(false);
        for (half, stream) in [(&scope.out, streams.0), (&scope.into, streams.1)] {
            half.stream.set(Some(stream));
            half.at.set(None);
        }
    });
}

/// Begins to count the bytes of both streams, when the connection's socket carries only them from here on. Events of
/// system calls have their offsets then.
pub fn begin_byte_count() {
    if is_recording() {
        SCOPE.with(|scope| {
            for half in [&scope.out, &scope.into] {
                half.at.set(half.at.get().or(Some(0)));
            }
        });
    }
}

/// Ends the count, where other threads send and receive on the connection's socket too.
pub fn end_byte_count() {
    if is_recording() {
        SCOPE.with(|scope| {
            for half in [&scope.out, &scope.into] {
                half.at.set(None);
            }
        });
    }
}

/// A step of opening the thread's connection, at the initiator.
#[derive(Clone, Copy, Debug)]
pub enum ConnectionStep<'t> {
    /// The connection of TCP is open.
    Tcp,
    /// The handshake of TLS is over.
    Tls {
        /// The version that both sides agreed on.
        version: Option<&'t str>,
        /// `full` or `resumed`.
        handshake: Option<&'t str>,
    },
    /// The handshake of QUIC is over.
    Quic {
        /// `full` or `resumed`.
        handshake: Option<&'t str>,
    },
}

/// Emits that the thread's connection has come that far; `step` is asked only while a recorder runs.
#[inline]
pub fn connection_step<'t>(step: impl FnOnce() -> ConnectionStep<'t>) {
    if is_recording() {
        SCOPE.with(|scope| scope.emit_step(step()));
    }
}

/// Sets the unit that the thread works for.
#[inline]
pub fn work_for(unit: Option<i64>) {
    SCOPE.with(|scope| {
        scope.emit_receive(None);
        scope.unit.set(unit);
        scope.framed.set(None);
    });
}

/// Sets the unit that the thread works for, which it is about to send; `payload` is its size in bytes.
#[inline]
pub fn send_unit(unit: i64, payload: u64) {
    work_for(Some(unit));
    SCOPE.with(|scope| {
        let begins = scope.out.at.get();
        scope.framed.set(begins.map(|begins| FramedUnit {
            begins,
            payload,
            wait: None,
        }));
    });
}

/// Emits which bytes of the sent stream the unit took that the thread sends: everything that was sent since [`send_unit`]; and how it waited for
/// a window meanwhile. Says so once for each unit, of streams whose bytes are counted.
#[inline]
pub fn unit_framed() {
    if is_recording() {
        SCOPE.with(ThreadScope::emit_framed);
    }
}

/// Which window of a protocol above TCP is used up first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControlWindow {
    /// That of the stream.
    Stream,
    /// That of the connection.
    Connection,
}

/// Names the window that is used up first when the thread's connection sends.
pub fn set_window(window: FlowControlWindow) {
    if is_recording() {
        SCOPE.with(|scope| scope.window.set(Some(window)));
    }
}

/// Notes that the thread waits, although the socket has room: if a part of its unit is not sent, that waits for a window.
#[inline]
pub fn wait_with_room() {
    if is_recording() {
        SCOPE.with(ThreadScope::begin_window_wait);
    }
}

/// Reports that the last datagram received belongs to this unit, whichever unit was awaited.
#[inline]
pub fn note_received_unit(unit: i64) {
    SCOPE.with(|scope| scope.emit_receive(Some(unit)));
}

/// Runs `work` without a unit: for control messages beside the data.
pub fn run_outside_unit<T>(work: impl FnOnce() -> T) -> T {
    let unit = SCOPE.with(|scope| scope.unit.take());
    let done = work();
    SCOPE.with(|scope| scope.unit.set(unit));
    done
}

/// The unit that the thread works for.
#[must_use]
pub fn unit() -> Option<i64> {
    SCOPE.with(|scope| scope.unit.get())
}

/// The streams that the connection sends and receives, `(sent, received)`, where they are known.
#[must_use]
pub fn streams() -> (Option<i64>, Option<i64>) {
    SCOPE.with(|scope| (scope.out.stream.get(), scope.into.stream.get()))
}

/// Bytes that passed the connection's socket, `(sent, received)`, where it carries streams.
#[inline]
#[must_use]
pub fn position() -> Option<(u64, u64)> {
    SCOPE.with(|scope| Some((scope.out.at.get()?, scope.into.at.get()?)))
}

/// Counts bytes that were received by a call without events.
#[inline]
pub fn add_received_bytes(bytes: usize) {
    if is_recording() {
        SCOPE.with(|scope| scope.into.pass(bytes as u64));
    }
}

/// Makes a sending system call of `bytes` bytes, with events at entry and return.
///
/// # Errors
/// Those of the call.
#[inline]
pub fn sending<E>(bytes: usize, call: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
    if is_recording() {
        send_with_events(bytes, call)
    } else {
        call()
    }
}

fn send_with_events<E>(bytes: usize, call: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
    SCOPE.with(|scope| {
        let entry = SockSend {
            unit: scope.unit.get().into(),
            stream: scope.out.stream.get().into(),
            offset: scope.out.at.get().into(),
            bytes: bytes.into(),
        };
        scope.end_window_wait();
        entry.emit();
        let result = call();
        let sent = *result.as_ref().unwrap_or(&0);
        SockSent {
            unit: entry.unit,
            stream: entry.stream,
            offset: entry.offset,
            bytes: sent.into(),
        }
        .emit();
        scope.out.pass(sent as u64);
        result
    })
}

/// Makes a receiving system call with a buffer of `bytes` bytes, with events at entry and return. A call that returns
/// no data (it was interrupted, or nothing had arrived) counts as one with its repetition. For datagrams, the events
/// wait until [`note_received_unit`] reports the unit.
///
/// # Errors
/// Those of the call.
#[inline]
pub fn receiving<E>(bytes: usize, call: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
    if is_recording() {
        receive_with_events(bytes, call)
    } else {
        call()
    }
}

fn receive_with_events<E>(
    bytes: usize,
    call: impl FnOnce() -> Result<usize, E>,
) -> Result<usize, E> {
    SCOPE.with(|scope| {
        let entry = SockReceive {
            unit: scope.answered_unit().into(),
            stream: scope.into.stream.get().into(),
            offset: scope.into.at.get().into(),
            bytes: bytes.into(),
        };
        if entry.offset == EventValue::Absent {
            let began_ns = clock::now_ns();
            let result = call();
            if let Ok(received) = &result {
                scope.emit_receive(None);
                let gave = Gave {
                    began_ns,
                    ended_ns: clock::now_ns(),
                    room: bytes,
                    bytes: *received,
                };
                scope.gave.set(Some(gave));
            }
            return result;
        }
        if !scope.waits.replace(true) {
            entry.emit();
        }
        let result = call();
        if let Ok(received) = &result {
            scope.waits.set(false);
            SockReceived {
                unit: entry.unit,
                stream: entry.stream,
                offset: entry.offset,
                bytes: (*received).into(),
            }
            .emit();
            scope.into.pass(*received as u64);
        }
        result
    })
}
