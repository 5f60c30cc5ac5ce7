//! The lock of a run's events, which lets one process at a time write them, and directories for unfinished files.

use crate::{Error, files};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The beginning of the names of directories for unfinished files; kind and process id follow.
const SCRATCH: &str = ".unfinished-";

/// The locked events directory of a run: no other process writes to it as long as this value lives.
#[derive(Debug)]
pub(super) struct EventsLock {
    directory: PathBuf,
    _lock: File,
}

impl EventsLock {
    /// Takes the lock, after creating the directory if there is none. Removes what killed processes left unfinished.
    ///
    /// # Errors
    /// When another process has the lock, or the directory cannot be created.
    pub(super) fn take(run: &Path) -> Result<Self, Error> {
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
            // On a file system without locks the run is written all the same. Unfinished files stay, because another
            // process may be using them.
            Err(TryLockError::Error(_)) => {}
            Ok(()) => remove_left(&directory),
        }
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    /// Creates a directory for unfinished files of this kind, on the same file system as the events.
    pub(super) fn scratch(&self, kind: &str) -> Result<RunScratchDirectory, Error> {
        let path = self
            .directory
            .join(format!("{SCRATCH}{kind}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        RunScratchDirectory::make(path)
    }
}

/// Removes the directories of unfinished files that killed processes left.
fn remove_left(directory: &Path) {
    let left = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in left.filter(|entry| entry.file_name().to_string_lossy().starts_with(SCRATCH)) {
        // A directory that cannot be removed does no harm.
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// A directory that is removed with its contents when this value is dropped.
#[derive(Debug)]
pub(super) struct RunScratchDirectory(PathBuf);

impl RunScratchDirectory {
    /// Creates the directory; it must not exist.
    pub(super) fn make(path: PathBuf) -> Result<Self, Error> {
        files::make_directory(
            &path,
            files::RunFileAccess::new(path.parent().unwrap_or(&path)),
        )
        .map_err(|cause| Error::writing(&path, &cause))?;
        Ok(Self(path))
    }

    /// The path of a file in the directory.
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
        let lock = EventsLock::take(run.path()).unwrap();
        assert!(!left.exists());
        let error = EventsLock::take(run.path()).unwrap_err();
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
        assert!(EventsLock::take(run.path()).is_ok());
    }
}
