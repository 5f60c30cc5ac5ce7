//! Writes the table of [`crate::result_columns`] to `results.parquet` and reads the exact records back.
//!
//! It handles types and levels of Parquet; it does not know what a column means.

use crate::Error;
use crate::checksums::{CREATED_BY, RowGroupChecksums, SharedFile, StoredChecksums, Summed};
use crate::replace::replace_inside;
use crate::result_columns::{COLUMNS, Get, RECORD, ResultColumn, ResultRow};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as Parquet};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Writes all records, completely or not at all; the plan gives the texts of measurements.
///
/// # Errors
/// When the file cannot be written, or a record has a value that could not be read back.
pub fn write(path: &Path, plan: Option<&Plan>, records: &[RunRecord]) -> Result<(), Error> {
    records.iter().try_for_each(readable)?;
    let rows: Vec<ResultRow<'_>> = records
        .iter()
        .map(|record| ResultRow::new(plan, record))
        .collect();
    replace_inside(path, |file| {
        write_rows(file, COLUMNS, &rows).map_err(|cause| Error::writing(path, &cause))
    })
}

/// Reads all records back, exactly as they were written.
///
/// # Errors
/// When the file cannot be read or was not written by [`write()`].
pub fn read(path: &Path) -> Result<Vec<RunRecord>, Error> {
    let texts = read_texts(path).map_err(|cause| Error::reading(path, &cause))?;
    let parse = |text: &ByteArray| {
        serde_json::from_slice(text.data()).map_err(|cause| Error::reading(path, &cause))
    };
    texts.iter().map(parse).collect()
}

/// Refuses a record that could be written but not read back: JSON has neither NaN nor infinity.
pub(crate) fn readable(record: &RunRecord) -> Result<(), Error> {
    let Some(name) = record.not_finite() else {
        return Ok(());
    };
    let (measurement, part, run) = (record.measurement, record.part, record.run);
    let message = format!(
        "the record of measurement {measurement}, part {part}, run {run} was not saved: {name} is not a finite number"
    );
    Err(Error::new(
        message,
        "this is a bug in stackline (please report it); the other records are kept",
    ))
}

fn write_rows(file: &mut File, columns: &[ResultColumn], rows: &[ResultRow<'_>]) -> Parquet<()> {
    let mut writer = SerializedFileWriter::new(
        Summed::new(file),
        Arc::new(schema(columns)?),
        Arc::new(properties()),
    )?;
    let mut sums = RowGroupChecksums::begin(&mut writer)?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        let missing = || ParquetError::General(format!("no column {}", column.name));
        let mut to = group.next_column()?.ok_or_else(missing)?;
        write_column(&mut to, column, rows)?;
        to.close()?;
    }
    group.close()?;
    sums.add(&mut writer)?;
    sums.keep(&mut writer);
    writer.close()?;
    Ok(())
}

fn write_column(
    to: &mut SerializedColumnWriter<'_>,
    column: &ResultColumn,
    rows: &[ResultRow<'_>],
) -> Parquet<()> {
    match column.get {
        Get::Text(get) => write_values::<ByteArrayType>(
            to,
            rows.iter().map(|r| get(r).map(|s| s.as_str().into())),
        ),
        Get::Int(get) => write_values::<Int64Type>(to, rows.iter().map(get)),
        Get::Real(get) => write_values::<DoubleType>(to, rows.iter().map(get)),
        Get::Flag(get) => write_values::<BoolType>(to, rows.iter().map(get)),
        Get::Ints(get) => write_lists(to, rows.iter().map(get)),
    }
}

/// A nullable column: level 1 is a value, level 0 is null.
fn write_values<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Parquet<()> {
    let values: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    to.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}

/// A repeated column: definition level 0 is an empty list; repetition level 0 begins a row.
fn write_lists(
    to: &mut SerializedColumnWriter<'_>,
    lists: impl Iterator<Item = Vec<i64>>,
) -> Parquet<()> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for list in lists {
        defined.extend(std::iter::repeat_n(1, list.len()));
        repeated.extend((0..list.len()).map(|index| i16::from(index > 0)));
        if list.is_empty() {
            defined.push(0);
            repeated.push(0);
        }
        values.extend(list);
    }
    to.typed::<Int64Type>()
        .write_batch(&values, Some(&defined), Some(&repeated))?;
    Ok(())
}

fn schema(columns: &[ResultColumn]) -> Parquet<Type> {
    let fields: Parquet<Vec<Arc<Type>>> = columns
        .iter()
        .map(|column| field(column).map(Arc::new))
        .collect();
    Type::group_type_builder("run").with_fields(fields?).build()
}

fn field(column: &ResultColumn) -> Parquet<Type> {
    let (physical, logical, repetition) = match column.get {
        Get::Text(_) => (
            Physical::BYTE_ARRAY,
            Some(LogicalType::String),
            Repetition::OPTIONAL,
        ),
        Get::Int(_) => (Physical::INT64, None, Repetition::OPTIONAL),
        Get::Real(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        Get::Flag(_) => (Physical::BOOLEAN, None, Repetition::OPTIONAL),
        Get::Ints(_) => (Physical::INT64, None, Repetition::REPEATED),
    };
    let builder = Type::primitive_type_builder(column.name, physical);
    builder
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

/// The record differs in every row, so a dictionary or statistics of it would only take space.
fn properties() -> WriterProperties {
    let record = ColumnPath::from(RECORD);
    WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_column_dictionary_enabled(record.clone(), false)
        .set_column_statistics_enabled(record, EnabledStatistics::None)
        .build()
}

fn read_texts(path: &Path) -> Parquet<Vec<ByteArray>> {
    let file = SharedFile::open(path)?;
    let bytes = file.clone();
    let reader = SerializedFileReader::new(file)?;
    let sums = StoredChecksums::from_metadata(reader.metadata())?;
    let columns = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .to_vec();
    let index = columns.iter().position(|column| column.name() == RECORD);
    let index = index.ok_or_else(|| ParquetError::General(format!("it has no column {RECORD}")))?;
    let mut texts = Vec::new();
    for group in 0..reader.num_row_groups() {
        sums.check(&bytes, reader.metadata(), group)?;
        let group = reader.get_row_group(group)?;
        read_group(
            get_typed_column_reader(group.get_column_reader(index)?),
            &mut texts,
        )?;
    }
    Ok(texts)
}

fn read_group(
    mut column: ColumnReaderImpl<ByteArrayType>,
    into: &mut Vec<ByteArray>,
) -> Parquet<()> {
    const AT_ONCE: usize = 1024;
    loop {
        let mut levels = Vec::new();
        let (records, ..) = column.read_records(AT_ONCE, Some(&mut levels), None, into)?;
        if records == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
