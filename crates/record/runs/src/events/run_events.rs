//! All events of a run, also of one that is still being made.

use super::parquet::{EventColumnSelection, EventFileReader};
use super::paths::{self, event_files};
use super::spool::read_event_log;
use crate::{Error, RunStatus};
use stackline_events::EventTable;
use std::path::{Path, PathBuf};

/// Where all events of a run are.
pub(super) struct RunEventFiles {
    pub(super) files: Vec<PathBuf>,
    /// What is not in a file of its own yet.
    pub(super) event_logs: Vec<EventTable>,
}

/// A run that is still being made may turn an event log into its file at any moment: the log is looked for first, and where there is
/// one, the file beside it has the same events.
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

/// All events of a run in one table, also of one that is still being made: fine for some millions of them.
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

/// The events of a run table by table, host after host, with the columns that are wanted: however many there are. Of a run
/// that is still being made, what there is, with all columns.
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
