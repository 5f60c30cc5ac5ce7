//! Secrets of TLS sessions that traced programs write down (`SSLKEYLOGFILE`): where they write, and what they wrote so far. Where
//! `--decipher` asks for it, the file is the trace's own and goes with it; what the user's environment names is only read.

use crate::exit::{Error, Result};
use stackline_requests::Secrets;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The variable that names the file.
pub(super) const VARIABLE: &str = "SSLKEYLOGFILE";
/// Bytes that are read of it at once, at most.
const AT_ONCE: u64 = 1 << 20;

/// Where programs write their secrets.
#[derive(Debug)]
pub(super) struct KeyLog {
    path: PathBuf,
    /// The trace's own directory, which nobody else may enter.
    _own: Option<tempfile::TempDir>,
}

impl KeyLog {
    /// Of a trace: its own file, or the one that the environment names; `None`: programs are not asked for secrets.
    pub(super) fn of(decipher: bool) -> Result<Option<Self>> {
        let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        match (named, decipher) {
            (Some(path), _) => Ok(Some(Self { path, _own: None })),
            (None, false) => Ok(None),
            (None, true) => {
                let failed = |error| Error::environment(format!("no place for secrets of TLS can be made: {error}"));
                let own = tempfile::Builder::new().prefix("stackline-keys-").tempdir().map_err(failed)?;
                Ok(Some(Self { path: own.path().join("keys"), _own: Some(own) }))
            }
        }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what is written from now on.
    pub(super) fn reader(&self) -> Reader {
        let at = std::fs::metadata(&self.path).map_or(0, |known| known.len());
        Reader { path: self.path.clone(), at, secrets: Secrets::default(), learnt: 0 }
    }
}

/// What was written so far.
#[derive(Debug)]
pub(super) struct Reader {
    path: PathBuf,
    at: u64,
    pub(super) secrets: Secrets,
    /// How many secrets that was.
    pub(super) learnt: usize,
}

impl Reader {
    /// Learns the lines that have been written since. What is not there, or cannot be read, is none.
    pub(super) fn read(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(self.at)).and_then(|_| file.take(AT_ONCE).read_to_end(&mut bytes));
        // A line that is not whole is read again.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if read.is_ok() && whole > 0 {
            self.at += whole as u64;
            self.learnt += self.secrets.learn(&String::from_utf8_lossy(&bytes[..whole]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn lines_are_learnt_when_they_are_whole() {
        let keys = KeyLog::of(true).unwrap().unwrap();
        let mut reader = keys.reader();
        reader.read();
        let random = "ab".repeat(32);
        let mut file = File::create(keys.path()).unwrap();
        write!(file, "CLIENT_RANDOM {random} 01\nCLIENT_RANDOM {random} ").unwrap();
        reader.read();
        assert_eq!(reader.learnt, 1);
        writeln!(file, "02").unwrap();
        reader.read();
        reader.read();
        assert_eq!(reader.learnt, 2);
        assert_eq!(
            keys.reader().at,
            std::fs::metadata(keys.path()).unwrap().len(),
            "what was there before is not read"
        );
        let path = keys.path().to_path_buf();
        drop(keys);
        assert!(!path.exists());
    }
}
