//! Files inside a directory that another user may have made: regular files only, no links, nothing outside of it, nothing that blocks.
//!
//! Each component of a path is opened inside the one before with `O_NOFOLLOW`, so that no link and no `..` leads out, even if the
//! directory is changed meanwhile.

use crate::files::{bytes, kind_of, refused, text, too_large};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path};

/// Flags for a directory on the way to a file.
const STEP: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Flags for a file to read.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// Flags for a file to create.
const CREATE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
}

impl Directory {
    /// Opens a directory that the user named. Links in its path are followed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            descriptor: rustix::fs::open(path, flags, Mode::empty())?,
        })
    }

    /// Opens a regular file in it, or below it.
    ///
    /// # Errors
    /// The kernel's; `InvalidInput` with the reason if it is not a regular file, or its name points outside the directory.
    pub fn open_file(&self, name: &Path) -> io::Result<File> {
        let (below, last) = self.parent_of(name)?;
        let opened = rustix::fs::openat(
            below.as_ref().unwrap_or(&self.descriptor),
            &last,
            READ,
            Mode::empty(),
        );
        let file = File::from(opened.map_err(explained)?);
        match kind_of(&file)? {
            FileType::RegularFile => Ok(file),
            other => Err(refused(other)),
        }
    }

    /// Reads a regular file in it: at most `most` bytes.
    ///
    /// # Errors
    /// As for [`Self::open_file`]; `FileTooLarge` where it is longer.
    pub fn read(&self, name: &Path, most: u64) -> io::Result<Vec<u8>> {
        let file = self.open_file(name)?;
        // Refuse a file that is too long before reading any of it.
        too_large(file.metadata()?.len(), most)?;
        bytes(file, most)
    }

    /// Reads a text in it: at most `most` bytes of UTF-8.
    ///
    /// # Errors
    /// As for [`Self::read`]; `InvalidData` where it is not UTF-8.
    pub fn read_text(&self, name: &Path, most: u64) -> io::Result<String> {
        text(self.read(name, most)?)
    }

    /// Opens a regular file in it for appending. If there is none, creates it, readable and writable by this user only.
    ///
    /// # Errors
    /// As for [`Self::open_file`].
    pub fn append(&self, name: &Path) -> io::Result<File> {
        let (below, last) = self.parent_of(name)?;
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let directory = below.as_ref().unwrap_or(&self.descriptor);
        let file = File::from(
            rustix::fs::openat(directory, &last, flags, Mode::RUSR | Mode::WUSR)
                .map_err(explained)?,
        );
        match kind_of(&file)? {
            FileType::RegularFile => Ok(file),
            other => Err(refused(other)),
        }
    }

    /// The names in a directory inside it (in the directory itself for an empty path), in no particular order.
    ///
    /// # Errors
    /// The kernel's; `InvalidInput` if there are more than `most`.
    pub fn names(&self, below: &Path, most: usize) -> io::Result<Vec<OsString>> {
        let directory = match below.components().next() {
            None => self.descriptor.try_clone()?,
            Some(_) => self.step(below)?,
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name == b"." || name == b".." {
                continue;
            }
            if names.len() == most {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("it contains more than {most} files"),
                ));
            }
            names.push(OsString::from_vec(name));
        }
        Ok(names)
    }

    /// Writes a file in it atomically, readable and writable by this user only: under another name first, then renamed. A link with that
    /// name is replaced, not followed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn replace(&self, name: &Path, content: &[u8]) -> io::Result<()> {
        let (below, last) = self.parent_of(name)?;
        let directory = below.as_ref().unwrap_or(&self.descriptor);
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let fresh = format!(".new-{:016x}", u64::from_ne_bytes(random));
        let mut file = File::from(rustix::fs::openat(
            directory,
            &fresh,
            CREATE,
            Mode::RUSR | Mode::WUSR,
        )?);
        let written = file
            .write_all(content)
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(rustix::fs::renameat(directory, &fresh, directory, &last)?));
        match written {
            Ok(()) => Ok(rustix::fs::fsync(directory)?),
            Err(error) => {
                let _ = rustix::fs::unlinkat(directory, &fresh, AtFlags::empty());
                Err(error)
            }
        }
    }

    /// Whether it belongs to this user.
    #[must_use]
    pub fn is_own(&self) -> bool {
        rustix::fs::fstat(&self.descriptor)
            .is_ok_and(|about| about.st_uid == rustix::process::geteuid().as_raw())
    }

    /// The directory that the last component of a name is in (`None` for this one), and that component.
    fn parent_of(&self, name: &Path) -> io::Result<(Option<OwnedFd>, OsString)> {
        let last = name.file_name().ok_or_else(outside)?.to_owned();
        let parent = name
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        Ok((parent.map(|parent| self.step(parent)).transpose()?, last))
    }

    /// Opens a directory inside this one, component by component.
    fn step(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut at = None::<OwnedFd>;
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(outside());
            };
            let from = at
                .as_ref()
                .map_or_else(|| self.descriptor.as_fd(), AsFd::as_fd);
            let opened =
                rustix::fs::openat(from, name, STEP, Mode::empty()).map_err(|error| match error {
                    // The kernel also answers ENOTDIR for a link, so look which it is.
                    Errno::NOTDIR => rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)
                        .map_or_else(
                            |_| error.into(),
                            |about| not_a_directory(FileType::from_raw_mode(about.st_mode)),
                        ),
                    other => explained(other),
                });
            at = Some(opened?);
        }
        at.ok_or_else(outside)
    }
}

