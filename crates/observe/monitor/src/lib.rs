//! What this machine is and does while something is measured: counters, events of its kernel, switches by SNMP, and the
//! facts that explain a result.
//!
//! | module | one idea |
//! | --- | --- |
//! | `watch` | the thread that samples all monitors until it is stopped |
//! | `watch_config` | what to watch, and what was observed |
//! | [`capture`] | packets of a network namespace, as the kernel sees them |
//! | `event_buffer` | events that wait to be taken |
//! | `monitors` | one file a monitor, and the list of them |
//! | `kernel_trace` | trace events of TCP, through a trace instance of our own |
//! | [`observe`] | what other programs do at their sockets and on cores, from trace events |
//! | [`containers`] | containers, by what their runtimes keep, and whose a process is |
//! | `switches` | counters of switches by SNMP |
//! | [`snmp`] | how a switch is accessed, and requests to it |
//! | [`environment`] | the facts about a host that go with a result (SPIMS section 5) |
//! | `host_usage` | what the host used between two moments |
//! | [`clock`] | clocks of the kernel |
//! | [`network_addresses`] | the addresses of a process's network namespace |
//! | `parse` | text of `/proc` to plain data |
//! | `kernel_file` | reading small files of the kernel |
//! | `sys` | the only unsafe code: ptrace, capabilities |
//!
//! It changes nothing on the machine but trace instances of its own, and never decides what its events mean.

mod address_pair;
pub mod capture;
pub mod clock;
pub mod containers;
pub mod environment;
mod event_buffer;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod host_usage;
mod kernel_file;
mod kernel_trace;
mod monitors;
pub mod network_addresses;
pub mod observe;
mod parse;
pub mod snmp;
pub mod socket_descriptors;
mod switches;
mod sys;
mod watch;
mod watch_config;

pub use host_usage::HostSample;
pub use watch::MonitorSession;
pub use watch_config::{Config, EVERY, INTERVALS, Observed, WatchedConnections, WatchedPorts};

/// Removes the trace instances that killed processes of this user left, with what they have switched on: how many. None where tracefs
/// cannot be had.
#[must_use]
pub fn sweep_trace_instances() -> usize {
    kernel_trace::sweep()
}
