//! A table of events to a Parquet file and back, batch by batch.

use crate::{Error, files};
use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result as Parquet};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use stackline_events::Table;
use stackline_events::table::{Column, FIELDS};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Events of one row group.
const GROUP: usize = 1 << 20;

/// Writes all events, sorted by time, whole or not at all. Returns how many.
///
/// # Errors
/// When the file cannot be written.
pub fn write_table(path: &Path, table: &Table) -> Result<u64, Error> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|cause| Error::writing(path, &cause))?;
    }
    let rows = table.by_time();
    files::replace(path, |file| write(file, table, &rows).map_err(|cause| Error::writing(path, &cause)))?;
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
        if table.is_empty() {
            table = batch;
        } else {
            (0..batch.len()).for_each(|row| table.push_event(&batch.event(row)));
        }
    }
    Ok(table)
}

/// Which columns are read; time, keyword and host always are.
#[derive(Clone, Debug)]
pub struct Wanted {
    fields: Vec<bool>,
    more: bool,
}

impl Wanted {
    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Self { fields: vec![true; FIELDS], more: true }
    }

    /// These data fields, from 0.
    #[must_use]
    pub fn fields(wanted: &[usize]) -> Self {
        Self { fields: (0..FIELDS).map(|field| wanted.contains(&field)).collect(), more: false }
    }
}

/// Reads a file of events a row group at a time.
pub struct Reader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    columns: BTreeMap<String, usize>,
    wanted: Wanted,
    next: usize,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).field("next", &self.next).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens it.
    ///
    /// # Errors
    /// When it cannot be read or is no Parquet.
    pub fn open(path: &Path, wanted: &Wanted) -> Result<Self, Error> {
        let failed = |cause: &dyn std::fmt::Display| Error::reading(path, &cause);
        let file = File::open(path).map_err(|cause| failed(&cause))?;
        let file = SerializedFileReader::new(file).map_err(|cause| failed(&cause))?;
        let columns = file.metadata().file_metadata().schema_descr().columns();
        let columns = columns.iter().enumerate().map(|(index, column)| (column.name().to_owned(), index)).collect();
        Ok(Self { path: path.to_owned(), file, columns, wanted: wanted.clone(), next: 0 })
    }

    /// The next events, in the order of the file; `None` behind the last.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn next_batch(&mut self) -> Result<Option<Table>, Error> {
        if self.next >= self.file.num_row_groups() {
            return Ok(None);
        }
        self.next += 1;
        self.batch(self.next - 1).map(Some).map_err(|cause| Error::reading(&self.path, &cause))
    }

    fn batch(&self, group: usize) -> Parquet<Table> {
        let group = self.file.get_row_group(group)?;
        let mut table = Table {
            at_ns: self.numbers(&*group, "at_ns")?.into_iter().map(|(_, at)| at as u64).collect(),
            ..Table::default()
        };
        table.keyword = self.names(&*group, "keyword", &mut table)?;
        table.host = self.names(&*group, "host", &mut table)?;
        for field in 0..FIELDS {
            let (n, t) = (format!("n{}", field + 1), format!("t{}", field + 1));
            if !self.columns.contains_key(&n) {
                break;
            }
            let mut column = Column::default();
            if self.wanted.fields[field] {
                self.data(&*group, (&n, &t), &mut column, &mut table)?;
            }
            table.data.push(column);
        }
        if self.wanted.more && self.columns.contains_key("more") {
            let more = self.texts(&*group, "more")?.into_iter();
            table.more =
                more.map(|(row, text)| Ok((row as u32, text_of(&text)?.to_owned()))).collect::<Parquet<_>>()?;
        }
        Ok(table)
    }

    fn data(
        &self,
        group: &dyn RowGroupReader,
        names: (&str, &str),
        column: &mut Column,
        table: &mut Table,
    ) -> Parquet<()> {
        let rows = table.at_ns.len();
        (column.numbers, column.texts) = (vec![0; rows], vec![Column::ABSENT; rows]);
        for (row, number) in self.numbers(group, names.0)? {
            (column.numbers[row], column.texts[row]) = (number, Column::NUMBER);
        }
        for (row, text) in self.texts(group, names.1)? {
            column.texts[row] = table.names.number(text_of(&text)?);
        }
        Ok(())
    }

    fn names(&self, group: &dyn RowGroupReader, name: &str, table: &mut Table) -> Parquet<Vec<u32>> {
        let texts = self.texts(group, name)?;
        texts.iter().map(|(_, text)| Ok(table.names.number(text_of(text)?))).collect()
    }

    fn numbers(&self, group: &dyn RowGroupReader, name: &str) -> Parquet<Vec<(usize, i64)>> {
        self.values::<Int64Type>(group, name)
    }

    fn texts(&self, group: &dyn RowGroupReader, name: &str) -> Parquet<Vec<(usize, ByteArray)>> {
        self.values::<ByteArrayType>(group, name)
    }

    /// Every value that is there, with its row.
    fn values<T: DataType>(&self, group: &dyn RowGroupReader, name: &str) -> Parquet<Vec<(usize, T::T)>> {
        let index = self.columns.get(name).ok_or_else(|| ParquetError::General(format!("it has no column {name}")))?;
        let column = group.metadata().column(*index);
        if column.column_type() != T::get_physical_type() {
            return Err(ParquetError::General(format!("its column {name} is of another type")));
        }
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let required = column.column_descr().max_def_level() == 0;
        let mut reader: ColumnReaderImpl<T> = get_typed_column_reader(group.get_column_reader(*index)?);
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        loop {
            let (read, ..) = reader.read_records(rows.max(1), Some(&mut levels), None, &mut values)?;
            if read == 0 {
                break;
            }
        }
        if required {
            return Ok(values.into_iter().enumerate().collect());
        }
        let present = levels.iter().enumerate().filter(|(_, level)| **level > 0).map(|(row, _)| row);
        Ok(present.zip(values).collect())
    }
}

