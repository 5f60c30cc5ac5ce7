//! Events of a run: `RUN/events/HOST.parquet`, one file a host, sorted by time of that host's own clock; and
//! `RUN/events/index.json`, what is known about them.
//!
//! The columns: `at_ns`, `keyword`, `host`, and for each data field `n1`, `t1`, `n2`, `t2`, ...: a whole number is in `n`, any
//! other text in `t`, a field that is not there in neither. What a foreign log has beyond 16 fields is in `more`.

mod parquet;
mod spool;
mod text;

pub use self::parquet::{Reader, Wanted, Writer, read_table, write_table};
pub use spool::Spool;
pub use text::{read_events, write_events};

use crate::{Error, files};
use stackline_core::trace::Index;
use stackline_events::Table;
use std::fs;
use std::path::{Path, PathBuf};

const INDEX: &str = "index.json";

/// Where the events of a host of a run lie.
///
/// # Errors
/// When that is no name of one.
pub fn events_path(run: &Path, host: &str) -> Result<PathBuf, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if host.is_empty() || host.len() > 200 || host.starts_with('.') || !host.chars().all(plain) {
        let message = format!("`{}` is not the name of a host or network", host.escape_debug());
        return Err(Error::new(message, "letters, digits, `_`, `-` and `.` make one"));
    }
    Ok(run.join(files::EVENTS).join(format!("{host}.parquet")))
}

/// Every Parquet file of events of a run, by name.
///
/// # Errors
/// When the run has no events at all.
pub fn event_files(run: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(run.join(files::EVENTS)).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    found.sort_unstable();
    if found.is_empty() && spool::tapes(run).is_empty() {
        let message = format!("the run at {} has no events", run.display());
        return Err(Error::new(message, "`stackline run SPEC --trace` keeps them"));
    }
    Ok(found)
}

/// All events of a run in one table, also of one that is still being made: fine for some millions of them.
///
/// # Errors
/// When there are none or a file is damaged.
pub fn read_run(run: &Path) -> Result<Table, Error> {
    let mut table = Table::default();
    read_batches(run, &Wanted::all(), |batch| table.append(batch))?;
    Ok(table)
}

/// The events of a run table by table, host after host, with the columns that are wanted: however many there are. Of a run
/// that is still being made, what there is, with all columns.
///
/// # Errors
/// When there are none or a file is damaged.
pub fn read_batches(run: &Path, wanted: &Wanted, mut each: impl FnMut(&Table)) -> Result<(), Error> {
    for path in event_files(run)? {
        let mut reader = Reader::open(&path, wanted)?;
        while let Some(batch) = reader.next_batch()? {
            each(&batch);
        }
    }
    spool::tapes(run).iter().try_for_each(|path| spool::read_tape(path).map(|tape| each(&tape)))
}

/// Keeps the index.
///
/// # Errors
/// When it cannot be written.
pub fn write_index(run: &Path, index: &Index) -> Result<(), Error> {
    let path = run.join(files::EVENTS).join(INDEX);
    fs::create_dir_all(run.join(files::EVENTS)).map_err(|cause| Error::writing(&path, &cause))?;
    let text = serde_json::to_string_pretty(index).map_err(|cause| Error::writing(&path, &cause))?;
    files::replace_with(&path, format!("{text}\n").as_bytes())
}

/// Reads the index; events that were imported have none.
///
/// # Errors
/// When it is damaged.
pub fn read_index(run: &Path) -> Result<Option<Index>, Error> {
    let path = run.join(files::EVENTS).join(INDEX);
    if !path.is_file() {
        return Ok(None);
    }
    serde_json::from_str(&files::read(&path)?).map(Some).map_err(|cause| Error::reading(&path, &cause))
}
