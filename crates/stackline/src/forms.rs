//! The forms events come in and go out in: each is one file with a table row or two.
//!
//! To add one: a file under `forms/` with a [`From`] or an [`To`], a line in [`FROM`] or [`TO`], and for what goes out a
//! flag of its own in `flags::Export` that [`To::flag`] finds.

mod tape;
mod text;

use crate::exit::Result;
use crate::flags;
use stackline_core::trace::Import;
use stackline_runs::events::{Intake, Log, Merged};
use std::io::Write;
use std::path::PathBuf;

/// A form that is read.
pub(crate) struct From {
    /// Its name, as `--as` takes it.
    pub(crate) name: &'static str,
    /// Whether a log looks like it: its name and its first bytes, [`LOOKED_AT`] of them where there are so many.
    pub(crate) recognises: fn(&str, &[u8]) -> bool,
    /// Reads all of a log into a run. What in it is no event is counted and ends nothing.
    pub(crate) import: fn(Log<'_>, &mut Intake) -> Result<Import>,
}

/// A form that is written.
pub(crate) struct To {
    /// Where it was asked for: `None`, standard output, or a file.
    pub(crate) flag: fn(&flags::Export) -> Option<&Option<PathBuf>>,
    /// Writes all events, in the order of time. How many.
    pub(crate) export: fn(Merged, &mut dyn Write) -> Result<u64>,
}

/// Bytes at the beginning of a log that say what it is.
pub(crate) const LOOKED_AT: usize = 4096;

/// Every form that is read; the first that recognises a log reads it.
pub(crate) const FROM: &[From] = &[tape::FROM, text::FROM];

/// Every form that is written.
pub(crate) const TO: &[To] = &[text::TO, tape::TO];
