//! `RUN/events/index.json`: what is known about the events of a run.

use crate::replace::replace_inside_with;
use crate::{Error, RunStatus, files};
use stackline_core::trace_index::Index;
use std::path::Path;

/// Stores the index of a run's events.
///
/// # Errors
/// When it cannot be written.
pub fn write_index(run: &Path, index: &Index) -> Result<(), Error> {
    let path = run.join(files::INDEX);
    files::must_be_own(run)?;
    files::make_events(run).map_err(|cause| Error::writing(&path, &cause))?;
    let text =
        serde_json::to_string_pretty(index).map_err(|cause| Error::writing(&path, &cause))?;
    replace_inside_with(&path, format!("{text}\n").as_bytes())?;
    RunStatus::sum_again(run)
}

/// Reads the index; `None` where there is none.
///
/// # Errors
/// When it is damaged.
pub fn read_index(run: &Path) -> Result<Option<Index>, Error> {
    let path = run.join(files::INDEX);
    if !files::is_there(&path) {
        return Ok(None);
    }
    serde_json::from_str(&files::read(&path)?)
        .map(Some)
        .map_err(|cause| Error::reading(&path, &cause))
}
