//! Series of probes: what a specification yields again and again, in files that are bounded.
//!
//! A series is a directory `probes/NAME` below the runs. It has segments `NUMBER.probes` with a record on each line, and one process at
//! a time writes it. A full segment is followed by the next; the oldest are removed by age and by the room of all. A line that is not
//! complete, as after a crash or on a full disk, is cut off before the next one is written; a damaged line is left out and counted.

mod log_linear;
mod probe_record;
mod probe_segments;
#[cfg(test)]
mod tests;

use crate::files::RunFileAccess;
use crate::run_reader::runs_root;
use crate::{Error, files};
use probe_record::LONGEST_LINE;
pub use probe_record::{ProbeRecord, ProbedMeasurement, ProbedWork};
use probe_segments::ProbeSegment;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The directory of all series below the runs.
const SERIES: &str = "probes";
/// The specification of the latest probes.
const SPECIFICATION: &str = "specification.stackline";
/// Longest name of a series, in bytes.
const LONGEST_NAME: usize = 60;
/// A segment is at most this part of the room of a series, so that the removal of one is a small part of it.
const SEGMENTS: u64 = 8;
/// A segment spans at most this part of the time for which records are kept.
const SPANS: u32 = 8;
/// The least size of a full segment, in bytes.
const LEAST_SEGMENT: u64 = 4096;

/// How much of a series stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRetention {
    /// Records older than this are removed, a segment at a time.
    pub keep: Duration,
    /// All segments together take at most this many bytes.
    pub most_bytes: u64,
}

/// A series that is being written. No other process writes it as long as this value lives.
#[derive(Debug)]
pub struct ProbeSeriesWriter {
    directory: PathBuf,
    retention: ProbeRetention,
    segment: Option<ProbeSegment>,
    _lock: File,
}

/// The records of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadProbes {
    /// The records, in the order in which they were written.
    pub records: Vec<ProbeRecord>,
    /// Lines that are damaged, or whose writing was not completed.
    pub damaged: u64,
}

/// A series that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSeries {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// The size of its segments, in bytes.
    pub bytes: u64,
    /// Whether a process writes it.
    pub is_written: bool,
}

/// Checks the name of a series, which is that of a directory.
///
/// # Errors
/// With the reason.
pub fn check_series_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(plain)
        && !name.starts_with(['.', '-'])
    {
        return Ok(());
    }
    Err(Error::input(
        format!("`{name}` cannot be the name of a series"),
        "use letters, digits, `.`, `_` and `-`, at most 60 of them, and begin with a letter or digit",
    ))
}

impl ProbeSeriesWriter {
    /// Opens the series of that name below `root`, and makes it if there is none. Cuts off a record that was not completed.
    ///
    /// # Errors
    /// When another process writes it, the name cannot be one, or the directory cannot be made.
    pub fn open(
        root: &Path,
        name: &str,
        retention: ProbeRetention,
        access: RunFileAccess,
    ) -> Result<Self, Error> {
        check_series_name(name)?;
        let all = root.join(SERIES);
        let directory = all.join(name);
        let failed = |cause| Error::writing(&directory, &cause);
        files::make_root(root, access).map_err(failed)?;
        for path in [&all, &directory] {
            match files::make_directory(path, access) {
                Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                    return Err(failed(cause));
                }
                _ => files::must_be_own(path)?,
            }
        }
        let lock = lock_of(&directory).map_err(failed)?;
        // On a file system without locks the series is written all the same.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Error::new(
                format!("another process writes the series {name}"),
                "wait for it, or write another series with `--name`",
            ));
        }
        let segment = match probe_segments::paths(&directory)?.pop() {
            Some((number, path)) => Some(ProbeSegment::reopen(number, &path)?),
            None => None,
        };
        Ok(Self {
            directory,
            retention,
            segment,
            _lock: lock,
        })
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Stores the text of the specification whose probes follow.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_specification(&self, text: &str) -> Result<(), Error> {
        crate::replace::replace_with(&self.directory.join(SPECIFICATION), text.as_bytes())
    }

    /// Appends a record, which is passed to the kernel before this returns, and removes what is too old or too much.
    ///
    /// # Errors
    /// When it cannot be written, as on a full disk. Nothing of it stays then, and the next record may be written.
    pub fn append(&mut self, record: &ProbeRecord) -> Result<(), Error> {
        let line = record
            .line()
            .map_err(|cause| Error::writing(&self.directory, &cause))?;
        let most = (self.retention.most_bytes / SEGMENTS).max(LEAST_SEGMENT);
        let span = self.retention.keep / SPANS;
        let is_full = |segment: &ProbeSegment| {
            segment.bytes + line.len() as u64 > most && segment.bytes > 0
                || record
                    .at_ms
                    .saturating_sub(segment.first_ms.unwrap_or(record.at_ms))
                    > span.as_millis() as u64
        };
        let begins = self.segment.as_ref().is_none_or(is_full);
        // What is too old goes first: it may be what fills the disk.
        self.remove_old(record.at_ms, line.len() as u64)?;
        if begins {
            let number = self.segment.as_ref().map_or(1, |last| last.number + 1);
            self.segment = Some(ProbeSegment::create(&self.directory, number)?);
        }
        match &mut self.segment {
            Some(segment) => segment.append(&line, record.at_ms),
            None => Ok(()),
        }
    }

    /// Removes the oldest segments that are beyond the retention, with room for so many more bytes.
    fn remove_old(&self, now_ms: u64, more: u64) -> Result<(), Error> {
        let current = self.segment.as_ref().map_or(0, |segment| segment.number);
        let segments = probe_segments::paths(&self.directory)?;
        let sizes: Vec<u64> = segments
            .iter()
            .map(|(_, path)| size_of_file(path))
            .collect();
        let mut bytes = sizes.iter().sum::<u64>() + more;
        let keep_ms = u64::try_from(self.retention.keep.as_millis()).unwrap_or(u64::MAX);
        for (at, ((number, path), size)) in segments.iter().zip(&sizes).enumerate() {
            if *number == current {
                break;
            }
            // A segment is as old as the first record behind it.
            let next = segments.get(at + 1).map(|(_, path)| path);
            let is_old = || {
                let ended = next.and_then(|path| probe_segments::first_ms(path));
                ended.is_some_and(|ended| now_ms.saturating_sub(ended) > keep_ms)
            };
            if bytes <= self.retention.most_bytes && !is_old() {
                break;
            }
            fs::remove_file(path).map_err(|cause| Error::writing(path, &cause))?;
            bytes -= size;
        }
        Ok(())
    }
}

