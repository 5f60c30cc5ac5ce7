//! Observes what other programs do at their sockets and on cores: from the kernel's trace events, without affecting them otherwise,
//! or by stopping them (ptrace).
//!
//! | module | one idea |
//! | --- | --- |
//! | [`sockets`] | what is sent, received and ready at each socket of the machine, by which thread |
//! | [`connections`] | which connection each socket has |
//! | [`existing_connections`] | the present connections of processes |
//! | [`datagram_sockets`] | which processes own UDP sockets |
//! | [`thread_numbers`] | the kernel's numbers of threads, if this process is in a PID namespace |
//! | [`threads`] | when threads of chosen programs run, wait and are woken, and the blocking calls they make |
//! | [`transfer_sampler`] | what the kernel says of connections that carry much data |
//! | [`accounting`] | how long a thread ran, waited for a core, and waited for what |
//! | [`ptrace`] | what started programs do at their sockets, by stopping them at system calls |
//! | [`observation_cost`] | measures what being observed costs programs |
//! | `event_stream` | decodes records of all cores in order of time |
//! | [`UndecodedTrace`] | records that were read and not decoded yet |
//!
//! Trace events need root (tracefs). They contain no transferred bytes, and their waits are not interpreted here. Thread numbers are
//! the kernel's, those of its first PID namespace. Times are on the clock of events.

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
pub mod transfer_sampler;

pub use crate::kernel_trace::UndecodedTrace;

/// The thread of a record, and whether an interrupt was being handled: then it is whichever thread was running before.
fn thread(format: &crate::kernel_trace::TraceEventFormat, record: &[u8]) -> Option<(u32, bool)> {
    /// The flags of hard, soft and non-maskable interrupts (`enum trace_flag_type`).
    const INTERRUPTS: u64 = 0x08 | 0x10 | 0x40;
    let thread = u32::try_from(format.number(record, "common_pid")?).ok()?;
    Some((
        thread,
        format.number(record, "common_flags")? & INTERRUPTS != 0,
    ))
}
