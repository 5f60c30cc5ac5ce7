//! A table of events to a Parquet file and back, batch by batch.
//!
//! Every file has the same columns, so that any reader takes all files of a run as one table.

mod pages;
mod reader;
mod writer;

pub use reader::{Reader, Wanted};
pub use writer::Writer;

use crate::{Error, files};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::Result as Parquet;
use parquet::schema::types::Type;
use stackline_events::Table;
use stackline_events::table::FIELDS;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Rows of a page: what is encoded and decoded at once.
const PAGE: usize = 1 << 16;
/// Most rows of a row group.
pub(super) const GROUP: usize = 1 << 20;

const AT: &str = "at_ns";
const KEYWORD: &str = "keyword";
const HOST: &str = "host";
const MORE: &str = "more";

/// The column of whole numbers of a data field, from 0.
fn number_column(field: usize) -> String {
    format!("n{}", field + 1)
}

/// The column of other texts of a data field.
fn text_column(field: usize) -> String {
    format!("t{}", field + 1)
}

/// The columns of every file of events.
fn schema() -> Parquet<Type> {
    let number = |name: &str, repetition| {
        Type::primitive_type_builder(name, Physical::INT64).with_repetition(repetition).build()
    };
    let text = |name: &str, repetition| {
        let builder = Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(repetition);
        builder.with_logical_type(Some(LogicalType::String)).build()
    };
    let (required, optional) = (Repetition::REQUIRED, Repetition::OPTIONAL);
    let mut columns = vec![number(AT, required)?, text(KEYWORD, required)?, text(HOST, required)?];
    for field in 0..FIELDS {
        columns.extend([number(&number_column(field), optional)?, text(&text_column(field), optional)?]);
    }
    columns.push(text(MORE, optional)?);
    Type::group_type_builder("event").with_fields(columns.into_iter().map(Arc::new).collect()).build()
}

/// Writes all events, sorted by time, whole or not at all. Returns how many.
///
/// # Errors
/// When the file cannot be written.
pub fn write_table(path: &Path, table: &Table) -> Result<u64, Error> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|cause| Error::writing(path, &cause))?;
    }
    files::replace(path, |file| {
        let mut writer = Writer::new(file, path)?;
        writer.push(table, &table.by_time())?;
        writer.finish().map(drop)
    })?;
    Ok(table.len() as u64)
}

/// Reads all events of a file.
///
/// # Errors
/// When it cannot be read or is no file of events.
pub fn read_table(path: &Path) -> Result<Table, Error> {
    let mut reader = Reader::open(path, &Wanted::all())?;
    let mut table = Table::default();
    while let Some(batch) = reader.next_batch()? {
        table.append(&batch);
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
