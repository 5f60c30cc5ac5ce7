//! Reads a file of events in batches, only the wanted columns.

use super::pages::{ColumnTexts, Pages};
use super::schema::{AT, HOST, KEYWORD, MORE, PAGE, number_column, text_column};
use crate::Error;
use crate::checksums::{SharedFile, StoredChecksums};
use parquet::basic::{Repetition, Type as Physical};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as Parquet};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, Type};
use stackline_events::EventTable;
use stackline_events::table::{EventColumn, EventTextTable, FIELDS};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which columns are read; time, keyword and host always are.
#[derive(Clone, Debug)]
pub struct EventColumnSelection {
    /// Whether each data field is read, by its index.
    fields: Vec<bool>,
    /// Whether the column `more` is read.
    more: bool,
}

impl EventColumnSelection {
    /// All columns.
    #[must_use]
    pub fn all() -> Self {
        Self {
            fields: vec![true; FIELDS],
            more: true,
        }
    }

    /// The data fields with these indices, counted from 0.
    #[must_use]
    pub fn fields(wanted: &[usize]) -> Self {
        Self {
            fields: (0..FIELDS).map(|field| wanted.contains(&field)).collect(),
            more: false,
        }
    }
}

/// Reads a file of events batch by batch. If the file is replaced meanwhile, reading continues with the old contents.
pub struct EventFileReader {
    path: PathBuf,
    /// The same file, for its checksums.
    bytes: SharedFile,
    sums: StoredChecksums,
    file: SerializedFileReader<SharedFile>,
    /// Index of each column by name.
    columns: BTreeMap<String, usize>,
    wanted: EventColumnSelection,
    /// Index of the next row group.
    next: usize,
    /// The row group being read.
    group: Option<EventRowGroup>,
}

/// The row group that is being read.
struct EventRowGroup {
    /// Rows that have not been read yet.
    left: usize,
    at: ParquetColumnValues<Int64Type>,
    keyword: ParquetTextColumn,
    host: ParquetTextColumn,
    /// For each data field, its column of numbers and its column of texts, where they are read and not empty.
    fields: Vec<(
        Option<ParquetColumnValues<Int64Type>>,
        Option<ParquetTextColumn>,
    )>,
    more: Option<ParquetTextColumn>,
}

impl EventFileReader {
    /// Opens a file of events for reading the wanted columns.
    ///
    /// # Errors
    /// When it cannot be read or is not a Parquet file.
    pub fn open(path: &Path, wanted: &EventColumnSelection) -> Result<Self, Error> {
        let failed = |cause: &dyn std::fmt::Display| Error::reading_events(path, cause);
        let file = SharedFile::open(path).map_err(|cause| Error::reading(path, &cause))?;
        let bytes = file.clone();
        let file = SerializedFileReader::new(file).map_err(|cause| failed(&cause))?;
        let sums =
            StoredChecksums::from_metadata(file.metadata()).map_err(|cause| failed(&cause))?;
        let columns = file.metadata().file_metadata().schema_descr().columns();
        let columns = columns
            .iter()
            .enumerate()
            .map(|(index, column)| (column.name().to_owned(), index))
            .collect();
        Ok(Self {
            path: path.to_owned(),
            bytes,
            sums,
            file,
            columns,
            wanted: wanted.clone(),
            next: 0,
            group: None,
        })
    }

    /// Number of events in the file.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// The times of the first and the last event, by the statistics of the file, ns; (0, `u64::MAX`) when they are
    /// missing.
    #[must_use]
    pub fn span_ns(&self) -> (u64, u64) {
        let whole = (0, u64::MAX);
        let Some(&at) = self.columns.get(AT) else {
            return whole;
        };
        let mut span = (u64::MAX, 0);
        for group in self.file.metadata().row_groups() {
            let Some(Statistics::Int64(times)) = group.column(at).statistics() else {
                return whole;
            };
            let (first, last) = (
                times.min_opt().copied().map(u64::try_from),
                times.max_opt().copied().map(u64::try_from),
            );
            // Times before 1970 are not valid.
            let (Some(Ok(first)), Some(Ok(last))) = (first, last) else {
                return whole;
            };
            span = (span.0.min(first), span.1.max(last));
        }
        if span.0 > span.1 { whole } else { span }
    }

