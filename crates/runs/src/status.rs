//! `status.json`: whether a run is complete, and if not why.

use crate::{Error, files, replace_with};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The content of `status.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Whether everything planned was done.
    pub complete: bool,
    /// Why not, where that is known; a run that was killed has no reason.
    pub reason: Option<String>,
    /// The version of stackline that wrote the directory.
    pub stackline: String,
    /// When the run started, UTC, ISO 8601.
    pub started: String,
    /// Records kept at the end, warm-up runs too.
    pub records: Option<u64>,
}

impl Status {
    pub(crate) fn started(started: String) -> Self {
        let stackline = env!("CARGO_PKG_VERSION").to_owned();
        Self { complete: false, reason: None, stackline, started, records: None }
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(files::STATUS);
        let text = serde_json::to_string_pretty(self).map_err(|cause| Error::writing(&path, &cause))?;
        replace_with(&path, format!("{text}\n").as_bytes())
    }

    /// Reads `status.json` of a run directory.
    ///
    /// # Errors
    /// When it is not there or not understood.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(files::STATUS);
        serde_json::from_str(&files::read(&path)?).map_err(|cause| Error::reading(&path, &cause))
    }
}
