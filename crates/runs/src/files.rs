//! The names in a run directory, and its small texts.

use crate::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The specification as it was given.
pub(crate) const SPECIFICATION: &str = "specification.stackline";
/// The plan, as JSON.
pub(crate) const PLAN: &str = "plan.json";
/// What the machines were like, as JSON.
pub(crate) const ENVIRONMENT: &str = "environment.json";
/// Whether the run is complete, as JSON.
pub(crate) const STATUS: &str = "status.json";
/// Records as they came, one JSON line each.
pub(crate) const JOURNAL: &str = "runs.jsonl";
/// All records, at the end.
pub(crate) const RESULTS: &str = "results.parquet";

/// What limits it, as JSON.
pub(crate) const FINDINGS: &str = "findings.json";

/// What is known about the events, as JSON.
pub(crate) const INDEX: &str = "events/index.json";

/// What a file of sorted events is called behind its host's name.
pub(crate) const SORTED: &str = "parquet";

/// The directory of events.
pub(crate) const EVENTS: &str = "events";

/// The files in a run's directory of events whose names end so, by name.
pub(crate) fn of_events(run: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join(EVENTS)).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == extension));
    found.sort_unstable();
    found
}

/// Waits until a file that was written is on the disk.
pub(crate) fn settle(path: &Path) -> Result<(), Error> {
    let file = File::open(path).and_then(|file| file.sync_all());
    file.map_err(|cause| Error::writing(path, &cause))
}

/// Reads a whole text.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|cause| Error::reading(path, &cause))
}
