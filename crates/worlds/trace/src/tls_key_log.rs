//! Reads the secrets of TLS sessions that traced programs write down (`SSLKEYLOGFILE`). With `--decipher` the file belongs to the
//! trace and is removed with it; a file that the user's environment names is only read.
//!
//! On this machine the trace's file has no name: programs open it as a descriptor of the trace (`/proc/PID/fd/N`), which the kernel
//! allows only to this user. Programs on hosts have other process IDs and do not see the trace, so their file has a name, in a
//! directory that nobody else may enter.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::{Mode, fchmod};
use stackline_core::error::{Error, Result};
use stackline_guard::scratch::{self, ScratchDirectory};
use stackline_requests::Secrets;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The variable that names the file.
pub(crate) const VARIABLE: &str = "SSLKEYLOGFILE";
/// The most bytes of the file that are read at once.
const AT_ONCE: u64 = 1 << 20;

/// The file into which programs write their TLS secrets.
#[derive(Debug)]
pub(crate) struct KeyLog {
    path: PathBuf,
    _own: KeyLogOwnership,
}

/// What of the file belongs to the trace.
#[derive(Debug)]
enum KeyLogOwnership {
    /// Nothing: the user's environment names the file.
    Nothing,
    /// A memory file (memfd), which ends with its last descriptor.
    Memory { _file: OwnedFd },
    /// A directory with the file, removed at the end, and also if the trace is killed.
    Directory { _directory: ScratchDirectory },
}

impl KeyLog {
    /// The file of a trace: the one that the environment names, or its own if `decipher`; `None`: programs are not asked for
    /// secrets. `on_hosts`: they run on hosts of a network.
    pub(crate) fn start(decipher: bool, on_hosts: bool) -> Result<Option<Self>> {
        let named = std::env::var_os(VARIABLE)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        let failed = |error| {
            Error::environment(format!(
                "cannot create a directory for TLS secrets: {error}"
            ))
        };
        match (named, decipher) {
            (Some(path), _) => Ok(Some(Self {
                path,
                _own: KeyLogOwnership::Nothing,
            })),
            (None, false) => Ok(None),
            (None, true) if on_hosts => in_a_directory().map(Some).map_err(failed),
            (None, true) => in_memory().map(Some).map_err(failed),
        }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A reader of what is written to the file from now on.
    pub(crate) fn reader(&self) -> KeyLogReader {
        let at = std::fs::metadata(&self.path).map_or(0, |known| known.len());
        KeyLogReader {
            path: self.path.clone(),
            at,
            secrets: Secrets::default(),
            learnt: 0,
        }
    }
}

fn in_memory() -> io::Result<KeyLog> {
    let file = memfd_create("stackline-keys", MFdFlags::MFD_CLOEXEC)?;
    fchmod(&file, Mode::S_IRUSR | Mode::S_IWUSR)?;
    let path = PathBuf::from(format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        file.as_raw_fd()
    ));
    Ok(KeyLog {
        path,
        _own: KeyLogOwnership::Memory { _file: file },
    })
}

fn in_a_directory() -> io::Result<KeyLog> {
    let directory = scratch::create_directory("keys")?;
    let path = directory.path().join("keys");
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    Ok(KeyLog {
        path,
        _own: KeyLogOwnership::Directory {
            _directory: directory,
        },
    })
}

/// The secrets that were written so far.
#[derive(Debug)]
pub(crate) struct KeyLogReader {
    path: PathBuf,
    /// The offset in the file up to which was read.
    at: u64,
    pub(crate) secrets: Secrets,
    /// How many secrets were read.
    pub(crate) learnt: usize,
}

impl KeyLogReader {
    /// Reads the lines that were written since the last call. If the file cannot be read, nothing is learnt.
    pub(crate) fn read(&mut self) {
        let Ok(mut file) = File::open(&self.path) else {
            return;
        };
        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(self.at))
            .and_then(|_| file.take(AT_ONCE).read_to_end(&mut bytes));
        // An incomplete line is read again next time.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        if read.is_ok() && whole > 0 {
            self.at += whole as u64;
            self.learnt += self
                .secrets
                .learn(&String::from_utf8_lossy(&bytes[..whole]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn lines_are_learnt_when_they_are_whole() {
        for on_hosts in [false, true] {
            let keys = KeyLog::start(true, on_hosts).unwrap().unwrap();
            let mut reader = keys.reader();
            reader.read();
            let random = "ab".repeat(32);
            // As programs open it (`fopen(path, "a")`), and others of their user.
            let mut file = File::options()
                .append(true)
                .create(true)
                .open(keys.path())
                .unwrap();
            write!(file, "CLIENT_RANDOM {random} 01\nCLIENT_RANDOM {random} ").unwrap();
            reader.read();
            assert_eq!(reader.learnt, 1);
            let mut again = File::options().append(true).open(keys.path()).unwrap();
            writeln!(again, "02").unwrap();
            reader.read();
            reader.read();
            assert_eq!(reader.learnt, 2);
            let path = keys.path().to_path_buf();
            let known = std::fs::metadata(&path).unwrap();
            assert_eq!(
                keys.reader().at,
                known.len(),
                "what was there before is not read"
            );
            assert_eq!(known.mode() & 0o777, 0o600);
            let directory = std::fs::metadata(path.parent().unwrap()).unwrap();
            assert!(
                !on_hosts || directory.mode() & 0o777 == 0o700,
                "nobody else may enter"
            );
            drop((keys, file, again));
            // Another thread's file may have the number of the descriptor by now.
            let same =
                |there: std::fs::Metadata| (there.dev(), there.ino()) == (known.dev(), known.ino());
            assert!(!std::fs::metadata(&path).is_ok_and(same));
        }
    }
}
