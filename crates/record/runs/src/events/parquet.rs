//! Writes tables of events to Parquet files and reads them back in batches.
//!
//! Every file has the same columns, so that other Parquet readers can read all files of a run as one table.

mod pages;
mod reader;
mod schema;
mod writer;

pub use reader::{EventColumnSelection, EventFileReader};
pub(super) use schema::GROUP;
pub use writer::EventFileWriter;

use crate::Error;
use crate::replace::replace_inside;
use stackline_events::EventTable;
use std::fs;
use std::path::Path;

/// Writes all events, sorted by time; the file is replaced completely or not at all. Returns how many.
///
/// # Errors
/// When the file cannot be written.
pub fn write_table(path: &Path, table: &EventTable) -> Result<u64, Error> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|cause| Error::writing(path, &cause))?;
    }
    replace_inside(path, |file| {
        let mut writer = EventFileWriter::new(file, path)?;
        writer.push(table, &table.by_time())?;
        writer.finish().map(drop)
    })?;
    Ok(table.len() as u64)
}

/// Reads all events of a file.
///
/// # Errors
/// When it cannot be read or is not a file of events.
pub fn read_table(path: &Path) -> Result<EventTable, Error> {
    let mut reader = EventFileReader::open(path, &EventColumnSelection::all())?;
    let mut table = EventTable::default();
    while let Some(batch) = reader.next_batch()? {
        table.append(&batch);
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