    /// The next batch of events in the order of the file, at most 65536; `None` after the last.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn next_batch(&mut self) -> Result<Option<EventTable>, Error> {
        let mut table = EventTable::default();
        Ok(self.next_into(&mut table)?.then_some(table))
    }

    /// Like [`Self::next_batch`], into a table whose memory is reused; false after the last batch.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn next_into(&mut self, table: &mut EventTable) -> Result<bool, Error> {
        table.clear();
        self.batch(table)
            .map_err(|cause| Error::reading_events(&self.path, &cause))
    }

    fn batch(&mut self, table: &mut EventTable) -> Parquet<bool> {
        loop {
            if let Some(group) = self.group.as_mut().filter(|group| group.left > 0) {
                return group.batch(table).map(|()| true);
            }
            if self.next >= self.file.num_row_groups() {
                return Ok(false);
            }
            self.next += 1;
            self.group = Some(self.begin(self.next - 1)?);
        }
    }

    fn begin(&self, group: usize) -> Parquet<EventRowGroup> {
        self.sums.check(&self.bytes, self.file.metadata(), group)?;
        let group = &*self.file.get_row_group(group)?;
        let mut fields = Vec::new();
        for field in 0..FIELDS {
            let (n, t) = (number_column(field), text_column(field));
            if !self.columns.contains_key(&n) && !self.columns.contains_key(&t) {
                break;
            }
            let wanted = self.wanted.fields[field];
            let numbers = if wanted {
                self.numbers(group, &n)?
            } else {
                None
            };
            fields.push((numbers, if wanted { self.text(group, &t)? } else { None }));
        }
        // Fields behind the last one with a column need no column in the table.
        let last = fields
            .iter()
            .rposition(|(numbers, texts)| numbers.is_some() || texts.is_some());
        fields.truncate(last.map_or(0, |last| last + 1));
        Ok(EventRowGroup {
            left: usize::try_from(group.metadata().num_rows()).unwrap_or(0),
            at: self.numbers(group, AT)?.ok_or_else(|| missing(AT))?,
            keyword: self.text(group, KEYWORD)?.ok_or_else(|| missing(KEYWORD))?,
            host: self.text(group, HOST)?.ok_or_else(|| missing(HOST))?,
            fields,
            more: if self.wanted.more {
                self.text(group, MORE)?
            } else {
                None
            },
        })
    }

    fn numbers(
        &self,
        group: &dyn RowGroupReader,
        name: &str,
    ) -> Parquet<Option<ParquetColumnValues<Int64Type>>> {
        let Some((at, column)) = self.column(group, name, Physical::INT64)? else {
            return Ok(None);
        };
        let pages = Pages::new(
            group.get_column_page_reader(at)?,
            column.max_def_level() > 0,
            None,
        );
        Ok(Some(ParquetColumnValues::new(column, pages)))
    }

    fn text(&self, group: &dyn RowGroupReader, name: &str) -> Parquet<Option<ParquetTextColumn>> {
        let Some((at, column)) = self.column(group, name, Physical::BYTE_ARRAY)? else {
            return Ok(None);
        };
        let optional = column.max_def_level() > 0;
        let texts = ColumnTexts::default();
        let pages = Pages::new(
            group.get_column_page_reader(at)?,
            optional,
            Some(texts.clone()),
        );
        let repetition = if optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let number = Type::primitive_type_builder(name, Physical::INT32)
            .with_repetition(repetition)
            .build()?;
        let path = column.path().clone();
        let column = ColumnDescriptor::new(Arc::new(number), column.max_def_level(), 0, path);
        Ok(Some(ParquetTextColumn {
            values: ParquetColumnValues::new(Arc::new(column), pages),
            texts,
            names: Vec::new(),
        }))
    }

    /// The index and the type of a column; `None` when the file lacks it or it has no values.
    fn column(
        &self,
        group: &dyn RowGroupReader,
        name: &str,
        kind: Physical,
    ) -> Parquet<Option<(usize, ColumnDescPtr)>> {
        let Some(&index) = self.columns.get(name) else {
            return Ok(None);
        };
        let column = group.metadata().column(index);
        if column.column_type() != kind {
            return Err(ParquetError::General(format!(
                "its column {name} has the wrong type"
            )));
        }
        let described = column.column_descr_ptr();
        if described.max_rep_level() > 0 || described.max_def_level() > 1 {
            return Err(ParquetError::General(format!(
                "its column {name} is a list"
            )));
        }
        // The library assumes this without checking.
        let begin = column
            .dictionary_page_offset()
            .unwrap_or_else(|| column.data_page_offset());
        if begin < 0 || column.compressed_size() < 0 || group.metadata().num_rows() < 0 {
            return Err(ParquetError::General(format!(
                "its column {name} has invalid bounds"
            )));
        }
        let nulls = column
            .statistics()
            .and_then(|statistics| statistics.null_count_opt());
        let nothing = nulls.is_some_and(|nulls| {
            i64::try_from(nulls).is_ok_and(|nulls| nulls == column.num_values())
        });
        Ok((!nothing).then_some((index, described)))
    }
}

fn missing(name: &str) -> ParquetError {
    ParquetError::General(format!("its column {name} is missing or empty"))
}

