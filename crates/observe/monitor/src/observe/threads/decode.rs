//! Decodes a trace record into events of threads, by the formats of this kernel.

use super::{Call, DiskOperation, Left, ThreadChange, ThreadEvent};
use crate::kernel_trace::TraceEventFormat;
use crate::observe::thread;

/// The kinds of trace records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadTraceKind {
    Switch,
    Woken,
    Ready,
    /// A new thread, with the flags it is made with.
    Begins,
    /// A new thread.
    Forks,
    Executes,
    Exits,
    Calls(Call),
    Returns(Call),
    Faults,
    DiskStarts,
    DiskEnds,
}

/// The clone flag of a new thread in the same process.
const CLONE_THREAD: u64 = 0x1_0000;

/// The events of a record: two for a switch, none if it is too short. The caller sets their time, which is not part of the record.
pub(super) fn decode(
    kind: ThreadTraceKind,
    format: &TraceEventFormat,
    core: u32,
    record: &[u8],
) -> impl Iterator<Item = ThreadEvent> + use<> {
    let (one, other) = match kind {
        ThreadTraceKind::Switch => switch(format, core, record).unzip(),
        ThreadTraceKind::Executes => (of_one(kind, format, record), renumbered(format, record)),
        _ => (of_one(kind, format, record), None),
    };
    one.into_iter().chain(other)
}

fn event(thread: u32, what: ThreadChange) -> ThreadEvent {
    ThreadEvent {
        at_ns: 0,
        thread,
        what,
    }
}

fn switch(
    format: &TraceEventFormat,
    core: u32,
    record: &[u8],
) -> Option<(ThreadEvent, ThreadEvent)> {
    let state = left(format.number(record, "prev_state")?);
    let after = small(format, record, "prev_pid")?;
    let leaves = event(after, ThreadChange::Leaves { state });
    Some((
        leaves,
        event(
            small(format, record, "next_pid")?,
            ThreadChange::Runs { core, after },
        ),
    ))
}

/// The end of the former number of a thread that executes a program and is not its process's first: it takes the first one's number.
fn renumbered(format: &TraceEventFormat, record: &[u8]) -> Option<ThreadEvent> {
    let old = small(format, record, "old_pid")
        .filter(|old| Some(*old) != small(format, record, "pid"))?;
    Some(event(old, ThreadChange::Leaves { state: Left::Dead }))
}

/// Decodes the state in which a thread leaves its core, by its bits since Linux 4.14; a bit above these says that the thread was
/// preempted.
fn left(state: u64) -> Left {
    match state & 0xff {
        0 => Left::Preempted,
        // X and Z; then D; then S and I, that of idle threads of the kernel; the rest are T, t and
        // P.
        bits if bits & 0x30 != 0 => Left::Dead,
        bits if bits & 0x02 != 0 => Left::Disk,
        bits if bits & 0x81 != 0 => Left::Sleeping,
        _ => Left::Stopped,
    }
}

/// The event of a record other than a switch.
fn of_one(kind: ThreadTraceKind, format: &TraceEventFormat, record: &[u8]) -> Option<ThreadEvent> {
    let (running, in_interrupt) = thread(format, record)?;
    let number = |field| format.number(record, field);
    let small = |field| small(format, record, field);
    let what = match kind {
        ThreadTraceKind::Switch => return None,
        ThreadTraceKind::Woken => ThreadChange::Woken {
            by: running,
            in_interrupt,
        },
        ThreadTraceKind::Ready => ThreadChange::Ready,
        ThreadTraceKind::Begins => ThreadChange::Forked {
            child: small("pid")?,
            is_process: Some(number("clone_flags")? & CLONE_THREAD == 0),
        },
        ThreadTraceKind::Forks => ThreadChange::Forked {
            child: small("child_pid")?,
            is_process: None,
        },
        ThreadTraceKind::Executes => ThreadChange::Executes {
            name: String::from_utf8_lossy(format.text(record, "filename")?).into_owned(),
        },
        ThreadTraceKind::Exits => ThreadChange::Exits {
            last: number("group_dead").is_some_and(|dead| dead != 0),
        },
        ThreadTraceKind::Calls(call) => ThreadChange::Calls {
            call,
            // The first argument is named differently for each call.
            argument: format.behind("__syscall_nr").and_then(number).unwrap_or(0),
        },
        ThreadTraceKind::Returns(call) => ThreadChange::Returns {
            call,
            result: format.signed(record, "ret")?,
        },
        ThreadTraceKind::Faults => ThreadChange::Faults {
            address: number("address")?,
        },
        ThreadTraceKind::DiskStarts => {
            let bytes = small("bytes").unwrap_or(0);
            ThreadChange::DiskStarts {
                device: small("dev")?,
                sector: number("sector")?,
                bytes,
                operation: operation(format.bytes(record, "rwbs").unwrap_or(&[]), bytes),
            }
        }
        ThreadTraceKind::DiskEnds => ThreadChange::DiskEnds {
            device: small("dev")?,
            sector: number("sector")?,
        },
    };
    // These records name the thread that they are about; the others are about the one that runs.
    let names_thread = matches!(
        kind,
        ThreadTraceKind::Woken | ThreadTraceKind::Ready | ThreadTraceKind::Executes
    );
    let about = if names_thread { small("pid")? } else { running };
    Some(event(about, what))
}

fn small(format: &TraceEventFormat, record: &[u8], field: &str) -> Option<u32> {
    format
        .number(record, field)
        .and_then(|value| u32::try_from(value).ok())
}

/// The kind of a disk request, by the kernel's letters (`rwbs`). A flush may precede a write, which counts if it writes anything.
fn operation(letters: &[u8], bytes: u32) -> DiskOperation {
    if bytes == 0 && letters.starts_with(b"F") {
        return DiskOperation::Flush;
    }
    let known = letters.iter().find_map(|letter| match letter {
        b'R' => Some(DiskOperation::Read),
        b'W' => Some(DiskOperation::Write),
        _ => None,
    });
    known.unwrap_or(DiskOperation::Other)
}
