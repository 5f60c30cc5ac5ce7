//! A kept run whose process ended before all its runs were made, for a process that goes on with it.

use crate::run_directory_writer::RunDirectory;
use crate::{Error, RunStatus, files};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The journal while it is written anew.
const NEW_JOURNAL: &str = ".runs.jsonl.tmp";
/// What tells whether there is room, and its size in bytes: more than what a file system gives away without a block.
const PROBE: (&str, usize) = (".room.tmp", 16 << 10);

/// A run that no other process writes as long as this value lives.
#[derive(Debug)]
pub struct ClaimedRun {
    path: PathBuf,
    journal: File,
}

impl ClaimedRun {
    /// Claims the run.
    ///
    /// # Errors
    /// When another process writes it, or it belongs to another user or cannot be written.
    pub fn new(run: &Path) -> Result<Self, Error> {
        files::must_be_own(run)?;
        let path = run.join(files::JOURNAL);
        let journal = files::append(&path).map_err(|cause| Error::writing(&path, &cause))?;
        if matches!(journal.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Error::input(
                format!("the run at {} is still being made", run.display()),
                "wait until the command that makes it has ended",
            ));
        }
        Ok(Self {
            path: run.to_owned(),
            journal,
        })
    }

    /// The directory, to which further records are added. What is kept of the earlier ones is `kept`; a torn line or a run
    /// that was kept in part is removed from the journal.
    ///
    /// # Errors
    /// When the directory cannot be written; it has all records then.
    pub fn go_on(self, plan: &Plan, kept: &[RunRecord]) -> Result<RunDirectory, Error> {
        let Self { path, journal } = self;
        let journal = with_only(&path, journal, kept)?;
        let mut status = RunStatus::read(&path)?;
        status.begin_again();
        status.write(&path)?;
        // From now on the journal has what is done, and these would be out of date.
        for name in [files::RESULTS, files::FINDINGS, files::PAGE] {
            let old = path.join(name);
            match fs::remove_file(&old) {
                Err(cause) if cause.kind() != ErrorKind::NotFound => {
                    return Err(Error::writing(&old, &cause));
                }
                _ => {}
            }
        }
        Ok(RunDirectory::reopened(path, status, journal, plan.clone()))
    }
}

/// The journal with these records and nothing else. It is cut where it begins with them, and otherwise replaced by a new one.
fn with_only(run: &Path, journal: File, kept: &[RunRecord]) -> Result<File, Error> {
    let path = run.join(files::JOURNAL);
    let unwritten = |cause: &dyn std::fmt::Display| Error::writing(&path, cause);
    let mut lines = Vec::new();
    for record in kept {
        serde_json::to_writer(&mut lines, record).map_err(|cause| unwritten(&cause))?;
        lines.push(b'\n');
    }
    let mut there = Vec::new();
    files::open_bounded(&path)
        .and_then(|mut file| file.read_to_end(&mut there))
        .map_err(|cause| Error::reading(&path, &cause))?;
    if there.starts_with(&lines) {
        journal
            .set_len(lines.len() as u64)
            .map_err(|cause| unwritten(&cause))?;
        return Ok(journal);
    }
    let new = run.join(NEW_JOURNAL);
    // One that was left by a process that was killed.
    let _ = fs::remove_file(&new);
    let written = files::append_new(&new).and_then(|mut file| {
        file.write_all(&lines)?;
        file.sync_all()?;
        // As for a new run: on a file system without locks it is written all the same.
        let _ = file.try_lock();
        fs::rename(&new, &path)?;
        Ok(file)
    });
    written.map_err(|cause| {
        let _ = fs::remove_file(&new);
        unwritten(&cause)
    })
}

/// Whether some kilobytes can be written into a directory.
#[must_use]
pub fn has_room(directory: &Path) -> bool {
    let (name, bytes) = PROBE;
    let path = directory.join(name);
    let written = files::create(&path).and_then(|mut file| {
        file.write_all(&vec![0; bytes])?;
        file.sync_all()
    });
    let _ = fs::remove_file(&path);
    written.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunFileAccess, StoredRun};
    use std::time::UNIX_EPOCH;

    fn record(run: u32) -> RunRecord {
        RunRecord {
            run,
            ..RunRecord::default()
        }
    }

    /// A run whose process was killed after three records and a half.
    fn killed(root: &Path) -> PathBuf {
        let mut run = RunDirectory::create(root, "a", UNIX_EPOCH, RunFileAccess::Private).unwrap();
        run.write_plan(&Plan::default()).unwrap();
        for number in 0..3 {
            run.append(&record(number)).unwrap();
        }
        let path = run.path().to_owned();
        drop(run);
        let mut journal = files::append(&path.join(files::JOURNAL)).unwrap();
        journal.write_all(b"{\"measurement\": 0, \"ru").unwrap();
        path
    }

    #[test]
    fn a_run_goes_on_behind_what_is_kept() {
        let root = tempfile::tempdir().unwrap();
        // All three stay, or the last goes, or the first, for which the journal is written anew.
        for kept in [0..3, 0..2, 1..3] {
            let path = killed(root.path());
            let kept: Vec<RunRecord> = kept.map(record).collect();
            let claimed = ClaimedRun::new(&path).unwrap();
            let mut run = claimed.go_on(&Plan::default(), &kept).unwrap();
            let before = StoredRun::open(&path).unwrap();
            assert!(before.running && before.records == kept);
            run.append(&record(9)).unwrap();
            let all = [&kept[..], &[record(9)]].concat();
            assert_eq!(StoredRun::open(&path).unwrap().records, all);
            run.finish(&all, true, None).unwrap();
            let after = StoredRun::open(&path).unwrap();
            assert!(after.complete && after.records == all);
            let names = fs::read_dir(&path).unwrap().flatten();
            let mut names = names.map(|entry| entry.file_name().into_string().unwrap());
            assert!(!names.any(|name| name.starts_with('.')));
        }
    }

    #[test]
    fn results_that_a_killed_successor_left_do_not_hide_its_records() {
        let root = tempfile::tempdir().unwrap();
        let path = killed(root.path());
        let kept: Vec<RunRecord> = (0..3).map(record).collect();
        let run = ClaimedRun::new(&path).unwrap();
        let run = run.go_on(&Plan::default(), &kept).unwrap();
        run.finish(&kept, false, Some("interrupted")).unwrap();
        let claimed = ClaimedRun::new(&path).unwrap();
        let mut run = claimed.go_on(&Plan::default(), &kept).unwrap();
        run.append(&record(3)).unwrap();
        drop(run);
        let after = StoredRun::open(&path).unwrap();
        assert_eq!(after.records.len(), 4);
        assert!(!after.complete && after.reason.is_none(), "it was killed");
    }

    #[test]
    fn two_processes_do_not_go_on_with_one_run() {
        let root = tempfile::tempdir().unwrap();
        let path = killed(root.path());
        let first = ClaimedRun::new(&path).unwrap();
        let error = ClaimedRun::new(&path).unwrap_err();
        assert!(error.message.contains("still being made"), "{error:?}");
        drop(first);
        ClaimedRun::new(&path).unwrap();
    }

    #[test]
    fn room_is_where_something_can_be_written() {
        let root = tempfile::tempdir().unwrap();
        assert!(has_room(root.path()));
        assert!(!has_room(&root.path().join("nowhere")));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