impl EventRowGroup {
    /// Reads the next rows into an empty table.
    fn batch(&mut self, table: &mut EventTable) -> Parquet<()> {
        let rows = self.left.min(PAGE);
        table.at_ns.reserve(rows);
        self.at.read(rows)?;
        self.at
            .each(|_, times| table.at_ns.extend(times.iter().map(|at| *at as u64)));
        let mut names = EventTextTable::default();
        self.keyword
            .required(rows, &mut table.keyword, &mut names)?;
        self.host.required(rows, &mut table.host, &mut names)?;
        table.data.resize(self.fields.len(), EventColumn::default());
        for ((numbers, texts), column) in self.fields.iter_mut().zip(&mut table.data) {
            if numbers.is_some() || texts.is_some() {
                column.numbers.resize(rows, 0);
                column.texts.resize(rows, EventColumn::ABSENT);
            }
            if let Some(numbers) = numbers {
                numbers.read(rows)?;
                numbers.each(|row, values| {
                    column.numbers[row..row + values.len()].copy_from_slice(values);
                    column.texts[row..row + values.len()].fill(EventColumn::NUMBER);
                });
            }
            if let Some(texts) = texts {
                texts.take(rows, &mut names, |row, text| column.texts[row] = text)?;
            }
        }
        if let Some(more) = &mut self.more {
            let mut texts = Vec::new();
            let mut own = EventTextTable::default();
            more.take(rows, &mut own, |row, text| texts.push((row as u32, text)))?;
            table.more = texts
                .into_iter()
                .map(|(row, text)| (row, own.text(text).to_owned()))
                .collect();
        }
        table.names = names;
        self.left -= rows;
        Ok(())
    }
}

/// A column of a row group.
struct ParquetColumnValues<T: DataType> {
    from: ColumnReaderImpl<T>,
    /// Definition levels of the rows read last: 1 where a row has a value, 0 where it is null.
    levels: Vec<i16>,
    /// The values of these rows, without nulls.
    values: Vec<T::T>,
}

impl<T: DataType> ParquetColumnValues<T>
where
    T::T: Copy,
{
    fn new(column: ColumnDescPtr, pages: Pages) -> Self {
        Self {
            from: ColumnReaderImpl::new(column, Box::new(pages)),
            levels: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Reads the next rows; an error when there are fewer.
    fn read(&mut self, rows: usize) -> Parquet<()> {
        self.levels.clear();
        self.values.clear();
        let (read, ..) =
            self.from
                .read_records(rows, Some(&mut self.levels), None, &mut self.values)?;
        if read < rows {
            Err(ParquetError::General("it ends before its last row".into()))
        } else {
            Ok(())
        }
    }

    /// Passes every stretch of rows that have values to `each`: its first row, and the values.
    fn each(&self, mut each: impl FnMut(usize, &[T::T])) {
        if self.levels.len() <= self.values.len() {
            return each(0, &self.values);
        }
        let (mut row, mut values) = (0, &self.values[..]);
        for stretch in self.levels.chunk_by(|one, other| one == other) {
            if stretch[0] > 0 {
                let (some, rest) = values.split_at(stretch.len());
                each(row, some);
                values = rest;
            }
            row += stretch.len();
        }
    }
}

/// A column of texts.
struct ParquetTextColumn {
    /// The column as numbers of texts.
    values: ParquetColumnValues<Int32Type>,
    texts: ColumnTexts,
    /// The number of each text in the current batch's `names`; `u32::MAX` until it is looked up.
    names: Vec<u32>,
}

impl ParquetTextColumn {
    /// Reads the next rows. `each` gets every row that has a text, with the text's number in `names`, the batch's
    /// table of texts.
    fn take(
        &mut self,
        rows: usize,
        names: &mut EventTextTable,
        mut each: impl FnMut(usize, u32),
    ) -> Parquet<()> {
        self.texts.lock().forget();
        self.values.read(rows)?;
        let texts = self.texts.lock();
        self.names.clear();
        self.names.resize(texts.len(), u32::MAX);
        self.values.each(|row, numbers| {
            for (number, row) in numbers.iter().zip(row..) {
                let place = texts.place(*number);
                let name = &mut self.names[place];
                if *name == u32::MAX {
                    *name = names.number(texts.text(place));
                }
                each(row, *name);
            }
        });
        Ok(())
    }

    /// Reads the next rows of a column in which every row must have a text.
    fn required(
        &mut self,
        rows: usize,
        to: &mut Vec<u32>,
        names: &mut EventTextTable,
    ) -> Parquet<()> {
        to.reserve(rows);
        self.take(rows, names, |_, text| to.push(text))?;
        if to.len() == rows {
            Ok(())
        } else {
            Err(ParquetError::General(
                "an event has no keyword or no host".into(),
            ))
        }
    }
}
