//! All temporary directories and files of stackline: private, with unpredictable names, removed at the end.
//!
//! A directory is locked while its process lives. After the process was killed, the lock is free and [`remove_leftovers`] removes the
//! directory. It is called whenever a directory is created, by the keeper of a command that was killed, and by `stackline clean`.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

/// Prefix of the names of all temporary directories.
const PREFIX: &str = "stackline-";
/// A file in each temporary directory; a directory without it, which the user may have made under such a name, is not removed.
const MARK: &str = ".stackline-temporary";

/// A private temporary directory, removed with its content when this is dropped.
#[derive(Debug)]
pub struct ScratchDirectory {
    directory: TempDir,
    /// Locked as long as the directory is in use: one whose lock is free was left behind.
    _lock: File,
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // If this fails, dropping `directory` removes what is left.
        let _ = remove(self.path());
    }
}

impl ScratchDirectory {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// A private temporary directory in `TMPDIR`; `purpose` is a word of its name, for people who find it.
///
/// # Errors
/// The kernel's.
pub fn create_directory(purpose: &str) -> io::Result<ScratchDirectory> {
    remove_leftovers();
    loop {
        let directory = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{purpose}-"))
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()?;
        // Another process may remove the new directory as a leftover before it is locked here; then create another one.
        match lock(directory.path()) {
            Ok(lock) if is_at(&lock, directory.path()) => {
                File::create_new(directory.path().join(MARK))?;
                return Ok(ScratchDirectory {
                    directory,
                    _lock: lock,
                });
            }
            Ok(_) => {}
            Err(error)
                if [io::ErrorKind::NotFound, io::ErrorKind::WouldBlock].contains(&error.kind()) => {
            }
            Err(error) => return Err(error),
        }
    }
}

/// A temporary file without a name: no other user can open it, and it is removed when its last descriptor is closed.
///
/// # Errors
/// The kernel's.
pub fn create_file() -> io::Result<File> {
    tempfile::tempfile()
}

/// The same in append mode: every write goes to its end, wherever it was read before.
///
/// # Errors
/// The kernel's.
pub fn create_log() -> io::Result<File> {
    let file = create_file()?;
    rustix::fs::fcntl_setfl(
        &file,
        rustix::fs::fcntl_getfl(&file)? | rustix::fs::OFlags::APPEND,
    )?;
    Ok(file)
}

/// Removes the directories of this user that killed processes left. Returns how many.
pub fn remove_leftovers() -> usize {
    let entries = fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten();
    let own = rustix::process::geteuid().as_raw();
    let left = entries.filter(|entry| {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        // `metadata` of an entry does not follow links, so directories behind links of others are not touched.
        is_ours
            && entry.metadata().is_ok_and(|about| {
                about.is_dir() && about.uid() == own && about.mode() & 0o077 == 0
            })
    });
    left.filter(|entry| {
        let path = entry.path();
        lock(&path).is_ok_and(|held| is_at(&held, &path) && remove(&path).is_ok())
    })
    .count()
}

/// Removes a marked directory with its content, or an empty one, whose process was killed before it was marked. The mark is removed last,
/// so that the next sweep finishes a removal that was itself killed.
fn remove(directory: &Path) -> io::Result<()> {
    if fs::symlink_metadata(directory.join(MARK)).is_ok_and(|mark| mark.is_file()) {
        for entry in fs::read_dir(directory)?
            .flatten()
            .filter(|entry| entry.file_name() != MARK)
        {
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(path)?
            } else {
                fs::remove_file(path)?
            }
        }
        fs::remove_file(directory.join(MARK))?;
    }
    fs::remove_dir(directory)
}

/// Locks a directory, without waiting for the lock.
fn lock(directory: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(directory)?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    Ok(opened)
}

/// Whether the locked directory is the one at this path.
fn is_at(lock: &File, directory: &Path) -> bool {
    let there = fs::symlink_metadata(directory).map(|there| (there.dev(), there.ino()));
    lock.metadata()
        .is_ok_and(|locked| there.is_ok_and(|there| there == (locked.dev(), locked.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt;

    #[test]
    fn a_directory_is_private_and_goes_when_it_is_dropped_or_left() {
        let held = create_directory("test").unwrap();
        let mode = fs::metadata(held.path()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = held.path().to_owned();
        let base = path.parent().unwrap();
        // What a killed process leaves: the same name, nobody's lock.
        let left = base.join(format!("{PREFIX}left-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&left).unwrap();
        fs::write(left.join("key"), "secret").unwrap();
        fs::write(left.join(MARK), "").unwrap();
        // A user's own directory of such a name.
        let thesis = base.join(format!("{PREFIX}thesis-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&thesis).unwrap();
        fs::write(thesis.join("chapter"), "text").unwrap();
        // What is not ours to remove: a link of that name.
        let link = base.join(format!("{PREFIX}link-{}", std::process::id()));
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(target.path(), &link).unwrap();
        remove_leftovers();
        assert!(!left.exists());
        assert!(path.exists(), "a directory in use stays");
        assert!(link.exists() && target.path().join("file").exists());
        assert!(thesis.join("chapter").exists());
        fs::remove_dir_all(thesis).unwrap();
        fs::remove_file(link).unwrap();
        drop(held);
        assert!(!path.exists());
    }
}
