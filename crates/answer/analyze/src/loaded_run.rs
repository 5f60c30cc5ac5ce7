//! Reads a run directory, with its events in memory, for lifelines, findings and the page. If it has more events than are read at
//! once, the events of as many complete runs as fit are read; findings about the other runs come from their records alone.

pub mod assembly;

use crate::assemble::{self, LifelineOptions};
use crate::findings::{AnalysisInput, Finding, diagnose_each};
use crate::lifelines::Lifelines;
use stackline_core::error::Result;
use stackline_core::run_record::RunRecord;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use stackline_runs::StoredRun;
use stackline_runs::events::{
    EventColumnSelection, EventExcerpt, ExcerptRows, event_files, read_index, read_run,
};
use std::path::Path;

/// Most events that are read at once, unless a flag sets another number: with all that is computed from them they take about a
/// quarter of a gigabyte (`LOADED_EVENT_BYTES` each).
pub const MOST_EVENTS: usize = 750_000;

/// A run directory read into memory. If its events were imported, the plan is empty and there are no records.
#[derive(Debug)]
pub struct LoadedRun {
    /// What the directory holds besides events: the plan, the records and more.
    pub run: StoredRun,
    /// Clocks, flows and runs of the events; empty if the directory has no index.
    pub index: Index,
    /// The events, each host's in the time of its own clock.
    pub events: EventTable,
    /// The lifelines of the events, in reference time.
    pub lifelines: Lifelines,
    /// If not all events are read: which were, and their rows in the files.
    part: Option<(EventExcerpt, ExcerptRows)>,
}

impl LoadedRun {
    /// Reads a run, given as a directory or as its name under the runs directory, with at most `most_events` events.
    ///
    /// # Errors
    /// If it is not a run with events, or cannot be read.
    pub fn open(path: &Path, most_events: usize) -> Result<Self> {
        let run = StoredRun::open_events(path)?;
        let known = read_index(&run.path)?;
        let index = known.clone().unwrap_or_default();
        let (events, part) = match EventExcerpt::select(&run.path, &index, most_events as u64)? {
            None => (read_run(&run.path)?, None),
            Some(excerpt) => {
                let mut events = EventTable::default();
                let rows =
                    excerpt.read(&run.path, &index, &EventColumnSelection::all(), |part| {
                        events.append(part)
                    })?;
                (events, Some((excerpt, rows)))
            }
        };
        let lifelines = assemble::lifelines(&events, known.as_ref(), &LifelineOptions::default());
        Ok(Self {
            run,
            index,
            events,
            lifelines,
            part,
        })
    }

    /// Reads a run that may have no events.
    ///
    /// # Errors
    /// If it is not a run, or cannot be read.
    pub fn whatever(path: &Path, most_events: usize) -> Result<Self> {
        let run = StoredRun::open_events(path)?;
        if event_files(&run.path).is_ok() {
            return Self::open(path, most_events);
        }
        let (index, events, lifelines) = Default::default();
        Ok(Self {
            run,
            index,
            events,
            lifelines,
            part: None,
        })
    }

