//! What the calling thread works for: a data unit, and where in which streams it is. Whoever makes the system calls below emits
//! events with it, so that events of a library are joined to units it does not have.
//!
//! It never counts or emits anything while nobody records.

use crate::catalogue::rows::{SockReceive, SockReceived, SockSend, SockSent};
use crate::recorder::{self, is_recording};
use crate::{EventValue, Keyword, clock};
use std::cell::Cell;

/// One direction of what the thread works on.
#[derive(Debug)]
struct ScopeDirection {
    stream: Cell<Option<i64>>,
    /// Bytes of it that went through the socket; `None` where what a socket carries is no stream.
    at: Cell<Option<u64>>,
}

impl ScopeDirection {
    const fn none() -> Self {
        Self {
            stream: Cell::new(None),
            at: Cell::new(None),
        }
    }

    fn pass(&self, bytes: u64) {
        self.at.set(self.at.get().map(|at| at + bytes));
    }
}

/// What a thread worked for, kept while it does something else.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeptScope {
    unit: Option<i64>,
    out: (Option<i64>, Option<u64>),
    into: (Option<i64>, Option<u64>),
    waits: bool,
    gave: Option<Gave>,
}

#[derive(Debug)]
struct ThreadScope {
    unit: Cell<Option<i64>>,
    out: ScopeDirection,
    into: ScopeDirection,
    /// A receiving call has its event and has given nothing so far.
    waits: Cell<bool>,
    /// A call that gave datagrams: whose they are is known when they are read.
    gave: Cell<Option<Gave>>,
}

/// A receiving call on a socket of datagrams.
#[derive(Clone, Copy, Debug)]
struct Gave {
    began_ns: u64,
    ended_ns: u64,
    room: usize,
    bytes: usize,
}

static RECEIVE: Keyword = Keyword::new("SOCK_RECEIVE");
static RECEIVED: Keyword = Keyword::new("SOCK_RECEIVED");

impl ThreadScope {
    /// The events of a call that gave datagrams, for the unit that came.
    fn emit_receive(&self, unit: Option<i64>) {
        let Some(gave) = self.gave.take() else { return };
        for (keyword, at_ns, bytes) in [
            (&RECEIVE, gave.began_ns, gave.room),
            (&RECEIVED, gave.ended_ns, gave.bytes),
        ] {
            // Both have the same data.
            let data = SockReceive {
                unit: unit.into(),
                stream: self.into.stream.get().into(),
                offset: EventValue::Absent,
                bytes: (bytes as u64).into(),
            };
            recorder::emit_at(keyword.id(), at_ns, &data.values());
        }
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

/// The thread turns to other work: takes what was kept of that and keeps what there was.
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

/// A connection begins on these two streams, `(sent, received)`.
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

/// The connection's socket carries nothing but the bytes of its streams: from here on they are counted, and system calls are
/// with their offsets in the events.
pub fn begin_byte_count() {
    if is_recording() {
        SCOPE.with(|scope| {
            for half in [&scope.out, &scope.into] {
                half.at.set(half.at.get().or(Some(0)));
            }
        });
    }
}

/// The thread works for this unit from now on.
#[inline]
pub fn work_for(unit: Option<i64>) {
    SCOPE.with(|scope| {
        scope.emit_receive(None);
        scope.unit.set(unit);
    });
}

/// This unit came in the datagram that was received last, whichever was awaited.
#[inline]
pub fn note_received_unit(unit: i64) {
    SCOPE.with(|scope| scope.emit_receive(Some(unit)));
}

/// What is done meanwhile is for no unit: control messages beside data.
pub fn run_outside_unit<T>(work: impl FnOnce() -> T) -> T {
    let unit = SCOPE.with(|scope| scope.unit.take());
    let done = work();
    SCOPE.with(|scope| scope.unit.set(unit));
    done
}

/// The unit the thread works for.
#[must_use]
pub fn unit() -> Option<i64> {
    SCOPE.with(|scope| scope.unit.get())
}

/// The streams the connection sends and receives, `(sent, received)`, where they are known.
#[must_use]
pub fn streams() -> (Option<i64>, Option<i64>) {
    SCOPE.with(|scope| (scope.out.stream.get(), scope.into.stream.get()))
}

/// How many bytes went through the connection's socket, `(sent, received)`, where it carries a stream.
#[inline]
#[must_use]
pub fn position() -> Option<(u64, u64)> {
    SCOPE.with(|scope| Some((scope.out.at.get()?, scope.into.at.get()?)))
}

/// Bytes that were received in a call without events.
#[inline]
pub fn add_received_bytes(bytes: usize) {
    if is_recording() {
        SCOPE.with(|scope| scope.into.pass(bytes as u64));
    }
}

/// Makes a sending system call of so many bytes, with events at entry and return.
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

/// Makes a receiving system call with room for so many bytes, with events at entry and return. One that gives nothing (it was
/// interrupted, or nothing was there yet) is one with its repetition. Where what comes are datagrams, the events wait
/// until [`note_received_unit`] says whose they are.
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
