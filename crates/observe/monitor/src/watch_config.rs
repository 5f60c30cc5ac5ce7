//! The configuration of a watch, and its result: plain types.

use crate::snmp::SnmpSwitch;
use stackline_core::units;
use stackline_events::EventLog;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The default interval between two samples.
pub const EVERY: Duration = Duration::from_millis(100);
/// The shortest and the longest interval that is possible.
pub const INTERVALS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));

/// Ports of watched connections, by the end they belong to: of two processes on one machine, each then records its own end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedPorts {
    /// Ports of this end, of sockets that listen here.
    pub local: BTreeSet<u16>,
    /// Ports of the other end, of sockets that connect to them.
    pub remote: BTreeSet<u16>,
}

/// Which TCP connections are watched. Those of other network namespaces never are, as far as addresses show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedConnections {
    /// The connections of this process. Ports are learned from its sockets at each sample, so a connection that opens and closes
    /// between two samples is recognised by the port its process listens on or has connected to before.
    Process,
    /// The connections with these ports; the kernel filters out all others. See also [`crate::MonitorSession::follow`].
    Ports(WatchedPorts),
    /// All connections of this network namespace.
    All,
}

/// What to watch, and how often.
#[derive(Clone, Debug)]
pub struct Config {
    /// The host that events are recorded for.
    pub host: String,
    /// The interval between samples, limited to [`INTERVALS`].
    pub interval: Duration,
    /// Which TCP connections are watched.
    pub connections: WatchedConnections,
    /// Interfaces by name; none means all.
    pub interfaces: Vec<String>,
    /// Whether kernel trace events are used. Without them, and where the kernel refuses, connections are polled only.
    pub kernel: bool,
    /// Whether all system calls of the machine are counted, which costs each of them a little.
    pub system_calls: bool,
    /// Whether the process of each watched connection is recorded, and if so what is kept of its program's name. It costs a look at the
    /// descriptors of all processes when a connection begins.
    pub program_names: Option<fn(&str) -> String>,
    /// Switches whose port counters are polled.
    pub switches: Vec<SnmpSwitch>,
}

impl Config {
    /// The default: all monitors but that of system calls, every 100 ms, and the connections of this process.
    #[must_use]
    pub fn new(host: &str) -> Self {
        Self {
            host: host.into(),
            interval: EVERY,
            connections: WatchedConnections::Process,
            interfaces: Vec::new(),
            kernel: true,
            system_calls: false,
            program_names: None,
            switches: Vec::new(),
        }
    }

    /// The interval within its limits.
    pub(crate) fn limited_interval(&self) -> Duration {
        self.interval.clamp(INTERVALS.0, INTERVALS.1)
    }
}

/// What a watch observed.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The events that were not taken yet, in no order. With a sink, this log continues with the names that the sink has received.
    pub event_log: EventLog,
    /// Number of events the sink took.
    pub handed_over: u64,
    /// Number of events lost, because the buffer was full or the sink refused them; `EVENTS_LOST` records them too.
    pub lost: u64,
    /// The sink's first error.
    pub sink_error: Option<String>,
    /// The CPU time of the watch by consumer, s.
    pub cost_s: BTreeMap<String, f64>,
    /// What could not be watched, and why.
    pub absent: BTreeMap<String, String>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

impl Observed {
    /// Sentences for the user: what watching cost, what could not be watched, and the notes. `count` is the number of all events.
    #[must_use]
    pub fn lines(&self, elapsed: Duration, interval: Duration, count: u64) -> Vec<String> {
        let total: f64 = self.cost_s.values().sum();
        let seconds = elapsed.as_secs_f64();
        let cost = |(what, cost): (&String, &f64)| format!("{what} {}", units::format_time(*cost));
        let parts: Vec<String> = self.cost_s.iter().map(cost).collect();
        let watched = format!(
            "watched for {}, sampling every {}; events: {count}; watching took {} of CPU time, {} % of a core ({})",
            units::format_time(seconds),
            units::format_time(interval.as_secs_f64()),
            units::format_time(total),
            units::three_digits(total / seconds * 100.0),
            parts.join(", ")
        );
        let absent = self
            .absent
            .iter()
            .map(|(what, why)| format!("absent: {what}: {why}"));
        let notes = self.notes.iter().map(|note| format!("note: {note}"));
        [watched].into_iter().chain(absent).chain(notes).collect()
    }
}
