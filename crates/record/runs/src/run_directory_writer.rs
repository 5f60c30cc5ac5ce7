//! Writes a run directory while the run goes on, so that what was done is kept if the run is killed.
//!
//! `status.json` says "incomplete" from the beginning; every record is appended to the journal at once; only
//! [`RunDirectory::finish`] writes `results.parquet` and marks the run complete. The journal is locked as long as its
//! process lives, which distinguishes a run in progress from one that was killed.

use crate::files::RunFileAccess;
use crate::replace::replace_inside_with;
use crate::{Error, RunInputs, RunStatus, files, results, utc};
use serde::Serialize;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The longest part of the caller's name that is used, in characters.
const LONGEST_NAME: usize = 60;

/// A run directory being written.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    status: RunStatus,
    journal: File,
    plan: Option<Plan>,
}

impl RunDirectory {
    /// Creates `<root>/<UTC yyyymmdd-hhmmss>-<name>/`, with `-2`, `-3`, ... appended when the name is taken. A
    /// character of `name` other than a letter, digit, `.`, `_` or `-` becomes `-`.
    ///
    /// # Errors
    /// When it cannot be created or written.
    pub fn create(
        root: &Path,
        name: &str,
        started: SystemTime,
        access: RunFileAccess,
    ) -> Result<Self, Error> {
        let path = new_directory(root, name, started, access)?;
        // The journal comes first: without its lock, a directory with a status is a run that was killed, which others may
        // remove.
        let journal = files::append_new(&path.join(files::JOURNAL));
        let journal =
            journal.map_err(|cause| Error::writing(&path.join(files::JOURNAL), &cause))?;
        // On a file system without locks a run in progress cannot be distinguished from a killed one; it is written
        // all the same.
        let _ = journal.try_lock();
        let status = RunStatus::started(utc::iso_utc(started));
        status.write(&path)?;
        Ok(Self {
            path,
            status,
            journal,
            plan: None,
        })
    }

    /// A directory that exists and is written further.
    pub(crate) const fn reopened(
        path: PathBuf,
        status: RunStatus,
        journal: File,
        plan: Plan,
    ) -> Self {
        Self {
            path,
            status,
            journal,
            plan: Some(plan),
        }
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores the specification as it was given.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_specification(&self, text: &str) -> Result<(), Error> {
        replace_inside_with(&self.path.join(files::SPECIFICATION), text.as_bytes())
    }

    /// Stores the plan, whose texts become part of the rows of `results.parquet`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_plan(&mut self, plan: &Plan) -> Result<(), Error> {
        self.plan = Some(plan.clone());
        self.write_json(files::PLAN, plan)
    }

    /// Stores what the specification was given beside its text.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_inputs(&self, inputs: &RunInputs) -> Result<(), Error> {
        inputs.write(&self.path)
    }

    /// Stores the description of the machines.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_environment(&self, environment: &serde_json::Value) -> Result<(), Error> {
        self.write_json(files::ENVIRONMENT, environment)
    }

    /// Appends one record to the journal as a line, which is passed to the kernel before this returns. A record with a
    /// number that is not finite is refused, because it could not be read back; the journal is unchanged then.
    ///
    /// # Errors
    /// When the record is refused or cannot be written.
    pub fn append(&mut self, record: &RunRecord) -> Result<(), Error> {
        results::readable(record)?;
        let path = self.path.join(files::JOURNAL);
        let mut line =
            serde_json::to_string(record).map_err(|cause| Error::writing(&path, &cause))?;
        line.push('\n');
        let length = self.journal.metadata().map(|there| there.len());
        self.journal.write_all(line.as_bytes()).map_err(|cause| {
            // Removes a partial line, which would make the next one unreadable. If that fails too there is nothing
            // more to do.
            let _ = length.and_then(|length| self.journal.set_len(length));
            Error::writing(&path, &cause)
        })
    }

    /// Writes `results.parquet`, then records in `status.json` whether the run is complete, and the reason if not. A
    /// record that [`Self::append`] would refuse is left out, and the run is then not complete.
    ///
    /// # Errors
    /// When a file cannot be written; the journal still has the records then. When a record was left out; everything
    /// else has been written then.
    pub fn finish(
        mut self,
        records: &[RunRecord],
        complete: bool,
        reason: Option<&str>,
    ) -> Result<(), Error> {
        let gone = self.gone();
        let refused = records
            .iter()
            .find_map(|record| results::readable(record).err());
        let kept: Vec<RunRecord>;
        let records = if refused.is_some() {
            kept = records
                .iter()
                .filter(|record| results::readable(record).is_ok())
                .cloned()
                .collect();
            &kept
        } else {
            records
        };
        let unwritten =
            results::write(&self.path.join(files::RESULTS), self.plan.as_ref(), records).err();
        let fault = gone.or(unwritten).or(refused);
        self.status.complete = complete && fault.is_none();
        self.status.reason = reason
            .map(str::to_owned)
            .or_else(|| fault.as_ref().map(|error| error.message.clone()));
        self.status.records = Some(records.len() as u64);
        let unsummed = self.status.sum_up(&self.path).err();
        let fault = fault.or(unsummed);
        let status = self.status.write(&self.path);
        fault.map_or(status, Err)
    }

    /// Removes the directory with everything in it, unless another process replaced it. What cannot be removed stays,
    /// marked incomplete.
    pub fn remove(self) {
        if self.gone().is_none() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }

    /// An error if the journal, plan or status was removed or replaced while the run went on.
    fn gone(&self) -> Option<Error> {
        let path = self.path.join(files::JOURNAL);
        let same =
            |one: &Metadata, other: &Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        let kept = match (self.journal.metadata(), fs::symlink_metadata(&path)) {
            (Ok(ours), Ok(there)) => same(&ours, &there),
            _ => false,
        };
        let written = [(files::PLAN, self.plan.is_some()), (files::STATUS, true)];
        let missing = written
            .iter()
            .find(|(name, written)| *written && !self.path.join(name).is_file());
        let name = if kept { missing?.0 } else { files::JOURNAL };
        let what = format!(
            "{} was removed during the run",
            self.path.join(name).display()
        );
        Some(Error::new(
            what,
            "only the printed output remains; repeat the run to keep the results",
        ))
    }

    fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        let path = self.path.join(name);
        let text =
            serde_json::to_string_pretty(value).map_err(|cause| Error::writing(&path, &cause))?;
        replace_inside_with(&path, format!("{text}\n").as_bytes())
    }
}

