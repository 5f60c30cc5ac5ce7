//! The files of a series: numbered, each with a record on a line.

use super::probe_record::{LONGEST_LINE, ProbeRecord};
use crate::{Error, files};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The extension of a segment.
const EXTENSION: &str = "probes";

/// The segment that is written.
#[derive(Debug)]
pub(super) struct ProbeSegment {
    pub(super) number: u64,
    path: PathBuf,
    file: File,
    /// Its size up to the last complete record.
    pub(super) bytes: u64,
    /// When the first of its probes was due; `None` without a record.
    pub(super) first_ms: Option<u64>,
    /// Whether something of a record that could not be written may stand at its end.
    is_torn: bool,
}

impl ProbeSegment {
    /// A new, empty segment.
    pub(super) fn create(directory: &Path, number: u64) -> Result<Self, Error> {
        let path = directory.join(format!("{number:08}.{EXTENSION}"));
        let file = files::append_new(&path).map_err(|cause| Error::write_failed(&path, &cause))?;
        Ok(Self {
            number,
            path,
            file,
            bytes: 0,
            first_ms: None,
            is_torn: false,
        })
    }

    /// The segment that a process wrote last. A record that it did not complete is cut off.
    pub(super) fn reopen(number: u64, path: &Path) -> Result<Self, Error> {
        let failed = |cause| Error::writing(path, &cause);
        let first_ms = first_ms(path);
        let mut file = files::append(path).map_err(failed)?;
        let bytes = complete_length(path).map_err(failed)?;
        file.set_len(bytes).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Self {
            number,
            path: path.to_owned(),
            file,
            bytes,
            first_ms,
            is_torn: false,
        })
    }

    /// Appends a line. After an error nothing of it stays.
    pub(super) fn append(&mut self, line: &str, at_ms: u64) -> Result<(), Error> {
        if self.is_torn {
            let cut = self.file.set_len(self.bytes);
            cut.map_err(|cause| Error::write_failed(&self.path, &cause))?;
            self.is_torn = false;
        }
        if let Err(cause) = self.file.write_all(line.as_bytes()) {
            self.is_torn = self.file.set_len(self.bytes).is_err();
            return Err(Error::write_failed(&self.path, &cause));
        }
        self.bytes += line.len() as u64;
        self.first_ms.get_or_insert(at_ms);
        Ok(())
    }
}

/// The length of a segment up to its last line feed.
fn complete_length(path: &Path) -> std::io::Result<u64> {
    const BLOCK: u64 = 4096;
    let mut file = files::open(path)?;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let from = end.saturating_sub(BLOCK);
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        Read::by_ref(&mut file)
            .take(end - from)
            .read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

/// The segments of a series, the oldest first.
pub(super) fn paths(directory: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let failed = |cause| Error::reading(directory, &cause);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_segment = path.extension().is_some_and(|end| end == EXTENSION);
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let number = stem.and_then(|stem| stem.parse::<u64>().ok());
        found.extend(number.filter(|_| is_segment).map(|number| (number, path)));
    }
    found.sort_unstable();
    Ok(found)
}

/// When the first probe of a segment was due; `None` where that cannot be read.
pub(super) fn first_ms(path: &Path) -> Option<u64> {
    let mut line = Vec::new();
    let file = BufReader::new(files::open(path).ok()?);
    file.take(LONGEST_LINE as u64)
        .read_until(b'\n', &mut line)
        .ok()?;
    ProbeRecord::parse(line.strip_suffix(b"\n")?).map(|record| record.at_ms)
}
