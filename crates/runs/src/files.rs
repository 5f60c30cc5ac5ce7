//! The names in a run directory, and writing a file whole or not at all.

use crate::Error;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::linkat;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::Builder;

/// The specification as it was given.
pub(crate) const SPECIFICATION: &str = "specification.stackline";
/// The plan, as JSON.
pub(crate) const PLAN: &str = "plan.json";
/// What the machines were like, as JSON.
pub(crate) const ENVIRONMENT: &str = "environment.json";
/// Whether the run is complete, as JSON.
pub(crate) const STATUS: &str = "status.json";
/// Records as they came, one JSON line each.
pub(crate) const JOURNAL: &str = "runs.jsonl";
/// All records, at the end.
pub(crate) const RESULTS: &str = "results.parquet";

/// What limits it, as JSON.
pub(crate) const FINDINGS: &str = "findings.json";

/// The directory of events.
pub(crate) const EVENTS: &str = "events";

/// Writes a file through a temporary one beside it and a rename: a reader sees the old file, or all of the new one. Links are
/// followed, and a file that is there keeps its permissions. What is no plain file (a pipe, a device) is written in place.
///
/// # Errors
/// When it cannot be written, or `write` fails; the old file is there then.
pub fn replace<T, E: From<Error>>(path: &Path, write: impl FnOnce(&mut File) -> Result<T, E>) -> Result<T, E> {
    let failed = |cause: io::Error| E::from(Error::writing(path, &cause));
    let target = followed(path).map_err(failed)?;
    let there = fs::metadata(&target).ok();
    if target.starts_with("/proc") || there.as_ref().is_some_and(|there| !there.is_file()) {
        let mut file = File::options().write(true).open(&target).map_err(failed)?;
        return write(&mut file);
    }
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = there.as_ref().map_or_else(|| Permissions::from_mode(0o666), fs::Metadata::permissions);
    let settle = |file: &File| {
        if there.is_some() {
            // What the mask took away.
            file.set_permissions(permissions.clone()).map_err(failed)?;
        }
        file.sync_all().map_err(failed)
    };
    let made = Builder::new().prefix(&name).suffix(".tmp").permissions(permissions.clone()).clone();
    if let Some(mut file) = unnamed(directory, &permissions) {
        let written = write(&mut file)?;
        settle(&file)?;
        let named = made.make_in(directory, |path| give_name(&file, path)).map_err(failed)?;
        named.persist(&target).map_err(|cause| failed(cause.error))?;
        return Ok(written);
    }
    // Gone by itself when something fails: on a full disk every byte counts.
    let mut temporary = made.tempfile_in(directory).map_err(failed)?;
    let written = write(temporary.as_file_mut())?;
    settle(temporary.as_file())?;
    temporary.persist(&target).map_err(|cause| failed(cause.error))?;
    Ok(written)
}

/// A file that has no name yet: whatever ends this process, nothing of it is left. `None` where there is no such thing.
fn unnamed(directory: &Path, permissions: &Permissions) -> Option<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(permissions.mode() & 0o777).custom_flags(OFlag::O_TMPFILE.bits());
    options.open(directory).ok()
}

fn give_name(file: &File, path: &Path) -> io::Result<()> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(AT_FDCWD, open.as_str(), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW).map_err(io::Error::from)
}

/// Where a path leads in the end, also where nothing is there yet. What lies below `/proc`, where `/dev/stdout` leads, stands for
/// itself: it is somebody's open file.
fn followed(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|there| there.is_symlink()) || path.starts_with("/proc") {
            return Ok(path);
        }
        let to = fs::read_link(&path)?;
        path = path.parent().map_or_else(|| to.clone(), |parent| parent.join(&to));
    }
    Err(io::Error::from(io::ErrorKind::InvalidInput))
}

/// The same with bytes at hand.
///
/// # Errors
/// When it cannot be written.
pub fn replace_with(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, |file| file.write_all(bytes).map_err(|cause| Error::writing(path, &cause)))
}

/// Waits until a file that was written is on the disk.
pub(crate) fn settle(path: &Path) -> Result<(), Error> {
    let file = File::open(path).and_then(|file| file.sync_all());
    file.map_err(|cause| Error::writing(path, &cause))
}

/// Reads a whole text.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|cause| Error::reading(path, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::thread;

    fn entries(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_link_is_followed_and_permissions_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let [file, link, dangling, new] = ["file", "link", "dangling", "new"].map(|name| place.path().join(name));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        symlink(&new, &dangling).unwrap();
        replace_with(&link, b"x").unwrap();
        replace_with(&dangling, b"y").unwrap();
        assert!(
            fs::symlink_metadata(&link).unwrap().is_symlink() && fs::symlink_metadata(&dangling).unwrap().is_symlink()
        );
        assert_eq!((fs::read(&file).unwrap(), fs::read(&new).unwrap()), (b"x".to_vec(), b"y".to_vec()));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(entries(place.path()), 4);
        let round = place.path().join("round");
        symlink("round", &round).unwrap();
        replace_with(&round, b"z").unwrap_err();
    }

    #[test]
    fn a_link_that_lies_where_a_temporary_file_might_is_not_written_through() {
        let place = tempfile::tempdir().unwrap();
        let (file, other) = (place.path().join("f"), place.path().join("other"));
        fs::write(&other, "precious").unwrap();
        symlink(&other, place.path().join("f.tmp")).unwrap();
        replace_with(&file, b"x").unwrap();
        assert_eq!((fs::read(&file).unwrap(), fs::read(&other).unwrap()), (b"x".to_vec(), b"precious".to_vec()));
    }

    #[test]
    fn while_a_file_is_written_nothing_lies_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("f");
        replace(&file, |to| {
            assert_eq!(entries(place.path()), 0, "whoever is killed now leaves nothing");
            to.write_all(b"x").map_err(|cause| Error::writing(&file, &cause))
        })
        .unwrap();
        assert_eq!((fs::read(&file).unwrap(), entries(place.path())), (b"x".to_vec(), 1));
    }

    #[test]
    fn pipes_and_devices_are_written_in_place() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).map(|_| text).unwrap()
            }
        });
        replace_with(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        replace_with(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file() && !fs::metadata(&pipe).unwrap().is_file());
        replace_with(place.path(), b"x").unwrap_err();
    }

    #[test]
    fn several_writers_leave_one_whole_file() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("f");
        thread::scope(|scope| {
            for letter in b'a'..b'g' {
                let file = &file;
                scope.spawn(move || (0..20).for_each(|_| replace_with(file, &[letter; 10_000]).unwrap()));
            }
        });
        let bytes = fs::read(&file).unwrap();
        assert!(bytes.len() == 10_000 && bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(entries(place.path()), 1);
    }
}
