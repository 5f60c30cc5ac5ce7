//! Reading a file that the user named, with a bound on its size.
//!
//! The user may name a pipe (`-`, `/dev/stdin`, `<(command)`, a FIFO): it is read as such, up to the bound. Devices, sockets and
//! directories are refused before a byte of them is read.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags};
use rustix::io::retry_on_intr;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// How long to wait until a program writes to a pipe that the user named.
const WRITER: Duration = Duration::from_secs(30);

/// Opens a regular file, or a pipe that the user named as such; `-` is standard input as it stands.
///
/// # Errors
/// The kernel's; `InvalidInput` with the reason if it is neither, `TimedOut` if nothing writes to a pipe for 30 s.
pub fn open(path: &Path) -> io::Result<File> {
    if path == Path::new("-") {
        return readable(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    }
    // Opening some devices has side effects, so their type is checked before they are opened.
    match kind(&rustix::fs::stat(path)?) {
        FileType::Fifo => return open_pipe(path, WRITER),
        FileType::Socket => return Err(refused(FileType::Socket)),
        device @ (FileType::CharacterDevice | FileType::BlockDevice) if !is_terminal(path) => {
            return Err(refused(device));
        }
        _ => {}
    }
    readable(
        File::options()
            .read(true)
            .custom_flags(OFlags::NOCTTY.bits() as i32)
            .open(path)?,
    )
}

/// Opens a pipe for reading and waits until data or the end is there to read.
fn open_pipe(path: &Path, patience: Duration) -> io::Result<File> {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let pipe = File::options()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    let mut waiting = [PollFd::new(&pipe, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: patience.as_secs().cast_signed(),
        tv_nsec: patience.subsec_nanos().into(),
    };
    if retry_on_intr(|| poll(&mut waiting, Some(&patience)))? == 0 {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "it is a pipe nobody is writing to",
        ));
    }
    rustix::fs::fcntl_setfl(&pipe, rustix::fs::fcntl_getfl(&pipe)? - OFlags::NONBLOCK)?;
    readable(pipe)
}

/// Accepts what can be read to an end: a regular file, a pipe, a socket (as standard input), or a terminal. Anything else is refused.
fn readable(file: File) -> io::Result<File> {
    match kind_of(&file)? {
        FileType::RegularFile | FileType::Fifo | FileType::Socket => Ok(file),
        FileType::CharacterDevice if file.is_terminal() => Ok(file),
        other => Err(refused(other)),
    }
}

/// Whether the path is a name of standard input, and that is a terminal.
fn is_terminal(path: &Path) -> bool {
    ["/dev/stdin", "/dev/tty", "/dev/fd/0", "/proc/self/fd/0"]
        .iter()
        .any(|name| path == Path::new(name))
        && io::stdin().is_terminal()
}

/// Opens a regular file whose name comes from a file of the user's. A pipe is refused, because a program may never write to it.
///
/// # Errors
/// As for [`open`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    match kind(&rustix::fs::stat(path)?) {
        FileType::RegularFile => {}
        other => return Err(refused(other)),
    }
    // The file may have been replaced since: do not block on opening, and check the open file again.
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    match kind_of(&file)? {
        FileType::RegularFile => Ok(file),
        other => Err(refused(other)),
    }
}

/// Reads the whole text of an open file: at most `most` bytes of UTF-8.
///
/// # Errors
/// As for [`read_text`].
pub fn read_text_of(file: File, most: u64) -> io::Result<String> {
    too_large(file.metadata()?.len(), most)?;
    text(bytes(file, most)?)
}

/// Reads a file that the user named: at most `most` bytes.
///
/// # Errors
/// As for [`open`]; `FileTooLarge` where it is longer.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    // The length of a pipe is 0 here; `bytes` checks again.
    too_large(file.metadata()?.len(), most)?;
    bytes(file, most)
}

/// Reads a text that the user named: at most `most` bytes of UTF-8.
///
/// # Errors
/// As for [`read_bounded`]; `InvalidData` where it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text(read_bounded(path, most)?)
}

/// Makes the creation or renaming of a file survive a crash of the machine: syncs the directory that it is in.
///
/// # Errors
/// The kernel's.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// All of a file, at most `most` bytes.
pub(crate) fn bytes(file: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    too_large(bytes.len() as u64, most)?;
    Ok(bytes)
}

/// An error if `size` is more than `most` bytes.
pub(crate) fn too_large(size: u64, most: u64) -> io::Result<()> {
    match size > most {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {most} bytes"),
        )),
        false => Ok(()),
    }
}

pub(crate) fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// The type of an open file.
pub(crate) fn kind_of(file: impl AsFd) -> io::Result<FileType> {
    Ok(kind(&rustix::fs::fstat(file)?))
}

fn kind(about: &rustix::fs::Stat) -> FileType {
    FileType::from_raw_mode(about.st_mode)
}

/// The error for a file of a type that is not read.
pub(crate) fn refused(kind: FileType) -> io::Error {
    let what = match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a link",
        _ => "of an unknown type",
    };
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {what}, but a regular file is expected"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_directories_are_refused_and_files_are_bounded() {
        let place = tempfile::tempdir().unwrap();
        for device in [Path::new("/dev/zero"), Path::new("/dev/null"), place.path()] {
            assert_eq!(
                open(device).unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{device:?}"
            );
        }
        let file = place.path().join("file");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_text(&file, 5).unwrap(), "12345");
        assert_eq!(
            read_bounded(&file, 4).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        let sparse = place.path().join("sparse");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(
            read_bounded(&sparse, 1 << 20).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn a_pipe_that_the_user_named_is_read() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        let writer = std::thread::spawn({
            let fifo = fifo.clone();
            move || std::fs::write(fifo, "piped").unwrap()
        });
        assert_eq!(read_text(&fifo, 100).unwrap(), "piped");
        writer.join().unwrap();
        let nobody = open_pipe(&fifo, Duration::from_millis(20)).unwrap_err();
        assert_eq!(nobody.kind(), io::ErrorKind::TimedOut);
    }
}
