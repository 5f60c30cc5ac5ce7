//! The definition of an event format, and what all imports and exports have in common.

use super::selection::ExportSelection;
use crate::qlog::streams::QlogConnection;
use crate::{ImportMistakes, Imported};
use stackline_core::error::{Error, Result};
use stackline_core::trace_index::TraceImport;
use stackline_events::EventTable;
use stackline_runs::events::{ImportLog, Intake, rename_hosts};
use std::io::{Read, Write};
use std::path::Path;

/// A format that can be imported.
#[derive(Debug)]
pub struct Importer {
    /// The format's name, as `--as` takes it.
    pub name: &'static str,
    /// Whether a log is of this format, from its name and its first bytes (up to [`LOOKED_AT`]).
    pub recognises: fn(&str, &[u8]) -> bool,
    /// Reads a whole log into a run. Parts that are no events are counted, and the import continues.
    pub import: fn(ImportLog<'_>, &mut Intake, &mut ImportContext) -> Result<TraceImport>,
}

/// What the logs of one import share.
#[derive(Debug, Default)]
pub struct ImportContext {
    /// Captures that were surveyed; their events are read after all surveys.
    pub captures: Vec<super::capture::SurveyedCapture>,
    /// Connections in qlog files. Requests on them are found after the logs of both ends were read.
    pub(crate) connections: Vec<QlogConnection>,
    /// The log that is being read, opened a second time if it can be read twice.
    pub file: Option<std::fs::File>,
    /// The index of the log that is being read.
    pub place: usize,
    /// Whether everything that logs say of requests is kept, without redaction.
    pub contents: bool,
}

/// A format that can be exported.
#[derive(Debug)]
pub struct Exporter {
    /// The format's name, which is that of its flag.
    pub name: &'static str,
    /// Writes the selected events of a run.
    pub export: fn(&Path, &ExportSelection, &mut dyn Write) -> Result<Exported>,
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The number of events written.
    pub events: u64,
    /// What the format has no room for, one line for each reason.
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

/// Adds the events of another tool's file to a run, and reports the result.
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

/// Adds some events of a log to a run, under the log's host name if the user gave one.
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

/// Notes what could not be read in the result of an import.
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

/// The largest file of another tool that is read at once, in bytes.
const LARGEST: u64 = 1 << 30;

/// Reads a whole log into memory.
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

/// How many bytes at the beginning of a log are used to recognise its format.
pub const LOOKED_AT: usize = 4096;
