//! What a format of events is, and what all that are read or written have in common.

use super::selection::ExportSelection;
use crate::qlog::streams::QlogConnection;
use crate::{ImportMistakes, Imported};
use stackline_core::error::{Error, Result};
use stackline_core::trace_index::TraceImport;
use stackline_events::EventTable;
use stackline_runs::events::{ImportLog, Intake, rename_hosts};
use std::io::{Read, Write};
use std::path::Path;

/// A format that is read.
#[derive(Debug)]
pub struct Importer {
    /// Its name, as `--as` takes it.
    pub name: &'static str,
    /// Whether a log is of this format, by its name and its first bytes, [`LOOKED_AT`] of them where there are so many.
    pub recognises: fn(&str, &[u8]) -> bool,
    /// Reads all of a log into a run. What in it is no event is counted and ends nothing.
    pub import: fn(ImportLog<'_>, &mut Intake, &mut ImportContext) -> Result<TraceImport>,
}

/// What logs that are imported together know of one another.
#[derive(Debug, Default)]
pub struct ImportContext {
    /// Captures that were looked at: their events come when all were.
    pub captures: Vec<super::capture::SurveyedCapture>,
    /// Connections of qlog: what is a request on them is known when the logs of both ends were read.
    pub(crate) connections: Vec<QlogConnection>,
    /// The log that is read, once more, where it can be read again; and its place among all.
    pub file: Option<std::fs::File>,
    /// See `file`.
    pub place: usize,
    /// All that logs say of requests is kept, with values.
    pub contents: bool,
}

/// A format that is written.
#[derive(Debug)]
pub struct Exporter {
    /// Its name, as its flag has it.
    pub name: &'static str,
    /// Writes the chosen events of a run.
    pub export: fn(&Path, &ExportSelection, &mut dyn Write) -> Result<Exported>,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Events.
    pub events: u64,
    /// What of them has no room in the format, a line for each reason.
    pub left_out: Vec<String>,
}

impl From<u64> for Exported {
    fn from(events: u64) -> Self {
        Self {
            events,
            ..Self::default()
        }
    }
}

/// Puts what another tool's file gave into a run, and reports what became of it.
pub(crate) fn take(
    format: &str,
    log: &ImportLog<'_>,
    bytes: u64,
    imported: Imported,
    into: &mut Intake,
) -> Result<TraceImport> {
    let mut import = TraceImport {
        source: log.name.to_owned(),
        form: format.to_owned(),
        bytes,
        ..TraceImport::default()
    };
    push_events(log, imported.table, into, &mut import)?;
    report(imported.mistakes, &mut import);
    if imported.without_ids > 0 {
        import.notes.push(format!(
            "{}: no trace ID in {} of the spans; each such span is a separate unit",
            log.name, imported.without_ids
        ));
    }
    import.left_out = imported.left_out.names();
    Ok(import)
}

/// Some events of it.
pub(crate) fn push_events(
    log: &ImportLog<'_>,
    mut table: EventTable,
    into: &mut Intake,
    import: &mut TraceImport,
) -> Result<()> {
    if let Some(host) = log.host {
        rename_hosts(&mut table, host);
    }
    import.events += table.len() as u64;
    Ok(into.push(&table)?)
}

/// What could not be read.
pub(crate) fn report(mistakes: ImportMistakes, import: &mut TraceImport) {
    if mistakes.count > 0 {
        import.refused.insert("not read".to_owned(), mistakes.count);
    }
    import.notes.extend(
        mistakes
            .first
            .into_iter()
            .map(|what| format!("{}: {what}", import.source)),
    );
}

/// Another tool's file, which is read whole: most of it.
const LARGEST: u64 = 1 << 30;

/// All of it.
pub(crate) fn read_whole_log(log: &mut ImportLog<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let unread = |cause| {
        Error::input(format!("cannot read {}: {cause}", log.name))
            .hint("check the file and its permissions")
    };
    log.bytes
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unread)?;
    if bytes.len() as u64 > LARGEST {
        let what = format!(
            "{} is larger than 1 GiB, the limit for this format",
            log.name
        );
        return Err(Error::input(what)
            .hint("import it in parts; text logs and captures have no such limit"));
    }
    Ok(bytes)
}

pub(crate) fn unread(log: &ImportLog<'_>, cause: &crate::Error) -> Error {
    Error::input(format!("cannot import {}: {cause}", log.name))
        .hint("specify its format with `--as FORM`")
}

pub(crate) fn unwritten(cause: impl std::fmt::Display) -> Error {
    Error::environment(format!("cannot write the events: {cause}"))
        .hint("check that the disk is not full")
}

/// Bytes at the beginning of a log that say what it is.
pub const LOOKED_AT: usize = 4096;