/// The error for a component of a path that is not a directory.
fn not_a_directory(kind: FileType) -> io::Error {
    let what = if kind == FileType::Symlink {
        "a link"
    } else {
        "a file"
    };
    io::Error::new(
        io::ErrorKind::NotADirectory,
        format!("it is {what}, but a directory is expected"),
    )
}

fn outside() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "its name points outside the directory",
    )
}

/// Replaces the kernel's error for a link (with `O_NOFOLLOW`) and for a socket by one that says so in words.
fn explained(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => refused(FileType::Symlink),
        Errno::NXIO => refused(FileType::Socket),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_regular_files_inside_are_read_and_nothing_blocks() {
        let place = tempfile::tempdir().unwrap();
        let (secret, run) = (place.path().join("secret"), place.path().join("run"));
        std::fs::write(&secret, "precious").unwrap();
        std::fs::create_dir_all(run.join("events")).unwrap();
        std::fs::write(run.join("events/host"), "ours").unwrap();
        symlink(&secret, run.join("link")).unwrap();
        symlink(place.path(), run.join("up")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, run.join("fifo"), 0o600.into()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(run.join("socket")).unwrap();
        File::create(run.join("sparse"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let directory = Directory::open(&run).unwrap();
        assert_eq!(
            directory.read_text(Path::new("events/host"), 100).unwrap(),
            "ours"
        );
        let refused = [
            "link",
            "up/secret",
            "../secret",
            "fifo",
            "socket",
            "events",
            "/etc/hostname",
        ];
        for name in refused {
            let error = directory.read(Path::new(name), 100).unwrap_err();
            let is_refused =
                [io::ErrorKind::InvalidInput, io::ErrorKind::NotADirectory].contains(&error.kind());
            assert!(is_refused, "{name}: {error:?}");
        }
        assert_eq!(
            directory.read(Path::new("sparse"), 100).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        let mut names = directory.names(Path::new(""), 10).unwrap();
        names.sort();
        assert_eq!(names, ["events", "fifo", "link", "socket", "sparse", "up"]);
        assert!(directory.names(Path::new(""), 5).is_err());
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (secret, run) = (place.path().join("secret"), place.path().join("run"));
        std::fs::write(&secret, "precious").unwrap();
        std::fs::create_dir(&run).unwrap();
        symlink(&secret, run.join("findings.json")).unwrap();
        let directory = Directory::open(&run).unwrap();
        directory
            .replace(Path::new("findings.json"), b"found")
            .unwrap();
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "precious");
        let about = std::fs::symlink_metadata(run.join("findings.json")).unwrap();
        assert!(about.is_file());
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        assert_eq!(directory.names(Path::new(""), 10).unwrap().len(), 1);
        assert!(directory.is_own());
    }
}
