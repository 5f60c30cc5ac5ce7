//! Writes the records of runs into the run directory as they come, reports progress, and decides whether a measurement
//! that repeats `until` an interval has enough runs.

use serde_json::{Map, Value, json};
use stackline_core::plan::{Measurement, Plan, Warmup, World};
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::ScheduledRun;
use stackline_runs::RunDirectory;
use std::path::Path;

/// Up to this many runs the interval is computed after each run; beyond, only half as many times while the number of
/// runs doubles.
const LOOKS: usize = 256;

/// Shows a user how far the runs are.
pub trait RunProgress {
    /// A run is about to begin.
    fn begin(&mut self, scheduled: &ScheduledRun<'_>);
    /// A counted run (no warm-up) is done.
    fn advance(&mut self);
    /// Something went wrong that does not end the runs.
    fn warn(&mut self, words: &str);
    /// All runs are made, or will not be.
    fn finish(&mut self);
}

/// Decides whether the runs of a measurement that repeats `until` an interval are enough. It is passed in because this
/// crate has no statistics.
pub type StopRule = fn(&Measurement, &[RunRecord]) -> bool;

/// Writes one run directory, or keeps the records in memory alone.
pub struct RunWriter<'p> {
    plan: &'p Plan,
    /// `None` where nothing is written.
    directory: Option<RunDirectory>,
    records: Vec<RunRecord>,
    progress: Box<dyn RunProgress>,
    /// Decides when a measurement with `until` has enough runs.
    enough: StopRule,
    /// The first thing that could not be kept.
    trouble: Option<stackline_runs::Error>,
}

impl<'p> RunWriter<'p> {
    /// A writer for the runs of a plan.
    #[must_use]
    pub fn new(
        plan: &'p Plan,
        directory: RunDirectory,
        progress: Box<dyn RunProgress>,
        enough: StopRule,
    ) -> Self {
        Self {
            directory: Some(directory),
            ..Self::in_memory(plan, progress, enough)
        }
    }

    /// A writer that makes no directory: only its caller gets the records. Such runs can be neither traced nor captured.
    #[must_use]
    pub fn in_memory(plan: &'p Plan, progress: Box<dyn RunProgress>, enough: StopRule) -> Self {
        Self {
            plan,
            directory: None,
            records: Vec::new(),
            progress,
            enough,
            trouble: None,
        }
    }

    /// Writes what is known of each world.
    pub(crate) fn environment(&mut self, worlds: Vec<(World, Value)>) {
        let Some(directory) = &self.directory else {
            return;
        };
        let worlds: Map<String, Value> = worlds
            .into_iter()
            .map(|(world, known)| (world.to_string(), known))
            .collect();
        let environment = json!({"stackline": env!("CARGO_PKG_VERSION"), "worlds": worlds});
        if let Err(error) = directory.write_environment(&environment) {
            self.unkept(error);
        }
    }

    /// The number of counted runs, or of warm-up runs, that one seed makes of a measurement.
    pub(crate) fn runs_of(&self, measurement: usize, warmup: bool) -> u32 {
        self.plan
            .measurements
            .get(measurement)
            .map_or(0, |plan| match plan.warmup {
                Warmup::Runs(runs) if warmup => runs,
                Warmup::Time(_) if warmup => 0,
                _ => plan.runs,
            })
    }

    /// The run directory; an empty path where there is none.
    #[must_use]
    pub fn path(&self) -> &Path {
        let directory = self.directory.as_ref();
        directory.map_or_else(|| Path::new(""), RunDirectory::path)
    }

    /// Whether no run was done.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Removes the run directory: no run was done, and none will be.
    pub fn remove(mut self) {
        self.progress.finish();
        if let Some(directory) = self.directory {
            directory.remove();
        }
    }

    /// The records so far.
    #[must_use]
    pub fn records(&self) -> &[RunRecord] {
        &self.records
    }

    /// Closes the run directory. Returns all records, and the first error of writing.
    pub fn finish(
        mut self,
        complete: bool,
        reason: Option<&str>,
    ) -> (Vec<RunRecord>, Option<stackline_runs::Error>) {
        self.progress.finish();
        let reason = reason.or(self.trouble.as_ref().map(|error| &error.message[..]));
        let complete = complete && self.trouble.is_none();
        let closed = self
            .directory
            .map(|directory| directory.finish(&self.records, complete, reason));
        let unclosed = closed.and_then(Result::err);
        (self.records, self.trouble.or(unclosed))
    }

    /// Notes that something could not be written. The first time the user is warned at once, since the runs go on.
    fn unkept(&mut self, error: stackline_runs::Error) {
        if self.trouble.is_none() {
            self.progress.warn(&format!(
                "{error}; the runs continue, and their results are shown at the end"
            ));
            self.trouble = Some(error);
        }
    }

    /// A run is about to begin.
    pub(crate) fn begin(&mut self, scheduled: &ScheduledRun<'_>) {
        self.progress.begin(scheduled);
    }

    /// Writes the records of a run that is done, one for each part.
    pub(crate) fn done(&mut self, records: &[RunRecord]) {
        let mut unkept = Vec::new();
        if let Some(directory) = &mut self.directory {
            let appended = records.iter().map(|record| directory.append(record));
            unkept.extend(appended.filter_map(Result::err));
        }
        unkept.into_iter().for_each(|error| self.unkept(error));
        self.records.extend_from_slice(records);
        if records.iter().any(|record| !record.warmup) {
            self.progress.advance();
        }
    }

    /// Whether a measurement that repeats `until` an interval has enough runs. It is the latest measurement, so its
    /// records are the last.
    pub(crate) fn enough(&self, measurement: usize) -> bool {
        self.plan.measurements.get(measurement).is_none_or(|plan| {
            let others = self
                .records
                .iter()
                .rposition(|record| record.measurement != measurement);
            let records = &self.records[others.map_or(0, |last| last + 1)..];
            is_look(records.len() / plan.parts.len().max(1)) && (self.enough)(plan, records)
        })
    }
}

/// Whether a decision is made after so many runs: of many not after each, so that the work of all these decisions stays linear in the
/// number of runs.
pub(crate) const fn is_look(runs: usize) -> bool {
    runs <= LOOKS || runs.is_multiple_of(runs.next_power_of_two() / LOOKS)
}
