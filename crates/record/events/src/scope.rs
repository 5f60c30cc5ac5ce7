//! The scope of the calling thread: the data unit that it works for, and its position in the streams of its
//! connection. The code that makes system calls emits events with it, so that these events can be associated with
//! units that this code does not know.
//!
//! Nothing is counted or emitted while no recorder runs.

use crate::catalogue::rows::{SockReceive, SockReceived, SockSend, SockSent};
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
    unit: Option<i64>,
    out: (Option<i64>, Option<u64>),
    into: (Option<i64>, Option<u64>),
    waits: bool,
    gave: Option<Gave>,
}

/// The scope of a thread.
#[derive(Debug)]
struct ThreadScope {
    unit: Cell<Option<i64>>,
    out: ScopeDirection,
    into: ScopeDirection,
    /// Whether the event of a receiving call was emitted and no data has been received since.
    waits: Cell<bool>,
    /// A receiving call that returned a datagram: its events wait until it is known which unit the datagram belongs
    /// to.
    gave: Cell<Option<Gave>>,
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
            unit: Cell::new(None),
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
                unit: scope.unit.replace(kept.unit),
                out: half(&scope.out, kept.out),
                into: half(&scope.into, kept.into),
                waits: scope.waits.replace(kept.waits),
                gave: scope.gave.replace(kept.gave),
            };
        });
    }
}

/// Begins a connection with these streams, `(sent, received)`.
pub fn begin_connection(streams: (i64, i64)) {
    SCOPE.with(|scope| {
        scope.emit_receive(None);
        scope.unit.set(None);
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

/// Sets the unit that the thread works for.
#[inline]
pub fn work_for(unit: Option<i64>) {
    SCOPE.with(|scope| {
        scope.emit_receive(None);
        scope.unit.set(unit);
    });
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
            unit: scope.unit.get().into(),
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
