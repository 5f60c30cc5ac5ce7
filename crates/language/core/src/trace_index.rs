//! The index of a run's events: which runs and flows there are, how far each host's clock is off, which events were
//! lost, and what tracing cost. Plain data: worlds make it, `runs` stores it as `events/index.json`, `analyze` reads
//! it.

use crate::run_schedule::ScheduledRun;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The index of a run directory's events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// The runs that were traced, in the order they were made.
    pub runs: Vec<RunSpan>,
    /// The flows; a flow is one initiator with one responder in one run.
    pub flows: Vec<RunFlow>,
    /// The hosts that have a file of events, by name.
    pub hosts: BTreeMap<String, HostTrace>,
    /// The host whose clock lifelines (the life of a data unit from host to host) are drawn in.
    pub reference: String,
    /// The logs that were imported, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<TraceImport>,
    /// How many events or other items were left out because of a limit, by the limit's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// A log that was imported into a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceImport {
    /// The log's name as the user gave it.
    pub source: String,
    /// The absolute path of the file without symbolic links; empty where it is not a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The format it was read as.
    pub form: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Number of lines, where the format has lines.
    pub lines: u64,
    /// Number of events that it gave.
    pub events: u64,
    /// Number of events by host.
    pub hosts: BTreeMap<String, u64>,
    /// Number of entries that are not events, by cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
    /// Messages about the first of these entries, and other notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How many events or other items were left out because of a limit, by the limit's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// When a run was made, in the time of the reference host's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpan {
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// Index of the run; warm-up runs are counted separately.
    pub run: u32,
    /// Whether it is a warm-up run, which no total includes.
    pub warmup: bool,
    /// When the run began, ns.
    pub from_ns: u64,
    /// When the run ended, ns.
    pub to_ns: u64,
    /// When its network's time began, ns, where this differs from `from_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_ns: Option<u64>,
}

/// A flow: one initiator with one responder in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFlow {
    /// The flow's number, which is part of the ids of its units and streams.
    pub id: u32,
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// Index of the part.
    pub part: usize,
    /// Index of the run.
    pub run: u32,
    /// Whether it belongs to a warm-up run.
    pub warmup: bool,
    /// Index of the pair among those that ran at the same time.
    pub replica: u32,
    /// The hosts of the initiator and of the responder.
    pub hosts: (String, String),
    /// The stack with its options, as text.
    pub stack: String,
    /// Host and port of the service, `web:80`, where the traced programs are not stackline's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
}

impl RunFlow {
    /// The host of the service: the second host, unless the service is known to be at the first.
    #[must_use]
    pub fn service_host(&self) -> &str {
        let host = self.service.rsplit_once(':').map(|(host, _)| host);
        if host == Some(&self.hosts.0) {
            &self.hosts.0
        } else {
            &self.hosts.1
        }
    }
}

/// What is known of one host's events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostTrace {
    /// Its clock relative to the reference host's.
    pub clock: ClockCorrection,
    /// Number of events recorded.
    pub recorded: u64,
    /// Number of events lost because there was no room.
    pub lost: u64,
    /// CPU seconds that tracing cost on it, by what used them (`drain`, `monitors`, `kernel`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cost_s: BTreeMap<String, f64>,
    /// What could not be traced on this host, with the reasons.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// Why its clock may be wrong, where its events cannot decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_doubt: Option<String>,
    /// Notes that the report shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A host's clock relative to the reference host's. A reading t of it, minus `offset_ns + drift_ppm * 1e-6 * (t -
/// at_ns)` and minus the steps up to t, is reference time. A host that shares the reference's clock has zero
/// everywhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockCorrection {
    /// How far the clock is ahead at `at_ns`, ns.
    pub offset_ns: i64,
    /// The reading of this host's clock at which the offset holds, ns.
    pub at_ns: u64,
    /// How much faster it runs than the reference, parts per million.
    pub drift_ppm: f64,
    /// Largest error that is consistent with all exchanges, ns; `None` when it is unknown.
    pub error_ns: Option<u64>,
    /// The exchanges of time stamps with the host: before, during and after the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<ClockExchange>,
    /// Steps that were detected: the moment (ns of this host's clock) and the size (ns) of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(u64, i64)>,
    /// What its kernel says about its synchronisation.
    pub kernel: Option<KernelClock>,
}

