//! Writes a file completely or not at all. It replaces nothing that its caller may not write, and only regular files
//! are replaced; a pipe or a device is written as it is.

use crate::{Error, files};
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, posix_fallocate};
use nix::unistd::linkat;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// Most bytes of the target's name in the name of a temporary file; the rest of the name makes it unique.
const NAME_BYTES: usize = 200;

/// Writes a temporary file beside the target and renames it to the target: a reader sees the old file, or all of the
/// new one. Links are followed.
///
/// An existing file keeps its permissions and its owner, and is replaced only where it may be written. Where a rename
/// cannot keep them (another owner, several names for one file, a directory without write permission), the old file is
/// overwritten in place after the new contents are complete and disk space is reserved. A target that is not a regular
/// file (a pipe, a device, standard output) is written directly.
///
/// # Errors
/// When it cannot be written, or `write` fails; the old file is unchanged then.
pub fn replace<T, E: From<Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let failed = |cause: io::Error| E::from(Error::writing(path, &cause));
    let target = followed(path).map_err(failed)?;
    if let Some(mut stream) = stream(&target).map_err(failed)? {
        return write(&mut stream);
    }
    let old = Old::open(&target).map_err(failed)?;
    let mut new = New::beside(&target, old.as_ref()).map_err(failed)?;
    let written = write(new.file())?;
    new.take_place(&target, old).map_err(failed)?;
    Ok(written)
}

/// Like [`replace`], with these bytes.
///
/// # Errors
/// When it cannot be written.
pub fn replace_with(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, |file| {
        file.write_all(bytes)
            .map_err(|cause| Error::writing(path, &cause))
    })
}

/// Writes a file inside a run, completely or not at all. Whatever has the name is replaced: a link is not followed,
/// and a file with other names or another owner is not written into. A new file gets the permissions of its
/// directory's access; one that replaces a regular file keeps its permissions.
///
/// # Errors
/// When it cannot be written, or `write` fails; what was there before is unchanged then.
pub(crate) fn replace_inside<T, E: From<Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let failed = |cause: io::Error| E::from(Error::writing(path, &cause));
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let opened = File::options()
        .read(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY).bits())
        .open(directory);
    // The path of the run itself may be a link; its directory of events may not.
    let directory_file = if directory.ends_with(files::EVENTS) {
        opened
    } else {
        File::open(directory)
    }
    .map_err(failed)?;
    let old = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
    let permissions = old.map_or_else(|| files::permissions(path), |old| old.permissions());
    let mut new = match unnamed(directory, &permissions) {
        Some(file) => New::Unnamed(file),
        None => New::Named(
            named(&prefix(path))
                .permissions(permissions.clone())
                .tempfile_in(directory)
                .map_err(failed)?,
        ),
    };
    new.file().set_permissions(permissions).map_err(failed)?;
    let written = write(new.file())?;
    new.take_place(path, None)
        .and_then(|()| directory_file.sync_all())
        .map_err(failed)?;
    Ok(written)
}

/// Like [`replace_inside`], with these bytes.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn replace_inside_with(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace_inside(path, |file| {
        file.write_all(bytes)
            .map_err(|cause| Error::writing(path, &cause))
    })
}

/// The path without links, also where nothing exists yet. A path under `/proc`, where `/dev/stdout` leads, is returned
/// as it is, because it stands for a file that some process has opened.
fn followed(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40;
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(io::Error::from(ErrorKind::IsADirectory));
    }
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            path = fs::canonicalize(parent)?.join(name);
        }
        if path.starts_with("/proc") {
            return Ok(path);
        }
        let Ok(there) = fs::symlink_metadata(&path) else {
            return Ok(path);
        };
        if is_trap(&path, &there) {
            let what =
                "another user may have put it there, as all users can write to the directory";
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
        if !there.is_symlink() {
            return Ok(path);
        }
        let to = fs::read_link(&path)?;
        path = path
            .parent()
            .map_or_else(|| to.clone(), |parent| parent.join(&to));
    }
    Err(io::Error::from(nix::errno::Errno::ELOOP))
}

/// Whether a file in a directory that all users may write to could be a trap: it belongs neither to this user nor to
/// the directory's owner, or it is a regular file with several names. The kernel has the same rules in
/// `fs.protected_symlinks`, `protected_fifos` and `protected_hardlinks`, where they are enabled.
fn is_trap(path: &Path, there: &Metadata) -> bool {
    let Some(Ok(directory)) = path.parent().map(fs::metadata) else {
        return false;
    };
    let is_foreign =
        there.uid() != nix::unistd::geteuid().as_raw() && there.uid() != directory.uid();
    directory.mode() & 0o002 != 0 && (is_foreign || there.is_file() && there.nlink() > 1)
}