/// The directory as a file that can be locked.
fn lock_of(directory: &Path) -> std::io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(files::no_links())
        .open(directory)
}

fn size_of_file(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |about| about.len())
}

/// Reads the records of a series that are not older than `since`, all without it. A process may write the series meanwhile.
///
/// # Errors
/// When no series has that name, or it cannot be read.
pub fn read_probes(
    root: &Path,
    name: &str,
    since: Option<SystemTime>,
) -> Result<ReadProbes, Error> {
    let series = kept_series(root, name)?;
    let since_ms = since.map_or(0, |since| {
        let since = since
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    let mut read = ReadProbes::default();
    for (_, path) in probe_segments::paths(&series.path)? {
        match files::open(&path) {
            // Removed meanwhile, as the oldest are.
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => return Err(Error::reading(&path, &cause)),
            Ok(file) => {
                read_segment(file, since_ms, &mut read)
                    .map_err(|cause| Error::reading(&path, &cause))?;
            }
        }
    }
    Ok(read)
}

fn read_segment(file: File, since_ms: u64, read: &mut ReadProbes) -> std::io::Result<()> {
    let mut lines = BufReader::new(file);
    loop {
        let mut line = Vec::new();
        let most = LONGEST_LINE as u64;
        if lines.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let whole = line.strip_suffix(b"\n");
        match whole.and_then(ProbeRecord::parse) {
            Some(record) if record.at_ms >= since_ms => read.records.push(record),
            Some(_) => {}
            None => read.damaged += 1,
        }
    }
}

/// The series of that name.
///
/// # Errors
/// When there is none.
pub fn kept_series(root: &Path, name: &str) -> Result<KeptSeries, Error> {
    check_series_name(name)?;
    let path = root.join(SERIES).join(name);
    if !path.is_dir() {
        let names: Vec<String> = kept_series_list(root)?
            .into_iter()
            .map(|one| one.name)
            .collect();
        let hint = match names.as_slice() {
            [] => "`stackline probe SPEC --every 1m` begins one".to_owned(),
            names => format!("the series are {}", names.join(", ")),
        };
        return Err(Error::input(format!("no series is named {name}"), hint));
    }
    let segments = probe_segments::paths(&path)?;
    let bytes = segments.iter().map(|(_, path)| size_of_file(path)).sum();
    let lock = lock_of(&path);
    let is_locked = |lock: &File| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
    Ok(KeptSeries {
        name: name.to_owned(),
        is_written: lock.as_ref().is_ok_and(is_locked),
        path,
        bytes,
    })
}

/// All series, by name.
///
/// # Errors
/// When they cannot be listed.
pub fn kept_series_list(root: &Path) -> Result<Vec<KeptSeries>, Error> {
    let all = root.join(SERIES);
    let entries = match fs::read_dir(&all) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|cause| Error::reading(&all, &cause))?,
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| check_series_name(name).is_ok())
        .collect();
    names.sort_unstable();
    names.iter().map(|name| kept_series(root, name)).collect()
}

impl KeptSeries {
    /// Removes it.
    ///
    /// # Errors
    /// When a process writes it, it belongs to another user, or it cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        let failed = |cause| Error::writing(&self.path, &cause);
        files::must_be_own(&self.path)?;
        let lock = lock_of(&self.path).map_err(failed)?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Error::input(
                format!("a process writes the series {}", self.name),
                "end the `stackline probe` that writes it, then try again",
            ));
        }
        fs::remove_dir_all(&self.path).map_err(failed)
    }

    /// The text of the specification of the latest probes, where it can be read.
    #[must_use]
    pub fn specification(&self) -> Option<String> {
        files::read(&self.path.join(SPECIFICATION)).ok()
    }
}

/// The directory below which series are kept: that of the runs.
#[must_use]
pub fn series_root() -> PathBuf {
    runs_root()
}
