//! Keeps what a run yields as it comes, shows progress on a terminal, decides whether an interval is narrow enough.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};
use stackline_core::plan::{Plan, Warmup, World};
use stackline_core::record::RunRecord;
use stackline_core::schedule::ScheduledRun;
use stackline_runs::RunDirectory;
use std::io::{IsTerminal, stderr};
use std::path::Path;

/// Told of every run.
pub(crate) struct Keeper<'p> {
    plan: &'p Plan,
    directory: RunDirectory,
    records: Vec<RunRecord>,
    bar: ProgressBar,
    /// The first thing that could not be kept.
    trouble: Option<stackline_runs::Error>,
}

impl<'p> Keeper<'p> {
    pub(crate) fn new(plan: &'p Plan, directory: RunDirectory) -> Self {
        let runs: u64 = plan.measurements.iter().map(|m| u64::from(m.runs)).sum();
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(runs), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {wide_msg}") {
            bar.set_style(style);
        }
        Self { plan, directory, records: Vec::new(), bar, trouble: None }
    }

    pub(crate) fn path(&self) -> String {
        self.directory.path().display().to_string()
    }

    /// Writes what is known of each world.
    pub(crate) fn environment(&mut self, worlds: Vec<(World, Value)>) {
        let worlds: Map<String, Value> = worlds.into_iter().map(|(world, known)| (world.to_string(), known)).collect();
        let environment = json!({"stackline": env!("CARGO_PKG_VERSION"), "worlds": worlds});
        if let Err(error) = self.directory.write_environment(&environment) {
            self.trouble.get_or_insert(error);
        }
    }

    /// Counted runs, or warm-up runs, that one seed makes of a measurement.
    pub(crate) fn runs_of(&self, measurement: usize, warmup: bool) -> u32 {
        self.plan.measurements.get(measurement).map_or(0, |plan| match plan.warmup {
            Warmup::Runs(runs) if warmup => runs,
            Warmup::Time(_) if warmup => 0,
            _ => plan.runs,
        })
    }

    /// Where the run is kept.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Closes the run directory.
    pub(crate) fn finish(self, complete: bool, reason: Option<&str>) -> Result<Vec<RunRecord>, stackline_runs::Error> {
        self.bar.finish_and_clear();
        self.directory.finish(&self.records, complete, reason)?;
        self.trouble.map_or(Ok(self.records), Err)
    }

    /// A run is about to begin.
    pub(crate) fn begins(&mut self, turn: &ScheduledRun<'_>) {
        let text = &turn.measurement.text;
        self.bar.set_message(if turn.counted { text.clone() } else { format!("warm-up: {text}") });
    }

    /// A run is done: one record a part.
    pub(crate) fn done(&mut self, records: &[RunRecord]) {
        for record in records {
            if let Err(error) = self.directory.append(record) {
                self.trouble.get_or_insert(error);
            }
        }
        self.records.extend_from_slice(records);
        if records.iter().any(|record| !record.warmup) {
            self.bar.inc(1);
        }
    }

    /// Whether a measurement that repeats `until` an interval has enough runs.
    pub(crate) fn enough(&self, measurement: usize) -> bool {
        self.plan.measurements.get(measurement).is_none_or(|plan| {
            let records: Vec<RunRecord> =
                self.records.iter().filter(|r| r.measurement == measurement).cloned().collect();
            stackline_analyze::interval_reached(plan, &records)
        })
    }
}
