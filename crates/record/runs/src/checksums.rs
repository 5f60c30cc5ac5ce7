//! Checksums of a Parquet file, because the library writes none for its pages. They are stored in the footer as a
//! key-value entry: one for what the footer says about all columns, and one for the bytes of each row group. Readers
//! that do not know the entry are not affected.
//!
//! A file without the entry is not checked, unless its `created_by` says that it has checksums ([`CREATED_BY`]).

use crate::files;
use bytes::Bytes;
use crc32fast::Hasher;
use parquet::errors::{ParquetError, Result as Parquet};
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedFileWriter;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The `created_by` text of files with checksums. It makes a missing checksum entry detectable as damage.
pub(crate) const CREATED_BY: &str = concat!("stackline ", env!("CARGO_PKG_VERSION"), " (crc32)");
/// The part of `created_by` that says that a file has checksums.
const SUMMED: &str = "(crc32)";
/// The key of the checksum entry in the footer.
const KEY: &str = "stackline.crc32";

/// A file that is read at several positions through one descriptor.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile(Arc<File>);

impl SharedFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        files::open(path).map(|file| Self(Arc::new(file)))
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.0.metadata().map_or(0, |about| about.len())
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<SharedFileReader>;

    fn get_read(&self, start: u64) -> Parquet<Self::T> {
        Ok(BufReader::new(SharedFileReader {
            file: self.clone(),
            at: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Parquet<Bytes> {
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > self.len())
        {
            return Err(ParquetError::EOF("it is truncated".into()));
        }
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A reader of a [`SharedFile`] from a position on.
#[derive(Debug)]
pub(crate) struct SharedFileReader {
    file: SharedFile,
    /// The position of the next byte to read.
    at: u64,
}

impl Read for SharedFileReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.0.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A writer that passes on what is written and computes its checksum.
#[derive(Debug)]
pub(crate) struct Summed<W> {
    to: W,
    sum: Hasher,
}

impl<W> Summed<W> {
    pub(crate) fn new(to: W) -> Self {
        Self {
            to,
            sum: Hasher::new(),
        }
    }

    pub(crate) fn into_inner(self) -> W {
        self.to
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The checksums of the row groups written so far.
#[derive(Debug, Default)]
pub(crate) struct RowGroupChecksums(Vec<u32>);

impl RowGroupChecksums {
    /// Starts the checksums of a file to which no row group has been written.
    pub(crate) fn begin<W: Write + Send>(
        file: &mut SerializedFileWriter<Summed<W>>,
    ) -> Parquet<Self> {
        // What is still buffered belongs before the first row group.
        file.flush()?;
        file.inner_mut().sum = Hasher::new();
        Ok(Self::default())
    }

    /// Adds the checksum of the row group that has just been written.
    pub(crate) fn add<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<Summed<W>>,
    ) -> Parquet<()> {
        file.flush()?;
        self.0
            .push(std::mem::take(&mut file.inner_mut().sum).finalize());
        Ok(())
    }

    /// Stores the checksums in the footer of a file that is about to be closed.
    pub(crate) fn keep<W: Write + Send>(self, file: &mut SerializedFileWriter<Summed<W>>) {
        let sums = self.0.iter().map(|sum| format!("{sum:08x}"));
        let all: Vec<String> =
            std::iter::once(format!("{:08x}", footer(file.flushed_row_groups())))
                .chain(sums)
                .collect();
        file.append_key_value_metadata(KeyValue::new(KEY.to_owned(), all.join(" ")));
    }
}

/// The checksums stored in a file: that of each row group; `None` when it has none.
#[derive(Debug)]
pub(crate) struct StoredChecksums(Option<Vec<u32>>);

impl StoredChecksums {
    /// Reads the checksums and verifies that of the footer.
    pub(crate) fn from_metadata(metadata: &ParquetMetaData) -> Parquet<Self> {
        let about = metadata.file_metadata();
        let kept = about
            .key_value_metadata()
            .into_iter()
            .flatten()
            .find(|kept| kept.key == KEY);
        let summed = about.created_by().is_some_and(|by| by.contains(SUMMED));
        let Some(text) = kept.and_then(|kept| kept.value.as_ref()) else {
            return if summed {
                Err(damaged("its footer"))
            } else {
                Ok(Self(None))
            };
        };
        let sums: Option<Vec<u32>> = text
            .split(' ')
            .map(|sum| u32::from_str_radix(sum, 16).ok())
            .collect();
        let mut sums = sums
            .filter(|sums| sums.len() == 1 + metadata.num_row_groups())
            .ok_or_else(|| damaged("its footer"))?;
        if sums.remove(0) != footer(metadata.row_groups()) {
            return Err(damaged("its footer"));
        }
        Ok(Self(Some(sums)))
    }

    /// Verifies the bytes of a row group.
    pub(crate) fn check(
        &self,
        file: &SharedFile,
        metadata: &ParquetMetaData,
        group: usize,
    ) -> Parquet<()> {
        let Some(sum) = self.0.as_ref().and_then(|sums| sums.get(group)) else {
            return Ok(());
        };
        if metadata.row_group(group).num_rows() == 0 {
            // An empty row group has no bytes; its column offsets mean nothing.
            return Ok(());
        }
        let columns = metadata.row_group(group).columns();
        let begin = columns.iter().map(begin).min().unwrap_or(0);
        let length: i64 = columns
            .iter()
            .map(|column| column.compressed_size().max(0))
            .fold(0, i64::saturating_add);
        let (mut at, mut left) = (begin.max(0) as u64, length as u64);
        let (mut hasher, mut bytes) = (Hasher::new(), vec![0; 1 << 16]);
        while left > 0 {
            let most = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = file.0.read_at(&mut bytes[..most], at)?;
            if read == 0 {
                return Err(damaged("it is truncated, or a part of it"));
            }
            hasher.update(&bytes[..read]);
            (at, left) = (at + read as u64, left - read as u64);
        }
        if hasher.finalize() == *sum {
            Ok(())
        } else {
            Err(damaged(&format!("its row group {group}")))
        }
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!("{what} is damaged: its checksum does not match"))
}

/// The offset in the file at which a column of a row group begins, bytes.
fn begin(column: &ColumnChunkMetaData) -> i64 {
    column
        .dictionary_page_offset()
        .unwrap_or_else(|| column.data_page_offset())
}

/// A checksum of those parts of the footer from which results are computed without reading a page.
fn footer(groups: &[RowGroupMetaData]) -> u32 {
    let mut sum = Hasher::new();
    for group in groups {
        sum.update(&group.num_rows().to_le_bytes());
        for column in group.columns() {
            sum.update(column.column_path().string().as_bytes());
            for number in [
                begin(column),
                column.data_page_offset(),
                column.compressed_size(),
                column.num_values(),
            ] {
                sum.update(&number.to_le_bytes());
            }
            let Some(known) = column.statistics() else {
                continue;
            };
            sum.update(&known.null_count_opt().unwrap_or(u64::MAX).to_le_bytes());
            [known.min_bytes_opt(), known.max_bytes_opt()]
                .into_iter()
                .flatten()
                .for_each(|bytes| sum.update(bytes));
        }
    }
    sum.finalize()
}
