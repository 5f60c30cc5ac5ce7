//! The lock of a run's events, so that one process at a time writes them, and directories for unfinished files.

use crate::{Error, files};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The beginning of the names of directories of unfinished files; their kind and the process id follow.
const SCRATCH: &str = ".unfinished-";

/// A run's directory of events, for this process alone as long as this lives.
#[derive(Debug)]
pub(super) struct EventsLock {
    directory: PathBuf,
    _lock: File,
}

impl EventsLock {
    /// Takes it; makes it where there is none. What a killed process left unfinished goes.
    ///
    /// # Errors
    /// When another process has it, or it cannot be made.
    pub(super) fn of(run: &Path) -> Result<Self, Error> {
        let directory = run.join(files::EVENTS);
        let failed = |cause| Error::writing(&directory, &cause);
        files::must_be_own(run)?;
        files::make_events(run).map_err(failed)?;
        let lock = File::options()
            .read(true)
            .custom_flags(files::no_links())
            .open(&directory)
            .map_err(failed)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "the events of {} are being written by another process",
                    run.display()
                );
                return Err(Error::new(
                    message,
                    "wait until that run or import has finished, then try again",
                ));
            }
            // A file system without locks is no reason to keep nothing. Files that are left there may be in use then.
            Err(TryLockError::Error(_)) => {}
            Ok(()) => remove_left(&directory),
        }
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    /// A directory for unfinished files of that kind, on the same disk.
    pub(super) fn scratch(&self, kind: &str) -> Result<RunScratchDirectory, Error> {
        let path = self
            .directory
            .join(format!("{SCRATCH}{kind}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        RunScratchDirectory::make(path)
    }
}

fn remove_left(directory: &Path) {
    let left = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in left.filter(|entry| entry.file_name().to_string_lossy().starts_with(SCRATCH)) {
        // What cannot be removed does no harm.
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// A directory that goes with everything in it.
#[derive(Debug)]
pub(super) struct RunScratchDirectory(PathBuf);

impl RunScratchDirectory {
    /// Makes it; there must be none yet.
    pub(super) fn make(path: PathBuf) -> Result<Self, Error> {
        files::make_directory(
            &path,
            files::RunFileAccess::of(path.parent().unwrap_or(&path)),
        )
        .map_err(|cause| Error::writing(&path, &cause))?;
        Ok(Self(path))
    }

    /// A path in it.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for RunScratchDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_and_what_a_killed_one_left_goes() {
        let run = tempfile::tempdir().unwrap();
        let left = run.path().join("events/.unfinished-1");
        fs::create_dir_all(left.join("more")).unwrap();
        let lock = EventsLock::of(run.path()).unwrap();
        assert!(!left.exists());
        let error = EventsLock::of(run.path()).unwrap_err();
        assert!(
            error
                .message
                .ends_with("are being written by another process"),
            "{error}"
        );
        assert!(error.hint.contains("wait"));
        let scratch = lock.scratch("logs").unwrap();
        let path = scratch.join("x");
        fs::write(&path, "x").unwrap();
        drop(scratch);
        assert!(!path.parent().unwrap().exists());
        drop(lock);
        assert!(EventsLock::of(run.path()).is_ok());
    }
}
