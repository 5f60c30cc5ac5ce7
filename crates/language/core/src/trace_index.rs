//! What is known about a run's events beside the events: which runs and flows there are, whose clock is how wrong, what was
//! lost, what tracing cost. Plain data: worlds make it, `runs` keeps it as `events/index.json`, `analyze` reads it.

use crate::run_schedule::ScheduledRun;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The index of a run directory's events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// One of each run that was traced, in the order they were made.
    pub runs: Vec<RunSpan>,
    /// Every flow: one initiator with one responder in one run.
    pub flows: Vec<RunFlow>,
    /// Every host that has a file of events.
    pub hosts: BTreeMap<String, HostTrace>,
    /// The host whose clock lifelines are drawn in.
    pub reference: String,
    /// Logs that were imported, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<TraceImport>,
    /// What was left out where a bound was reached, by the bound's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// A log that was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceImport {
    /// Its name, as it was given.
    pub source: String,
    /// Where it was, from the root and without links; empty where it is no file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The form it was read as.
    pub form: String,
    /// Its length.
    pub bytes: u64,
    /// Its lines, where it has lines.
    pub lines: u64,
    /// Events it gave.
    pub events: u64,
    /// The same by host.
    pub hosts: BTreeMap<String, u64>,
    /// What in it is no event, by cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
    /// The first of these in words, and other notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What was left out where a bound was reached, by the bound's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// When a run was made, in the time of the reference host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpan {
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// Index of the run; warm-up runs count apart.
    pub run: u32,
    /// Left out of every total.
    pub warmup: bool,
    /// When it began, ns.
    pub from_ns: u64,
    /// When it was over, ns.
    pub to_ns: u64,
    /// When the time of its network began, ns, where that is not when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_ns: Option<u64>,
}

/// One initiator with one responder in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFlow {
    /// Its number, in units' and streams' ids.
    pub id: u32,
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// Index of the part.
    pub part: usize,
    /// Index of the run.
    pub run: u32,
    /// Left out of every total.
    pub warmup: bool,
    /// Which of the pairs at once.
    pub replica: u32,
    /// The initiator's and the responder's host.
    pub hosts: (String, String),
    /// The stack with its options, as text.
    pub stack: String,
    /// Host and port that answer, `web:80`, where the programs are not stackline's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
}

impl RunFlow {
    /// The host that answers: the second, but where the service is known to be at the first.
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
    /// Its clock against the reference's.
    pub clock: ClockCorrection,
    /// Events kept.
    pub recorded: u64,
    /// Events there was no room for.
    pub lost: u64,
    /// What tracing cost there: CPU seconds by what took them (`drain`, `monitors`, `kernel`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cost_s: BTreeMap<String, f64>,
    /// What of this host could not be traced and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// Why its clock may be wrong, where its events cannot decide that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_doubt: Option<String>,
    /// Notes for the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A host's clock against the reference host's. Its own clock minus `offset_ns + drift_ppm * 1e-6 * (t - at_ns)` is reference
/// time; what it was set by since comes
/// off too. A host that shares the reference's clock has all zeroes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockCorrection {
    /// How far it is ahead at `at_ns`, ns.
    pub offset_ns: i64,
    /// The moment of its own clock that is meant, ns.
    pub at_ns: u64,
    /// How much faster it goes, parts of a million.
    pub drift_ppm: f64,
    /// Largest error that all exchanges leave room for, ns; `None` when nothing is known of it.
    pub error_ns: Option<u64>,
    /// Exchanges with it: before, during and after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<ClockExchange>,
    /// Steps that were detected: the moment and the size of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(u64, i64)>,
    /// What its kernel says of its synchronisation.
    pub kernel: Option<KernelClock>,
}

/// One exchange as in NTP (RFC 5905, section 8): sent, received there, answered there, received here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockExchange {
    /// When it was sent, the reference's clock, ns.
    pub asked_ns: u64,
    /// When that arrived, its clock, ns.
    pub heard_ns: u64,
    /// When the answer left, its clock, ns.
    pub answered_ns: u64,
    /// When that arrived, the reference's clock, ns.
    pub returned_ns: u64,
}

/// What adjtimex returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelClock {
    /// Whether the kernel believes that its clock is synchronised.
    pub synchronised: bool,
    /// Estimated error, us.
    pub estimated_error_us: i64,
    /// Largest error, us.
    pub largest_error_us: i64,
    /// Frequency correction in force, parts of a million.
    pub frequency_ppm: f64,
}

impl Index {
    /// Numbers the flows of a run that is about to be made: the first flow of each part; its replicas follow.
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

    /// The flow of that number.
    #[must_use]
    pub fn flow(&self, id: u32) -> Option<&RunFlow> {
        self.flows
            .binary_search_by_key(&id, |flow| flow.id)
            .ok()
            .map(|at| &self.flows[at])
    }
}

impl HostTrace {
    /// What is known after a later run too: counts summed, the later clock, which has all steps, with the exchanges of both.
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

/// What the files of events of hosts that no FROM and TO names are called.
pub const UNNAMED: (&str, &str) = ("initiator", "responder");

impl ClockCorrection {
    /// How far it is ahead at a moment of its own, ns.
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

    /// A moment of this host's clock in reference time.
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