/// One exchange of time stamps as in NTP (RFC 5905, section 8): request sent, request received, answer sent, answer
/// received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockExchange {
    /// When the request was sent, ns of the reference's clock.
    pub asked_ns: u64,
    /// When the request arrived, ns of this host's clock.
    pub heard_ns: u64,
    /// When the answer was sent, ns of this host's clock.
    pub answered_ns: u64,
    /// When the answer arrived, ns of the reference's clock.
    pub returned_ns: u64,
}

/// The clock state that the system call adjtimex returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelClock {
    /// Whether the kernel believes that its clock is synchronised.
    pub synchronised: bool,
    /// Estimated error, microseconds.
    pub estimated_error_us: i64,
    /// Largest error, microseconds.
    pub largest_error_us: i64,
    /// Frequency correction in force, parts per million.
    pub frequency_ppm: f64,
}

impl Index {
    /// Adds the flows of a run that is about to start. Returns the number of the first flow of each part; its replicas
    /// have the numbers after it.
    pub fn begin(&mut self, scheduled: &ScheduledRun<'_>) -> Vec<u32> {
        let mut firsts = Vec::new();
        for (part, plan) in scheduled.measurement.parts.iter().enumerate() {
            let first = self.flows.last().map_or(0, |flow| flow.id + 1);
            firsts.push(first);
            let name = |host: &Option<String>, unnamed: &str| {
                host.clone().unwrap_or_else(|| unnamed.into())
            };
            self.flows.extend((0..plan.replicas).map(|replica| RunFlow {
                id: first + replica,
                measurement: scheduled.index,
                part,
                run: scheduled.run,
                warmup: !scheduled.counted,
                replica,
                hosts: (name(&plan.from, UNNAMED.0), name(&plan.to, UNNAMED.1)),
                stack: plan.stack.to_string(),
                service: String::new(),
            }));
        }
        firsts
    }

    /// The flow with that number.
    #[must_use]
    pub fn flow(&self, id: u32) -> Option<&RunFlow> {
        self.flows
            .binary_search_by_key(&id, |flow| flow.id)
            .ok()
            .map(|at| &self.flows[at])
    }
}

impl HostTrace {
    /// Combines the record with that of a later run: counts are summed, the exchanges of both are kept, and the clock
    /// is the later one, which has all steps.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        let mut both = later;
        both.recorded += self.recorded;
        both.lost += self.lost;
        both.clock.exchanges.splice(0..0, self.clock.exchanges);
        for (what, seconds) in self.cost_s {
            *both.cost_s.entry(what).or_default() += seconds;
        }
        both.absent.extend(self.absent);
        for note in self.notes {
            if !both.notes.contains(&note) {
                both.notes.push(note);
            }
        }
        both
    }
}

/// The names in event files of hosts that the specification does not name with FROM and TO.
pub const UNNAMED: (&str, &str) = ("initiator", "responder");

impl ClockCorrection {
    /// How far the clock is ahead of the reference at a reading of its own, ns.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a correction of a few seconds at most"
    )]
    pub fn ahead_ns(&self, at_ns: u64) -> i64 {
        let since = at_ns as i128 - i128::from(self.at_ns);
        let gained = (since as f64 * self.drift_ppm * 1e-6) as i64;
        let set: i64 = self
            .steps
            .iter()
            .filter(|(at, _)| *at <= at_ns)
            .fold(0, |set: i64, (_, by)| set.saturating_add(*by));
        self.offset_ns.saturating_add(gained).saturating_add(set)
    }

    /// A reading of this host's clock, converted to reference time, ns.
    #[must_use]
    pub fn reference_ns(&self, at_ns: u64) -> u64 {
        let corrected = i128::from(at_ns) - i128::from(self.ahead_ns(at_ns));
        u64::try_from(corrected.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_ahead_and_fast_is_set_right() {
        let clock = ClockCorrection {
            offset_ns: 1_000,
            at_ns: 5_000_000,
            drift_ppm: 100.0,
            ..ClockCorrection::default()
        };
        assert_eq!(clock.reference_ns(5_000_000), 4_999_000);
        assert_eq!(clock.reference_ns(6_000_000), 5_998_900);
        assert_eq!(ClockCorrection::default().reference_ns(7), 7);
        let set = ClockCorrection {
            steps: [(100, 30)].to_vec(),
            ..ClockCorrection::default()
        };
        assert_eq!([99, 100, 200].map(|at| set.reference_ns(at)), [99, 70, 170]);
    }
}
