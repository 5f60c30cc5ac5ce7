//! What other programs do at their sockets and on cores: from the kernel's trace events, without touching them, or by stopping them.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`sockets`] | what is sent, received and ready at each socket of the machine, by which thread |
//! | [`connections`] | which connection a socket is |
//! | [`existing_connections`] | the connections that processes have already |
//! | [`datagram_sockets`] | which processes have sockets of UDP |
//! | [`thread_numbers`] | the numbers of threads in trace events, where this process is of another namespace of processes |
//! | [`threads`] | when threads of chosen programs run, wait and are woken, and the blocking calls they make |
//! | [`accounting`] | how long a thread ran, waited for a core, and waited for what |
//! | [`ptrace`] | what programs that are started here do at their sockets, by stopping them at calls |
//! | [`observation_cost`] | what it costs programs to be looked at |
//! | `event_stream` | records of all cores in the order of time |
//! | [`UndecodedTrace`] | records that were read and are decoded later |
//!
//! Trace events need root (tracefs). It sees no content and never decides what a wait means. Numbers of threads are the kernel's,
//! those of its first namespace. Times are on the clock of events.

pub mod accounting;
pub mod connections;
pub mod datagram_sockets;
mod event_stream;
pub mod existing_connections;
pub mod observation_cost;
pub mod ptrace;
pub mod sockets;
pub mod thread_numbers;
pub mod threads;

pub use crate::kernel_trace::UndecodedTrace;

/// The thread of a record, and whether an interrupt was at work in its place: then it is whichever thread was running.
fn thread(format: &crate::kernel_trace::TraceEventFormat, record: &[u8]) -> Option<(u32, bool)> {
    /// Hard and soft interrupts, and those that cannot be masked (`enum trace_flag_type`).
    const INTERRUPTS: u64 = 0x08 | 0x10 | 0x40;
    let thread = u32::try_from(format.number(record, "common_pid")?).ok()?;
    Some((
        thread,
        format.number(record, "common_flags")? & INTERRUPTS != 0,
    ))
}
