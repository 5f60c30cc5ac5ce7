//! The names in a run directory, and writing a file whole or not at all.

use crate::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

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

/// The directory of events.
pub(crate) const EVENTS: &str = "events";

/// Writes `path` through a temporary file beside it and a rename: a reader sees the old file, or all of the new one.
///
/// # Errors
/// When it cannot be written, or `write` fails; the old file is there then.
pub fn replace<T, E: From<Error>>(path: &Path, write: impl FnOnce(&mut File) -> Result<T, E>) -> Result<T, E> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let failed = |cause: std::io::Error| Error::writing(path, &cause);
    let done = File::create(&temporary).map_err(|cause| failed(cause).into()).and_then(|mut file| {
        let written = write(&mut file)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&temporary, path).map_err(failed)?;
        Ok(written)
    });
    if done.is_err() {
        // On a full disk every byte counts.
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// The same with bytes at hand.
///
/// # Errors
/// When it cannot be written.
pub fn replace_with(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, |file| file.write_all(bytes).map_err(|cause| Error::writing(path, &cause)))
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
