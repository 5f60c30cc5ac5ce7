//! Observes this machine while something is measured: counters, trace events of its kernel, packets, switches by SNMP, and the facts
//! about the host that explain a result.
//!
//! | module | one idea |
//! | --- | --- |
//! | `watch` | the thread that samples all monitors until it is stopped; a monitor samples one thing of this machine |
//! | `watch_config` | what to watch, and what was observed |
//! | [`capture`] | captures the packets of a network namespace |
//! | `event_buffer` | a bounded buffer of events that were not taken yet |
//! | `monitors` | the list of monitors, one file each |
//! | `kernel_trace` | trace events of TCP, through a tracefs instance of this process |
//! | [`observe`] | what other programs do at their sockets and on cores, from trace events or by ptrace |
//! | [`containers`] | the containers of this machine, from the files of their runtimes, and the container of a process |
//! | `switches` | counters of switches by SNMP |
//! | [`snmp`] | the access to a switch, and requests to it |
//! | [`environment`] | the facts about a host that go with a result (SPIMS section 5) |
//! | `host_usage` | what the host used between two moments |
//! | [`clock`] | reads clocks of the kernel |
//! | [`network_addresses`] | the addresses of a process's network namespace |
//! | `namespace_socket` | opens a socket in another network namespace |
//! | `sock_diag` | the TCP sockets of a network namespace with their `TCP_INFO` |
//! | `parse` | parses files of `/proc` |
//! | `kernel_file` | reading small files of the kernel |
//! | `sys` | the only unsafe code: ptrace, capabilities |
//!
//! It changes nothing on the machine except its own trace instances, and does not interpret its events.

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
mod namespace_socket;
pub mod network_addresses;
pub mod observe;
mod parse;
pub mod snmp;
mod sock_diag;
pub mod socket_descriptors;
mod switches;
mod sys;
mod watch;
mod watch_config;

pub use host_usage::HostSample;
pub use watch::MonitorSession;
pub use watch_config::{Config, EVERY, INTERVALS, Observed, WatchedConnections, WatchedPorts};

/// Removes the trace instances that killed processes of this user left behind, with the events they had switched on. Returns how
/// many; 0 if tracefs is not available.
#[must_use]
pub fn sweep_trace_instances() -> usize {
    kernel_trace::sweep()
}