/// The target opened for direct writing, if it is not a regular file. For this process's own standard output or error
/// the open descriptor is duplicated: opening the path again would write from the beginning of the file.
fn stream(target: &Path) -> io::Result<Option<File>> {
    let own =
        |number: u32| target == Path::new(&format!("/proc/{}/fd/{number}", std::process::id()));
    let open = match () {
        () if own(1) => Some(io::stdout().as_fd().try_clone_to_owned()?),
        () if own(2) => Some(io::stderr().as_fd().try_clone_to_owned()?),
        () => None,
    };
    if open.is_some() {
        return Ok(open.map(File::from));
    }
    let is_stream =
        target.starts_with("/proc") || fs::metadata(target).is_ok_and(|there| !there.is_file());
    if is_stream {
        File::options().write(true).open(target).map(Some)
    } else {
        Ok(None)
    }
}

/// The regular file at the target.
struct Old {
    file: File,
    about: Metadata,
}

impl Old {
    /// Opens the target; `None` when it does not exist, an error when it may not be written.
    fn open(target: &Path) -> io::Result<Option<Self>> {
        match File::options().write(true).open(target) {
            Ok(file) => Ok(Some(Self {
                about: file.metadata()?,
                file,
            })),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// Copies the new file over this one. Disk space for all of it is reserved before the first byte is overwritten.
    fn overwrite(mut self, new: &mut File) -> io::Result<()> {
        let length = new.metadata()?.len();
        // Room first: a full disk must not leave half of the new file in the old one.
        if length > self.about.len()
            && let Err(cause) = posix_fallocate(&self.file, 0, length as i64)
        {
            self.file.set_len(self.about.len())?;
            return Err(cause.into());
        }
        new.rewind()?;
        io::copy(new, &mut self.file)?;
        self.file.set_len(length)?;
        self.file.sync_all()
    }
}

/// The new file.
enum New {
    /// Without a name (`O_TMPFILE`) until it is complete: if the process ends before, nothing is left.
    Unnamed(File),
    /// Where the file system has no such files: a named temporary file, which is removed on failure.
    Named(NamedTempFile),
    /// A file whose contents will be copied over the old file.
    Aside(File),
}

impl New {
    /// Creates the new file for a target: in its directory, with the permissions of the old file.
    fn beside(target: &Path, old: Option<&Old>) -> io::Result<Self> {
        let directory = target.parent().unwrap_or(Path::new("/"));
        let permissions = old.map_or_else(
            || Permissions::from_mode(0o666),
            |old| old.about.permissions(),
        );
        let aside = || {
            unnamed(directory, &Permissions::from_mode(0o600))
                .map_or_else(stackline_guard::scratch::create_file, Ok)
        };
        // A new file would leave the old contents under the other names.
        if old.is_some_and(|old| old.about.nlink() > 1) {
            return aside().map(Self::Aside);
        }
        if let Some(file) = unnamed(directory, &permissions) {
            return Ok(Self::Unnamed(file));
        }
        match named(&prefix(target))
            .permissions(permissions)
            .tempfile_in(directory)
        {
            // The file may be written, but not its directory.
            Err(cause) if old.is_some() && cause.kind() == ErrorKind::PermissionDenied => {
                aside().map(Self::Aside)
            }
            made => made.map(Self::Named),
        }
    }

    fn file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file) | Self::Aside(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Replaces the target, or creates it.
    fn take_place(mut self, target: &Path, old: Option<Old>) -> io::Result<()> {
        if let Some(old) = old
            && (matches!(self, Self::Aside(_)) || like(self.file(), &old.about).is_err())
        {
            return old.overwrite(self.file());
        }
        self.file().sync_all()?;
        match self {
            Self::Unnamed(file) | Self::Aside(file) => {
                let parent = target.parent().unwrap_or(Path::new("/"));
                let directory = if parent.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    parent
                };
                let named =
                    named(&prefix(target)).make_in(directory, |path| give_name(&file, path))?;
                named.persist(target).map_err(|cause| cause.error)
            }
            Self::Named(file) => file.persist(target).map(drop).map_err(|cause| cause.error),
        }
    }
}

/// Gives a new file the owner and the permissions of an old one.
fn like(new: &File, old: &Metadata) -> io::Result<()> {
    let about = new.metadata()?;
    if (about.uid(), about.gid()) != (old.uid(), old.gid()) {
        fchown(new, Some(old.uid()), Some(old.gid()))?;
    }
    // Restores permissions that the umask removed.
    new.set_permissions(old.permissions())
}

/// The beginning of the name of a temporary file.
fn prefix(target: &Path) -> OsString {
    let name = target.file_name().unwrap_or_default().as_bytes();
    let mut prefix = OsString::from(".");
    prefix.push(OsStr::from_bytes(&name[..name.len().min(NAME_BYTES)]));
    prefix
}

fn named(prefix: &OsStr) -> Builder<'_, 'static> {
    Builder::new().prefix(prefix).suffix(".tmp").clone()
}

/// A file without a name; `None` where the file system does not support it.
fn unnamed(directory: &Path, permissions: &Permissions) -> Option<File> {
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .mode(permissions.mode() & 0o777)
        .custom_flags(OFlag::O_TMPFILE.bits());
    options.open(directory).ok()
}

/// Links a file without a name to a path.
fn give_name(file: &File, path: &Path) -> io::Result<()> {
    // Naming an unnamed file in this way needs no privilege (open(2), O_TMPFILE).
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(
        AT_FDCWD,
        open.as_str(),
        AT_FDCWD,
        path,
        AtFlags::AT_SYMLINK_FOLLOW,
    )
    .map_err(io::Error::from)
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
        let [file, link, dangling, new] =
            ["file", "link", "dangling", "new"].map(|name| place.path().join(name));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        symlink(&new, &dangling).unwrap();
        replace_with(&link, b"x").unwrap();
        replace_with(&dangling, b"y").unwrap();
        assert!(
            fs::symlink_metadata(&link).unwrap().is_symlink()
                && fs::symlink_metadata(&dangling).unwrap().is_symlink()
        );
        assert_eq!(
            (fs::read(&file).unwrap(), fs::read(&new).unwrap()),
            (b"x".to_vec(), b"y".to_vec())
        );
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
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
        assert_eq!(
            (fs::read(&file).unwrap(), fs::read(&other).unwrap()),
            (b"x".to_vec(), b"precious".to_vec())
        );
    }