fn text_of(bytes: &ByteArray) -> Parquet<&str> {
    bytes.as_utf8()
}

fn write(file: &mut File, table: &Table, rows: &[u32]) -> Parquet<()> {
    let fields = table.data.len();
    let more = !table.more.is_empty();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema(fields, more)?), Arc::new(properties(fields)))?;
    for rows in rows.chunks(GROUP) {
        let mut group = writer.next_row_group()?;
        let whole = |row: &u32| *row as usize;
        put::<Int64Type>(&mut group, rows.iter().map(|row| Some(table.at_ns[whole(row)] as i64)), true)?;
        put::<ByteArrayType>(&mut group, rows.iter().map(|row| Some(table.keyword(whole(row)).into())), true)?;
        put::<ByteArrayType>(&mut group, rows.iter().map(|row| Some(table.host(whole(row)).into())), true)?;
        for column in &table.data {
            put::<Int64Type>(&mut group, rows.iter().map(|row| column.number(whole(row))), false)?;
            let texts = rows.iter().map(|row| column.text(whole(row)).map(|text| table.names.text(text).into()));
            put::<ByteArrayType>(&mut group, texts, false)?;
        }
        if more {
            let text = |row: &u32| table.more.binary_search_by_key(row, |(row, _)| *row).ok();
            put::<ByteArrayType>(
                &mut group,
                rows.iter().map(|row| text(row).map(|at| table.more[at].1.as_str().into())),
                false,
            )?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut File>,
    values: impl Iterator<Item = Option<T::T>>,
    required: bool,
) -> Parquet<()> {
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("there is no column left".into()))?;
    let values: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, (!required).then_some(&levels), None)?;
    column.close()
}

fn schema(fields: usize, more: bool) -> Parquet<Type> {
    let number = |name: &str, repetition| {
        Type::primitive_type_builder(name, Physical::INT64).with_repetition(repetition).build()
    };
    let text = |name: &str, repetition| {
        let builder = Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(repetition);
        builder.with_logical_type(Some(LogicalType::String)).build()
    };
    let (required, optional) = (Repetition::REQUIRED, Repetition::OPTIONAL);
    let mut columns = vec![number("at_ns", required)?, text("keyword", required)?, text("host", required)?];
    for field in 1..=fields {
        columns.extend([number(&format!("n{field}"), optional)?, text(&format!("t{field}"), optional)?]);
    }
    if more {
        columns.push(text("more", optional)?);
    }
    Type::group_type_builder("event").with_fields(columns.into_iter().map(Arc::new).collect()).build()
}

fn properties(fields: usize) -> WriterProperties {
    let numbers = (1..=fields).map(|field| format!("n{field}")).chain(["at_ns".to_owned()]);
    let builder =
        WriterProperties::builder().set_created_by(concat!("stackline ", env!("CARGO_PKG_VERSION")).to_owned());
    let builder = numbers.fold(builder, |builder, name| {
        let path = ColumnPath::from(name);
        builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
    });
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stackline_events::Event;

    proptest! {
        #[test]
        fn a_file_reads_back_sorted(events in proptest::collection::vec(("[A-C]", 0_u64..50, proptest::collection::vec("[-0-9a-c;% ]{0,4}", 0..20)), 0..40)) {
            let mut table = Table::default();
            for (keyword, at_ns, data) in events {
                table.push_event(&Event { keyword, host: "khons".into(), at_ns, data });
            }
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("khons.parquet");
            prop_assert_eq!(write_table(&path, &table).unwrap(), table.len() as u64);
            let again = read_table(&path).unwrap();
            let expected: Vec<Event> = table.by_time().iter().map(|row| table.event(*row as usize)).collect();
            let read: Vec<Event> = (0..again.len()).map(|row| again.event(row)).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
