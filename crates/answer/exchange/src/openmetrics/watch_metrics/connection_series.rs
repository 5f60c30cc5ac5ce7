//! The series of connections by process: the slowest have their own, the rest are one.

use super::{count, label_text};
use crate::openmetrics::{MetricSample, MetricValue};
use stackline_analyze::slow_connections::{
    ConnectionProcess, SampledConnection, SlowConnectionTable,
};
use stackline_events::EventLog;
use std::collections::{BTreeMap, BTreeSet};

/// The most processes with series of their own: those with the slowest connections.
const MOST_PROCESSES: usize = 20;
/// The most processes whose sums are remembered while they are among the rest; beyond that, those are forgotten and begin at 0 again.
const MOST_REMEMBERED: usize = 1_024;

/// Sums of a process's connections, from its first one on.
#[derive(Clone, Copy, Debug, Default)]
struct ConnectionSums {
    retransmissions: u64,
    acknowledged_bytes: u64,
}

impl ConnectionSums {
    fn add(&mut self, other: Self) {
        self.retransmissions = self.retransmissions.saturating_add(other.retransmissions);
        self.acknowledged_bytes = self
            .acknowledged_bytes
            .saturating_add(other.acknowledged_bytes);
    }
}

/// Latest values of a process's connections.
#[derive(Clone, Copy, Debug, Default)]
struct ConnectionLevels {
    connections: u64,
    rtt_ns: u64,
    send_queue_bytes: u64,
    unread_bytes: u64,
}

impl ConnectionLevels {
    fn add(&mut self, connection: &SampledConnection) {
        self.connections += 1;
        self.rtt_ns = self.rtt_ns.max(connection.rtt_ns);
        self.send_queue_bytes = self
            .send_queue_bytes
            .saturating_add(connection.send_queue_bytes);
        self.unread_bytes = self.unread_bytes.saturating_add(connection.unread_bytes);
    }
}

/// The connections of a watch, and their sums by process.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSeries {
    table: SlowConnectionTable,
    /// The processes with series of their own.
    slowest: BTreeSet<ConnectionProcess>,
    sums: BTreeMap<ConnectionProcess, ConnectionSums>,
    /// What processes did while they were among the rest.
    rest: ConnectionSums,
}

impl ConnectionSeries {
    pub(super) const fn new(stays_ns: u64) -> Self {
        Self {
            table: SlowConnectionTable::new(stays_ns),
            slowest: BTreeSet::new(),
            sums: BTreeMap::new(),
            rest: ConnectionSums {
                retransmissions: 0,
                acknowledged_bytes: 0,
            },
        }
    }

    /// Adds events. The slowest processes are chosen before what they did is added, so that a process's first retransmission already
    /// stands in its own series.
    pub(super) fn add(&mut self, log: &EventLog) {
        let mut samples: Vec<(ConnectionProcess, ConnectionSums)> = Vec::new();
        for record in log.records() {
            samples.extend(self.table.add(&record).map(|connection| {
                let sums = ConnectionSums {
                    retransmissions: connection.retransmits,
                    acknowledged_bytes: connection.acked_bytes,
                };
                (connection.process.clone(), sums)
            }));
        }
        self.choose_slowest();
        for (process, sums) in samples {
            if self.slowest.contains(&process) {
                self.sums.entry(process).or_default().add(sums);
            } else {
                self.rest.add(sums);
            }
        }
        if self.sums.len() > MOST_REMEMBERED {
            let slowest = &self.slowest;
            self.sums.retain(|process, _| slowest.contains(process));
        }
    }

    fn choose_slowest(&mut self) {
        self.slowest.clear();
        for connection in self.table.slowest_first() {
            if self.slowest.len() >= MOST_PROCESSES {
                return;
            }
            self.slowest.insert(connection.process.clone());
        }
    }

    /// The samples by name of their family.
    pub(super) fn samples(&self) -> BTreeMap<&'static str, Vec<MetricSample>> {
        let mut levels: BTreeMap<Option<&ConnectionProcess>, ConnectionLevels> = BTreeMap::new();
        for connection in self.table.slowest_first() {
            let process =
                Some(&connection.process).filter(|process| self.slowest.contains(process));
            levels.entry(process).or_default().add(connection);
        }
        // The rest has its series from the beginning, so that its first growth is seen.
        levels.entry(None).or_default();
        let mut samples: BTreeMap<&'static str, Vec<MetricSample>> = BTreeMap::new();
        for (process, levels) in levels {
            let sums = match process {
                Some(process) => self.sums.get(process).copied().unwrap_or_default(),
                None => self.rest,
            };
            for (family, value) in values(levels, sums) {
                samples.entry(family).or_default().push(MetricSample {
                    labels: labels(process),
                    value: MetricValue::Number(value),
                });
            }
        }
        samples
    }
}

/// The value of each family.
fn values(levels: ConnectionLevels, sums: ConnectionSums) -> [(&'static str, f64); 6] {
    [
        ("stackline_connections_active", count(levels.connections)),
        (
            "stackline_connection_retransmissions",
            count(sums.retransmissions),
        ),
        (
            "stackline_connection_acknowledged_bytes",
            count(sums.acknowledged_bytes),
        ),
        (
            "stackline_connection_round_trip_seconds",
            count(levels.rtt_ns) / 1e9,
        ),
        (
            "stackline_connection_send_queue_bytes",
            count(levels.send_queue_bytes),
        ),
        (
            "stackline_connection_unread_bytes",
            count(levels.unread_bytes),
        ),
    ]
}

/// The labels of a process, or of the rest. A process's name was redacted before it became an event.
fn labels(process: Option<&ConnectionProcess>) -> Vec<(&'static str, String)> {
    let program = match process {
        Some(process) => process
            .program
            .as_deref()
            .map_or_else(|| "unknown".to_owned(), label_text),
        None => "other".to_owned(),
    };
    let pid = process.and_then(|process| process.pid);
    let pid = pid.map_or_else(String::new, |pid| pid.to_string());
    vec![("program", program), ("pid", pid)]
}