    #[test]
    fn while_a_file_is_written_nothing_lies_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("f");
        replace(&file, |to| {
            assert_eq!(
                entries(place.path()),
                0,
                "whoever is killed now leaves nothing"
            );
            to.write_all(b"x")
                .map_err(|cause| Error::writing(&file, &cause))
        })
        .unwrap();
        assert_eq!(
            (fs::read(&file).unwrap(), entries(place.path())),
            (b"x".to_vec(), 1)
        );
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
                File::open(pipe)
                    .unwrap()
                    .read_to_string(&mut text)
                    .map(|_| text)
                    .unwrap()
            }
        });
        replace_with(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        replace_with(Path::new("/dev/null"), b"gone").unwrap();
        assert!(
            !fs::metadata("/dev/null").unwrap().is_file()
                && !fs::metadata(&pipe).unwrap().is_file()
        );
        replace_with(place.path(), b"x").unwrap_err();
    }

    #[test]
    fn what_may_not_be_written_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("f");
        fs::write(&file, "precious").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        // Whoever may write every file may write this one.
        let permitted = File::options().write(true).open(&file).is_ok();
        assert_eq!(replace_with(&file, b"x").is_ok(), permitted);
        assert_eq!(fs::read(&file).unwrap() == b"precious", !permitted);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o444
        );
        let new = format!("{}/", place.path().join("new").display());
        replace_with(Path::new(&new), b"x").unwrap_err();
        assert_eq!(entries(place.path()), 1);
    }

    #[test]
    fn a_file_with_two_names_keeps_both_and_is_all_there() {
        let place = tempfile::tempdir().unwrap();
        let (file, other) = (place.path().join("f"), place.path().join("other"));
        fs::write(&file, "longer than what comes").unwrap();
        fs::hard_link(&file, &other).unwrap();
        for bytes in [&b"short"[..], b"longer than it was before, by far"] {
            replace_with(&file, bytes).unwrap();
            assert_eq!(
                (fs::read(&file).unwrap(), fs::read(&other).unwrap()),
                (bytes.to_vec(), bytes.to_vec())
            );
        }
        let stopped = |to: &mut File| {
            to.write_all(b"half").unwrap();
            Err::<(), _>(Error::writing(&file, &"no more"))
        };
        replace(&file, stopped).unwrap_err();
        assert_eq!(
            (fs::read(&other).unwrap().len(), entries(place.path())),
            (33, 2)
        );
    }

    #[test]
    fn another_owner_stays_the_owner() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("f");
        fs::write(&file, "x").unwrap();
        // Who may not give files away has none of another owner here.
        let given = fchown(File::open(&file).unwrap(), Some(1234), Some(1235)).is_ok();
        replace_with(&file, b"y").unwrap();
        let about = fs::metadata(&file).unwrap();
        assert_eq!((about.uid(), about.gid()) == (1234, 1235), given);
        assert_eq!(fs::read(&file).unwrap(), b"y");
    }

    #[test]
    fn a_name_may_be_as_long_as_names_are() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("x".repeat(255));
        replace_with(&file, b"x").unwrap();
        replace_with(&file, b"y").unwrap();
        assert_eq!(
            (fs::read(&file).unwrap(), entries(place.path())),
            (b"y".to_vec(), 1)
        );
        assert_eq!(prefix(&file).len(), 1 + NAME_BYTES);
    }

    #[test]
    fn several_writers_leave_one_whole_file() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("f");
        thread::scope(|scope| {
            for letter in b'a'..b'g' {
                let file = &file;
                scope.spawn(move || {
                    (0..20).for_each(|_| replace_with(file, &[letter; 10_000]).unwrap())
                });
            }
        });
        let bytes = fs::read(&file).unwrap();
        assert!(bytes.len() == 10_000 && bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(entries(place.path()), 1);
    }
}
