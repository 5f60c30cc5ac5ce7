//! One column of one row group, encoded: numbers as packed differences, texts as numbers of a dictionary, rows without a
//! value as one bit. The Parquet library's own column writer hashes every text and looks at every row of a column that is
//! empty; here a text is a number already, and an empty column takes one look.

use super::bits::width_of;
use super::{PAGE, delta, hybrid};
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::Result as Parquet;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use stackline_events::table::Names;
use std::io::Write;

/// No text in a row.
pub(super) const NONE: u32 = u32::MAX;
/// A dictionary is kept when it has at most so many texts, or each is used twice on average.
const FEW: usize = 1 << 10;
/// Bounds of texts are told when these are no longer.
const BOUND: usize = 64;

/// A column of a row group on its way into bytes.
pub(super) struct Chunk {
    column: ColumnDescPtr,
    rows: usize,
    bytes: TrackedWrite<Vec<u8>>,
    /// Where the pages with data begin, once there is one.
    data: Option<usize>,
    encodings: Vec<Encoding>,
}

impl Chunk {
    fn of(column: ColumnDescPtr, rows: usize) -> Self {
        Self { column, rows, bytes: TrackedWrite::new(Vec::new()), data: None, encodings: Vec::new() }
    }

    /// Adds a page of `rows` rows; `levels` says which have a value, where some have and some have not.
    fn page(&mut self, encoding: Encoding, levels: &[u32], present: usize, values: &[u8]) -> Parquet<()> {
        let rows = levels.len();
        let mut body = Vec::with_capacity(values.len() + 16);
        if self.column.max_def_level() > 0 {
            body.extend_from_slice(&[0; 4]);
            match present {
                0 => hybrid::encode_same(0, rows, 1, &mut body),
                all if all == rows => hybrid::encode_same(1, rows, 1, &mut body),
                _ => hybrid::encode(levels, 1, &mut body),
            }
            let length = (body.len() - 4) as u32;
            body[..4].copy_from_slice(&length.to_le_bytes());
        }
        body.extend_from_slice(values);
        self.data.get_or_insert(self.bytes.bytes_written());
        self.put(Page::DataPage {
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
            buf: body.into(),
        })
    }

    fn put(&mut self, page: Page) -> Parquet<()> {
        if !self.encodings.contains(&page.encoding()) {
            self.encodings.push(page.encoding());
        }
        let length = page.buffer().len();
        SerializedPageWriter::new(&mut self.bytes).write_page(CompressedPage::new(page, length)).map(drop)
    }

    /// Adds it to a row group.
    fn append<W: Write + Send>(self, to: &mut SerializedRowGroupWriter<'_, W>, statistics: Statistics) -> Parquet<()> {
        let bytes = self.bytes.into_inner()?;
        let data = self.data.unwrap_or(0);
        let mut encodings = self.encodings;
        encodings.push(Encoding::RLE);
        let metadata = ColumnChunkMetaData::builder(self.column)
            .set_encodings(encodings)
            .set_compression(Compression::UNCOMPRESSED)
            .set_num_values(self.rows as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(bytes.len() as i64)
            .set_data_page_offset(data as i64)
            .set_dictionary_page_offset((data > 0).then_some(0))
            .set_statistics(statistics)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        to.append_column(&bytes::Bytes::from(bytes), close)
    }
}

/// Writes a column in which no row has a value.
pub(super) fn empty<W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    column: ColumnDescPtr,
    rows: usize,
) -> Parquet<()> {
    let nulls = Some(rows as u64);
    let statistics = match column.physical_type() {
        Type::INT64 => Statistics::int64(None, None, None, nulls, false),
        _ => Statistics::byte_array(None, None, None, nulls, false),
    };
    let mut chunk = Chunk::of(column, rows);
    let levels = vec![0; PAGE.min(rows)];
    for begin in (0..rows).step_by(PAGE) {
        chunk.page(Encoding::PLAIN, &levels[..PAGE.min(rows - begin)], 0, &[])?;
    }
    chunk.append(to, statistics)
}

