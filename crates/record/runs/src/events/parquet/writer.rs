//! Writes events that are in the order of time, a row group at a time, with the Parquet library's column writers:
//! numbers in the delta encoding, texts with a dictionary, without compression.

use super::schema::{AT, GROUP, PAGE, number_column, schema};
use crate::Error;
use crate::checksums::{CREATED_BY, RowGroupChecksums, Summed};
use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result as Parquet};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{
    DeltaBinaryPackedEncoderOptions, EnabledStatistics, WriterProperties,
};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;
use stackline_events::EventTable;
use stackline_events::table::{EventColumn, EventTextTable, FIELDS};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are passed to the library at once: few enough that their texts stay in the processor's cache.
const BATCH: usize = 1 << 11;

/// Numbers in a block of the delta encoding, which share a minimum difference.
const BLOCK: usize = 128;
/// Parts of a block; each part uses as many bits for a difference as its largest needs.
const MINIBLOCKS: usize = 4;

/// A file of events being written.
pub struct EventFileWriter<W: Write + Send> {
    file: SerializedFileWriter<Summed<W>>,
    sums: RowGroupChecksums,
    path: PathBuf,
    rows: u64,
}

impl<W: Write + Send> std::fmt::Debug for EventFileWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.path)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<W: Write + Send> EventFileWriter<W> {
    /// Begins a file; `path` is its name in errors.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(to: W, path: &Path) -> Result<Self, Error> {
        let begin = || {
            let mut file = SerializedFileWriter::new(
                Summed::new(to),
                Arc::new(schema()?),
                Arc::new(properties()?),
            )?;
            let sums = RowGroupChecksums::begin(&mut file)?;
            Ok((file, sums))
        };
        let (file, sums) = begin().map_err(|cause: ParquetError| Error::writing(path, &cause))?;
        Ok(Self {
            file,
            sums,
            path: path.to_owned(),
            rows: 0,
        })
    }

    /// Appends rows of a table. They must be in the order of time and not earlier than rows appended before.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn push(&mut self, table: &EventTable, rows: &[u32]) -> Result<(), Error> {
        for rows in rows.chunks(GROUP) {
            self.group(table, rows)
                .map_err(|cause| Error::writing(&self.path, &cause))?;
        }
        Ok(())
    }

    fn group(&mut self, table: &EventTable, rows: &[u32]) -> Parquet<()> {
        let mut group = self.file.next_row_group()?;
        let to = &mut group;
        let mut texts = ParquetTextCache::from_names(&table.names);
        column::<_, Int64Type>(to, rows, |row| Some(table.at_ns[row] as i64))?;
        column::<_, ByteArrayType>(to, rows, |row| texts.get(table.keyword[row]))?;
        column::<_, ByteArrayType>(to, rows, |row| texts.get(table.host[row]))?;
        for field in 0..FIELDS {
            let data = table.data.get(field).map_or(&[][..], |data| &data.texts);
            if data.contains(&EventColumn::NUMBER) {
                column::<_, Int64Type>(to, rows, |row| table.number(row, field))?;
            } else {
                empty::<_, Int64Type>(to, rows.len())?;
            }
            if data.iter().any(|text| *text < EventColumn::ABSENT) {
                column::<_, ByteArrayType>(to, rows, |row| texts.get(*data.get(row)?))?;
            } else {
                empty::<_, ByteArrayType>(to, rows.len())?;
            }
        }
        if table.more.is_empty() {
            empty::<_, ByteArrayType>(to, rows.len())?;
        } else {
            let find = |row: usize| {
                table
                    .more
                    .binary_search_by_key(&(row as u32), |(row, _)| *row)
                    .ok()
            };
            column::<_, ByteArrayType>(to, rows, |row| {
                Some(table.more[find(row)?].1.as_str().into())
            })?;
        }
        group.close()?;
        self.sums.add(&mut self.file)?;
        self.rows += rows.len() as u64;
        Ok(())
    }

    /// Completes the file. Returns what it was written to, and its number of events.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<(W, u64), Error> {
        self.sums.keep(&mut self.file);
        let done = self.file.into_inner();
        let to = done.map_err(|cause| Error::writing(&self.path, &cause))?;
        Ok((to.into_inner(), self.rows))
    }
}

fn properties() -> Parquet<WriterProperties> {
    let at = SortingColumn {
        column_idx: 0,
        descending: false,
        nulls_first: false,
    };
    let mut properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_sorting_columns(Some(vec![at]))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(PAGE)
        .set_write_batch_size(BATCH)
        .set_delta_binary_packed_encoder_options(DeltaBinaryPackedEncoderOptions::try_new(
            BLOCK, MINIBLOCKS,
        )?);
    for name in std::iter::once(AT.to_owned()).chain((0..FIELDS).map(number_column)) {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

/// Writes the next column; `value` gives the value of a row, if it has one.
fn column<W: Write + Send, T: DataType>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[u32],
    mut value: impl FnMut(usize) -> Option<T::T>,
) -> Parquet<()> {
    let mut column = to.next_column()?.ok_or_else(too_few)?;
    let (mut values, mut levels) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    for rows in rows.chunks(BATCH) {
        values.clear();
        levels.clear();
        for &row in rows {
            let value = value(row as usize);
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        column
            .typed::<T>()
            .write_batch(&values, Some(&levels), None)?;
    }
    column.close()
}

/// Writes the next column, in which no row has a value.
fn empty<W: Write + Send, T: DataType>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    rows: usize,
) -> Parquet<()> {
    let mut column = to.next_column()?.ok_or_else(too_few)?;
    column
        .typed::<T>()
        .write_batch(&[], Some(&vec![0; rows]), None)?;
    column.close()
}

fn too_few() -> ParquetError {
    ParquetError::General("too few columns".into())
}

/// The texts of a table in the library's form, each converted once.
struct ParquetTextCache<'n> {
    names: &'n EventTextTable,
    made: Vec<Option<ByteArray>>,
}

impl<'n> ParquetTextCache<'n> {
    fn from_names(names: &'n EventTextTable) -> Self {
        Self {
            names,
            made: vec![None; names.len()],
        }
    }

    /// The text of that number; `None` when no text has the number.
    fn get(&mut self, name: u32) -> Option<ByteArray> {
        let made = self.made.get_mut(name as usize)?;
        Some(
            made.get_or_insert_with(|| self.names.text(name).into())
                .clone(),
        )
    }
}
