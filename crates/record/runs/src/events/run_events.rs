//! Reads all events of a run, which may still be in progress.

use super::parquet::{EventColumnSelection, EventFileReader};
use super::paths::{self, event_files};
use super::spool::read_event_log;
use crate::{Error, RunStatus};
use stackline_events::EventTable;
use std::path::{Path, PathBuf};

/// All events of a run.
pub(super) struct RunEventFiles {
    /// The Parquet files of hosts.
    pub(super) files: Vec<PathBuf>,
    /// The event logs that have not been converted to Parquet yet.
    pub(super) event_logs: Vec<EventTable>,
}

/// Finds all events of a run. A run in progress may convert an event log to its Parquet file at any moment, so logs
/// are looked for first; the file beside a log that was read has the same events and is left out.
pub(super) fn find_run_event_files(run: &Path) -> Result<RunEventFiles, Error> {
    let (mut event_logs, mut covered) = (Vec::new(), Vec::new());
    for path in paths::event_log_files(run)? {
        match read_event_log(&path) {
            Ok(table) => {
                event_logs.push(table);
                covered.push(path.with_extension("parquet"));
            }
            Err(_) if !path.exists() => {}
            Err(error) => return Err(error),
        }
    }
    let mut files = if event_logs.is_empty() {
        event_files(run)?
    } else {
        event_files(run).unwrap_or_default()
    };
    files.retain(|file| !covered.contains(file));
    RunStatus::check_events(run, &files)?;
    Ok(RunEventFiles { files, event_logs })
}

/// All events of a run, which may be in progress, in one table; suitable for some millions of events.
///
/// # Errors
/// When there are none or a file is damaged.
pub fn read_run(run: &Path) -> Result<EventTable, Error> {
    let mut table = EventTable::default();
    read_batches(run, &EventColumnSelection::all(), |batch| {
        table.append(batch)
    })?;
    Ok(table)
}

/// Passes the events of a run to `each`, table by table, host after host, with the wanted columns; memory does not
/// grow with their number. Of a run in progress, the events so far come with all columns.
///
/// # Errors
/// When there are none or a file is damaged.
pub fn read_batches(
    run: &Path,
    wanted: &EventColumnSelection,
    mut each: impl FnMut(&EventTable),
) -> Result<(), Error> {
    let RunEventFiles { files, event_logs } = find_run_event_files(run)?;
    let mut batch = EventTable::default();
    for path in files {
        let mut reader = EventFileReader::open(&path, wanted)?;
        while reader.next_into(&mut batch)? {
            each(&batch);
        }
    }
    event_logs.iter().for_each(each);
    Ok(())
}