/// Writes numbers: `number` gives that of a row, where it has one.
pub(super) fn numbers<W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    column: ColumnDescPtr,
    rows: &[u32],
    number: impl Fn(usize) -> Option<i64>,
) -> Parquet<()> {
    let mut chunk = Chunk::of(column, rows.len());
    let (mut values, mut levels, mut encoded) = (Vec::with_capacity(PAGE), Vec::with_capacity(PAGE), Vec::new());
    let (mut least, mut most, mut nulls) = (i64::MAX, i64::MIN, 0);
    for rows in rows.chunks(PAGE) {
        values.clear();
        levels.clear();
        encoded.clear();
        for &row in rows {
            let number = number(row as usize);
            levels.push(u32::from(number.is_some()));
            values.extend(number);
        }
        for value in &values {
            (least, most) = (least.min(*value), most.max(*value));
        }
        nulls += rows.len() - values.len();
        delta::encode(&values, &mut encoded);
        chunk.page(Encoding::DELTA_BINARY_PACKED, &levels, values.len(), &encoded)?;
    }
    let bounds = (least <= most).then_some((least, most)).unzip();
    chunk.append(to, Statistics::int64(bounds.0, bounds.1, None, Some(nulls as u64), false))
}

/// Writes texts: `text` gives the number in `names` of that of a row, or [`NONE`].
pub(super) fn texts<W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    column: ColumnDescPtr,
    rows: &[u32],
    names: &Names,
    text: impl Fn(usize) -> u32,
) -> Parquet<()> {
    // Texts get numbers of this dictionary in the order they are met.
    let mut numbers = vec![NONE; names.len()];
    let mut dictionary: Vec<u32> = Vec::new();
    let mut present = 0;
    for &row in rows {
        let name = text(row as usize);
        if let Some(number) = numbers.get_mut(name as usize) {
            present += 1;
            if *number == NONE {
                *number = dictionary.len() as u32;
                dictionary.push(name);
            }
        }
    }
    let mut chunk = Chunk::of(column, rows.len());
    let kept = dictionary.len() <= FEW || dictionary.len() * 2 <= present;
    let width = width_of(dictionary.len().saturating_sub(1) as u64).max(1);
    if kept && present > 0 {
        let mut buf = Vec::new();
        dictionary.iter().for_each(|name| put_plain(names.text(*name), &mut buf));
        let num_values = dictionary.len() as u32;
        chunk.put(Page::DictionaryPage { buf: buf.into(), num_values, encoding: Encoding::PLAIN, is_sorted: false })?;
    }
    let (mut indices, mut levels, mut encoded) = (Vec::with_capacity(PAGE), Vec::with_capacity(PAGE), Vec::new());
    for rows in rows.chunks(PAGE) {
        indices.clear();
        levels.clear();
        encoded.clear();
        for &row in rows {
            let number = numbers.get(text(row as usize) as usize).copied();
            levels.push(u32::from(number.is_some()));
            indices.extend(number);
        }
        let encoding = if kept && present > 0 {
            encoded.push(width as u8);
            hybrid::encode(&indices, width, &mut encoded);
            Encoding::RLE_DICTIONARY
        } else {
            indices.iter().for_each(|index| put_plain(names.text(dictionary[*index as usize]), &mut encoded));
            Encoding::PLAIN
        };
        chunk.page(encoding, &levels, indices.len(), &encoded)?;
    }
    let bounds = bounds(names, &dictionary).unzip();
    let nulls = Some((rows.len() - present) as u64);
    chunk.append(to, Statistics::byte_array(bounds.0, bounds.1, None, nulls, false))
}

fn put_plain(text: &str, to: &mut Vec<u8>) {
    to.extend_from_slice(&(text.len() as u32).to_le_bytes());
    to.extend_from_slice(text.as_bytes());
}

/// The first and the last of the texts, where both are short.
fn bounds(names: &Names, dictionary: &[u32]) -> Option<(ByteArray, ByteArray)> {
    let texts = || dictionary.iter().map(|name| names.text(*name));
    let (first, last) = (texts().min()?, texts().max()?);
    (first.len() <= BOUND && last.len() <= BOUND).then(|| (first.into(), last.into()))
}
