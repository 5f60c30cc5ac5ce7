//! `status.json`: whether a run is complete, the reason if it is not, and checksums of its files.

use crate::replace::replace_inside_with;
use crate::{Error, files};
use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The content of `status.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// Whether everything planned was done.
    pub complete: bool,
    /// Why the run is not complete, where this is known; a run that was killed has no reason.
    pub reason: Option<String>,
    /// The version of stackline that wrote the directory.
    pub stackline: String,
    /// When the run started, UTC, ISO 8601.
    pub started: String,
    /// Number of records stored at the end, including those of warm-up runs.
    pub records: Option<u64>,
    /// CRC-32 of each file that has no checksum of its own, or whose contents could be taken for another run's; by
    /// file name. Empty for a run that was killed, or that was written by a version without checksums.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sums: BTreeMap<String, u32>,
    /// CRC-32 of the footer of each event file, by file name. The footer has the checksums of the rest, so another
    /// run's file is detected, and a large file is checked by reading some kilobytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, u32>,
}

/// The files whose checksums are in [`RunStatus::sums`].
const SUMMED: [&str; 5] = [
    files::SPECIFICATION,
    files::PLAN,
    files::ENVIRONMENT,
    files::RESULTS,
    files::INDEX,
];

impl RunStatus {
    /// The status of a run that has just started.
    pub(crate) fn started(started: String) -> Self {
        let stackline = env!("CARGO_PKG_VERSION").to_owned();
        let (sums, events) = Default::default();
        Self {
            complete: false,
            reason: None,
            stackline,
            started,
            records: None,
            sums,
            events,
        }
    }

    /// The state in which a run goes on that was not complete.
    pub(crate) fn begin_again(&mut self) {
        *self = Self::started(std::mem::take(&mut self.started));
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(files::STATUS);
        let text =
            serde_json::to_string_pretty(self).map_err(|cause| Error::writing(&path, &cause))?;
        replace_inside_with(&path, format!("{text}\n").as_bytes())
    }

    /// Computes the checksums of the files in their present state.
    pub(crate) fn sum_up(&mut self, directory: &Path) -> Result<(), Error> {
        self.sums.clear();
        for name in SUMMED {
            let path = directory.join(name);
            if files::is_there(&path) {
                let sum = sum(&path).map_err(|cause| Error::reading(&path, &cause))?;
                self.sums.insert(name.to_owned(), sum);
            }
        }
        self.events.clear();
        for path in files::of_events(directory, files::SORTED)? {
            let sum = footer(&path).map_err(|cause| Error::reading(&path, &cause))?;
            self.events.insert(name_of(&path), sum);
        }
        Ok(())
    }

    /// Computes the checksums of a finished run again after a file of it was replaced.
    pub(crate) fn sum_again(directory: &Path) -> Result<(), Error> {
        if !files::is_there(&directory.join(files::STATUS)) {
            return Ok(());
        }
        let mut status = Self::read(directory)?;
        if status.sums.is_empty() {
            return Ok(());
        }
        status.sum_up(directory)?;
        status.write(directory)
    }

    /// Verifies the checksums of the files.
    pub(crate) fn check(&self, directory: &Path) -> Result<(), Error> {
        for (name, wanted) in &self.sums {
            if !SUMMED.contains(&name.as_str()) {
                let why = "it lists a checksum for a file that does not belong to a run";
                return Err(Error::reading(&directory.join(files::STATUS), &why));
            }
            let path = directory.join(name);
            match sum(&path) {
                Ok(found) if found == *wanted => {}
                Ok(_) => return Err(Error::damaged(&path)),
                // A missing results file is accepted, because the journal has the records.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound && name == files::RESULTS => {
                }
                Err(cause) => return Err(Error::reading(&path, &cause)),
            }
        }
        Ok(())
    }

    /// Verifies that event files are those that the run had when it ended. A file without a footer is not an error
    /// here: its reader reports it.
    pub(crate) fn check_events(directory: &Path, files: &[PathBuf]) -> Result<(), Error> {
        if !files::is_there(&directory.join(files::STATUS)) {
            return Ok(());
        }
        let wanted = Self::read(directory)?.events;
        let other = |path: &&PathBuf| {
            footer(path).is_ok_and(|found| wanted.get(&name_of(path)) != Some(&found))
        };
        // Without checksums (a run that was killed, or of an earlier version) nothing is verified.
        let other = files.iter().filter(|_| !wanted.is_empty()).find(other);
        other.map_or(Ok(()), |path| Err(Error::damaged_events(path)))
    }

    /// Reads `status.json` of a run directory.
    ///
    /// # Errors
    /// When it is missing or cannot be parsed.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(files::STATUS);
        serde_json::from_str(&files::read(&path)?).map_err(|cause| Error::reading(&path, &cause))
    }
}

fn name_of(events: &Path) -> String {
    events
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// CRC-32 of the footer of a Parquet file, which ends with the footer's length (4 bytes) and the magic number (4
/// bytes).
fn footer(path: &Path) -> io::Result<u32> {
    const END: u64 = 8;
    let (mut file, mut end) = (files::open(path)?, [0; END as usize]);
    let length = file.metadata()?.len();
    file.read_exact_at(
        &mut end,
        length
            .checked_sub(END)
            .ok_or(io::ErrorKind::UnexpectedEof)?,
    )?;
    let footer = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    let begin = length
        .checked_sub(END + footer)
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    file.seek(io::SeekFrom::Start(begin))?;
    sum_of(&mut file)
}

/// The CRC-32 of a file.
fn sum(path: &Path) -> io::Result<u32> {
    sum_of(&mut files::open_bounded(path)?)
}

fn sum_of(from: &mut impl Read) -> io::Result<u32> {
    let (mut sum, mut bytes) = (Hasher::new(), vec![0; 1 << 16]);
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(sum.finalize()),
            read => sum.update(&bytes[..read]),
        }
    }
}
