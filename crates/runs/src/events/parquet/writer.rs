//! Writes events that are in the order of time, a row group at a time.

use super::chunk::{self, NONE};
use super::{GROUP, schema};
use crate::Error;
use parquet::errors::Result as Parquet;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use stackline_events::Table;
use stackline_events::table::{Column, FIELDS, Names};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of events being written.
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    path: PathBuf,
    rows: u64,
}

impl<W: Write + Send> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file; `path` is what errors call it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(to: W, path: &Path) -> Result<Self, Error> {
        let at = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
        let properties = WriterProperties::builder()
            .set_created_by(concat!("stackline ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_sorting_columns(Some(vec![at]))
            .set_offset_index_disabled(true)
            .build();
        let file = schema().and_then(|schema| SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties)));
        let file = file.map_err(|cause| Error::writing(path, &cause))?;
        Ok(Self { file, path: path.to_owned(), rows: 0 })
    }

    /// Adds these rows of a table, in this order, which is that of time and goes on from what was added before.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn push(&mut self, table: &Table, rows: &[u32]) -> Result<(), Error> {
        for rows in rows.chunks(GROUP) {
            self.group(table, rows).map_err(|cause| Error::writing(&self.path, &cause))?;
        }
        Ok(())
    }

    fn group(&mut self, table: &Table, rows: &[u32]) -> Parquet<()> {
        let columns = self.file.schema_descr().columns().to_vec();
        let mut columns = columns.into_iter();
        let mut column =
            || columns.next().ok_or_else(|| parquet::errors::ParquetError::General("too few columns".into()));
        let mut group = self.file.next_row_group()?;
        let to = &mut group;
        chunk::numbers(to, column()?, rows, |row| Some(table.at_ns[row] as i64))?;
        chunk::texts(to, column()?, rows, &table.names, |row| table.keyword[row])?;
        chunk::texts(to, column()?, rows, &table.names, |row| table.host[row])?;
        for field in 0..FIELDS {
            let (of_numbers, of_texts) = (column()?, column()?);
            let data = table.data.get(field).map_or(&[][..], |data| &data.texts);
            if data.contains(&Column::NUMBER) {
                chunk::numbers(to, of_numbers, rows, |row| table.number(row, field))?;
            } else {
                chunk::empty(to, of_numbers, rows.len())?;
            }
            if data.iter().any(|text| *text < Column::ABSENT) {
                let text = |row: usize| data.get(row).copied().filter(|text| *text < Column::ABSENT).unwrap_or(NONE);
                chunk::texts(to, of_texts, rows, &table.names, text)?;
            } else {
                chunk::empty(to, of_texts, rows.len())?;
            }
        }
        if table.more.is_empty() {
            chunk::empty(to, column()?, rows.len())?;
        } else {
            let mut names = Names::default();
            let more: Vec<(u32, u32)> = table.more.iter().map(|(row, text)| (*row, names.number(text))).collect();
            let find = |row: usize| more.binary_search_by_key(&(row as u32), |(row, _)| *row);
            chunk::texts(to, column()?, rows, &names, |row| find(row).map_or(NONE, |at| more[at].1))?;
        }
        group.close()?;
        self.rows += rows.len() as u64;
        Ok(())
    }

    /// Ends the file. What it was written to, and how many events it has.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(W, u64), Error> {
        let done = self.file.into_inner();
        let to = done.map_err(|cause| Error::writing(&self.path, &cause))?;
        Ok((to, self.rows))
    }
}