    /// The input for the analysis functions.
    #[must_use]
    pub fn input(&self) -> AnalysisInput<'_> {
        let (plan, records) = (&self.run.plan, self.run.records.as_slice());
        AnalysisInput {
            plan,
            records,
            index: &self.index,
            events: &self.events,
            lifelines: &self.lifelines,
        }
    }

    /// What limits the run. Rows in the evidence are those of the events in memory; [`Self::placed`] turns them into rows of the files.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let Some((excerpt, _)) = &self.part else {
            return diagnose_each(&[self.input()]);
        };
        let (plan, index, lifelines) = (&self.run.plan, &self.index, &self.lifelines);
        let is_whole =
            |record: &&RunRecord| excerpt.has(record.measurement, record.run, record.warmup);
        let traced: Vec<RunRecord> = self.run.records.iter().filter(is_whole).cloned().collect();
        let has_traced = |measurement| {
            traced
                .iter()
                .any(|record| record.measurement == measurement)
        };
        let others = self
            .run
            .records
            .iter()
            .filter(|record| !has_traced(record.measurement));
        let others: Vec<RunRecord> = others.cloned().collect();
        let (no_events, no_lifelines) = (EventTable::default(), Lifelines::default());
        let spans = Index {
            runs: index.runs.clone(),
            flows: index.flows.clone(),
            ..Index::default()
        };
        diagnose_each(&[
            AnalysisInput {
                plan,
                records: &traced,
                index: &self.whole_index(excerpt),
                events: &self.events,
                lifelines,
            },
            AnalysisInput {
                plan,
                records: &others,
                index: &spans,
                events: &no_events,
                lifelines: &no_lifelines,
            },
        ])
    }

    /// The index, reduced to the runs whose events are read in full.
    fn whole_index(&self, excerpt: &EventExcerpt) -> Index {
        let mut index = self.index.clone();
        index
            .runs
            .retain(|span| excerpt.has(span.measurement, span.run, span.warmup));
        index
            .flows
            .retain(|flow| excerpt.has(flow.measurement, flow.run, flow.warmup));
        index
    }

    /// Findings as they are stored: events are identified by their rows in the files.
    #[must_use]
    pub fn placed(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        let evidence = findings
            .iter_mut()
            .flat_map(|finding| &mut finding.evidence);
        if let Some((_, rows)) = &self.part {
            evidence
                .flat_map(|evidence| &mut evidence.events)
                .for_each(|(host, row)| *row = rows.row(host, *row));
        }
        findings
    }

    /// A note that not all events were read, what this means, and the command that reads all; `None` if all were read.
    #[must_use]
    pub fn note(&self, command: &str) -> Option<String> {
        let (excerpt, _) = self.part.as_ref()?;
        let runs = self.index.runs.iter().filter(|run| !run.warmup).count();
        let whole = excerpt.runs.len();
        let what = match (runs, whole) {
            (0, _) => {
                "requests, findings and lifelines cover only the beginning of the run".to_owned()
            }
            (_, 0) => "no run is small enough to be read in full, so findings are based on records, and lifelines cover only the beginning"
                .to_owned(),
            _ => format!("findings and lifelines cover {whole} of {runs} runs"),
        };
        Some(describe_beyond(
            &self.run.path,
            command,
            ReadEvents {
                read: self.events.len(),
                of: excerpt.of,
                event_bytes: LOADED_EVENT_BYTES,
            },
            &what,
        ))
    }
}

/// Warnings that a run is incomplete or that event files are missing; none if it is whole. `done` says what the caller does with the
/// contents, such as "summarised".
#[must_use]
pub fn incomplete(run: &StoredRun, done: &str) -> Vec<String> {
    let reason = run.reason.as_deref().unwrap_or("it was killed");
    let path = run.path.display();
    let ended = (!run.complete)
        .then(|| format!("warning: {path} is incomplete ({reason}); its contents are {done}"));
    ended
        .into_iter()
        .chain(missing(run).map(|what| format!("warning: {path}: {what}; the others are {done}")))
        .collect()
}

/// A sentence on the event files that a run had at its end and that are missing; `None` if none is.
#[must_use]
pub fn missing(run: &StoredRun) -> Option<String> {
    let names = run.missing_events();
    (!names.is_empty()).then(|| format!("event files are missing: {}", names.join(", ")))
}

/// Approximate bytes of memory for an event with all that is computed from it.
const LOADED_EVENT_BYTES: f64 = 300.0;

/// How many events of a run were read, and how many it has.
pub(crate) struct ReadEvents {
    /// Events that were read.
    pub(crate) read: usize,
    /// Events that the run has.
    pub(crate) of: u64,
    /// Approximate bytes of memory for each event.
    pub(crate) event_bytes: f64,
}

/// A note that only some of a run's events were read, what this means (`what`), which command reads all, and how much memory it
/// needs.
pub(crate) fn describe_beyond(run: &Path, command: &str, events: ReadEvents, what: &str) -> String {
    let ReadEvents {
        read,
        of,
        event_bytes,
    } = events;
    let (path, gigabytes) = (run.display(), of as f64 * event_bytes / 1e9);
    format!(
        "only {read} of {of} events were read: {what}; `stackline {command} {path} --most-events {of}` reads all events, using about {gigabytes:.1} GB of memory"
    )
}

/// The zero of time for pages and pictures: the first event, passage or begin of a run, reference time, ns.
#[must_use]
pub fn origin_ns(index: &Index, events: &EventTable, lifelines: &Lifelines) -> u64 {
    let passages = lifelines.passages.iter().map(|passage| passage.at_ns).min();
    let runs = index.runs.iter().map(|run| run.from_ns).min();
    // The events of a host stand together, so its entry is looked up once.
    let mut last = None;
    let all = (0..events.len()).map(|row| {
        let at_ns = events.at_ns[row];
        let host = match last {
            Some((name, host)) if name == events.host[row] => host,
            _ => index.hosts.get(events.host(row)),
        };
        last = Some((events.host[row], host));
        host.map_or(at_ns, |host| host.clock.reference_ns(at_ns))
    });
    let all = all.min();
    [passages, runs, all]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(0)
}
