//! What `--trace` adds to a run directory: the events that worlds hand over, and an index that says which flow belongs
//! to which part and how far each host's clock is off.

use stackline_core::error::Error;
use stackline_core::run_schedule::ScheduledRun;
use stackline_core::trace_index::{HostTrace, Index, RunSpan};
use stackline_core::units;
use stackline_events::EventLog;
use stackline_events::catalogue::rows::{RunStart, RunStop};
use stackline_runs::events::{SortStopSignal, Spooling, write_index};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The host name under which stackline's own events are logged.
pub(crate) const COORDINATOR: &str = "stackline";
/// The virtual time between two runs in ns, so that they can be distinguished.
const BETWEEN_NS: u64 = 1_000_000;

/// What a world needs to trace one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracing {
    /// By part: the number of its first flow; its other flows follow.
    pub(crate) flows: Vec<u32>,
    /// The time at which virtual time begins in this run, ns.
    pub(crate) origin_ns: u64,
    /// By part: the port on which its first responder listens, where the world chooses ports; the other replicas
    /// follow.
    pub(crate) ports: Vec<u16>,
    /// What the world traced, also of a run that failed.
    pub(crate) traced: RunTrace,
}

/// What a world traced of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunTrace {
    /// When the run began and ended, in the time of the reference host, ns.
    pub(crate) span_ns: (u64, u64),
    /// When the network's own time began, where that differs from the beginning of the run, ns.
    pub(crate) network_ns: Option<u64>,
    /// By host: its clock and its counts, which include those of earlier runs.
    pub(crate) hosts: BTreeMap<String, HostTrace>,
}

/// Collects the traces of all runs of a plan.
#[derive(Debug)]
pub(crate) struct RunTracer {
    directory: PathBuf,
    spool: Spooling,
    index: Index,
}

impl RunTracer {
    /// A tracer that writes into that run directory.
    ///
    /// # Errors
    /// When its events cannot be written.
    pub(crate) fn new(directory: &Path) -> Result<Self, Error> {
        Ok(Self {
            directory: directory.to_owned(),
            spool: Spooling::start(directory)?,
            index: Index::default(),
        })
    }

    /// Prepares the tracing of a run that is about to be made.
    pub(crate) fn begin(&mut self, scheduled: &ScheduledRun<'_>) -> Tracing {
        let origin_ns = self
            .index
            .runs
            .last()
            .map_or(0, |run| run.to_ns + BETWEEN_NS);
        Tracing {
            flows: self.index.begin(scheduled),
            origin_ns,
            ..Tracing::default()
        }
    }

    /// Adds a run that was made to the index.
    ///
    /// # Errors
    /// When its events cannot be written.
    pub(crate) fn done(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        traced: RunTrace,
    ) -> Result<(), Error> {
        let (from_ns, to_ns) = traced.span_ns;
        if to_ns == 0 {
            // The run failed before tracing began.
            return Ok(());
        }
        let (measurement, run, warmup) = (scheduled.index, scheduled.run, !scheduled.counted);
        self.index.runs.push(RunSpan {
            measurement,
            run,
            warmup,
            from_ns,
            to_ns,
            network_ns: traced.network_ns,
        });
        self.spool
            .append(COORDINATOR, &marks(scheduled, traced.span_ns))?;
        for (host, trace) in traced.hosts {
            let before = self.index.hosts.remove(&host).unwrap_or_default();
            self.index.hosts.insert(host, before.then(trace));
        }
        Ok(write_index(&self.directory, &self.index)?)
    }

    /// What tracing cost on all hosts together, for people.
    pub(crate) fn note(&self) -> Option<String> {
        let hosts = self.index.hosts.values();
        let recorded: u64 = hosts.clone().map(|host| host.recorded).sum();
        let lost: u64 = hosts.clone().map(|host| host.lost).sum();
        let mut cost_s: BTreeMap<&str, f64> = BTreeMap::new();
        for (what, seconds) in hosts.flat_map(|host| &host.cost_s) {
            *cost_s.entry(what).or_default() += seconds;
        }
        if cost_s.is_empty() {
            return None;
        }
        let costs: Vec<String> = cost_s
            .iter()
            .map(|(what, seconds)| format!("{} of CPU time ({what})", units::format_time(*seconds)))
            .collect();
        let lost = if lost > 0 {
            format!(", lost: {lost}")
        } else {
            String::new()
        };
        Some(format!(
            "tracing cost {}; events recorded: {recorded}{lost}",
            costs.join(", ")
        ))
    }

    /// Sorts the events and writes the index when all runs are made. `reference` is the host whose time the index
    /// refers to.
    ///
    /// # Errors
    /// When the events cannot be written, or `stop` ends their sorting; unsorted events can be read all the same.
    pub(crate) fn finish(mut self, reference: &str, stop: &SortStopSignal) -> Result<(), Error> {
        self.index.reference = reference.to_owned();
        let kept = self.spool.settle(stop);
        if let Ok(hosts) = &kept {
            // Count the events that are really kept: none for a host whose events are missing.
            self.index
                .hosts
                .values_mut()
                .for_each(|host| host.recorded = 0);
            for (host, settled) in hosts {
                settled.record_in(self.index.hosts.entry(host.clone()).or_default());
            }
        }
        write_index(&self.directory, &self.index)?;
        Ok(kept.map(drop)?)
    }
}

/// An event log with the beginning and the end of a run.
fn marks(scheduled: &ScheduledRun<'_>, span_ns: (u64, u64)) -> EventLog {
    let mut event_log = EventLog::default();
    event_log.host(COORDINATOR);
    let (measurement, run) = (scheduled.index.into(), scheduled.run.into());
    let warmup = (!scheduled.counted).into();
    RunStart {
        measurement,
        run,
        warmup,
    }
    .write(&mut event_log, span_ns.0);
    RunStop {
        measurement,
        run,
        warmup,
    }
    .write(&mut event_log, span_ns.1);
    event_log
}