/// Whether the process that writes that run directory is alive.
pub(crate) fn is_being_written(run: &Path) -> bool {
    let journal = files::open(&run.join(files::JOURNAL));
    journal.is_ok_and(|journal| matches!(journal.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Creates a directory that is not a run, named after when it began and what it is about.
///
/// # Errors
/// When it cannot be created.
pub fn new_directory(
    root: &Path,
    name: &str,
    started: SystemTime,
    access: RunFileAccess,
) -> Result<PathBuf, Error> {
    unused(
        root,
        &format!("{}-{}", utc::stamp(started), sanitised(name)),
        access,
    )
}

/// Creates the directory of that name, or the first free one with a number appended.
pub(crate) fn unused(root: &Path, name: &str, access: RunFileAccess) -> Result<PathBuf, Error> {
    files::make_root(root, access).map_err(|cause| Error::writing(root, &cause))?;
    let mut path = root.join(name);
    let mut next = 2_u32;
    loop {
        match files::make_directory(&path, access) {
            Ok(()) => return Ok(path),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                path = root.join(format!("{name}-{next}"))
            }
            Err(cause) => return Err(Error::writing(&path, &cause)),
        }
        next += 1;
    }
}

/// The name with other characters than letters, digits, `.`, `_` and `-` replaced by `-`; `run` when nothing is left.
fn sanitised(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(plain).take(LONGEST_NAME).collect();
    let name = name.trim_matches(|c| c == '-' || c == '.');
    if name.is_empty() {
        "run".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_taken_away_is_not_complete() {
        let root = tempfile::tempdir().unwrap();
        let plan = Plan {
            seed: 0,
            hosts: Default::default(),
            networks: Vec::new(),
            measurements: Vec::new(),
        };
        for removed in ["", files::JOURNAL, files::PLAN] {
            let mut directory = RunDirectory::create(
                root.path(),
                "rr",
                std::time::UNIX_EPOCH,
                RunFileAccess::Private,
            )
            .unwrap();
            directory.write_plan(&plan).unwrap();
            let path = directory.path().to_owned();
            match removed {
                "" => {
                    fs::remove_dir_all(&path).unwrap();
                    fs::create_dir(&path).unwrap();
                }
                file => fs::remove_file(path.join(file)).unwrap(),
            }
            let error = directory.finish(&[], true, None).unwrap_err();
            assert!(
                error.message.contains("was removed during the run"),
                "{removed}: {error:?}"
            );
            assert!(!RunStatus::read(&path).unwrap().complete);
        }
    }

    #[test]
    fn names_are_made_harmless() {
        assert_eq!(sanitised("../../etc/passwd"), "etc-passwd");
        assert_eq!(sanitised("rr over tcp"), "rr-over-tcp");
        assert_eq!(sanitised("///"), "run");
        assert_eq!(sanitised(&"x".repeat(500)).len(), LONGEST_NAME);
    }
}
