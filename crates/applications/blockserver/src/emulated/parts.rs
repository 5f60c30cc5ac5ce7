//! The parts of an emulated session: what a process on a host has to do, and that process. A part is passed as one value in a file, not as
//! a command line, so that no option can be forgotten.

use crate::block_session::BlockSessionRequest;
use serde::{Deserialize, Serialize};
use stackline_core::error::{Error, Result};
use stackline_guard::scratch;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a part may take to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// The largest file of a part, bytes.
const LONGEST: u64 = 1 << 20;

/// What one process of a session does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum BlockPart {
    /// It is the master.
    Master(MasterPart),
    /// It is a disk server.
    Server(ServerPart),
    /// It is the client.
    Session(Box<SessionPart>),
}

/// A master. It ends when its standard input is closed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MasterPart {
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// The directory in which it stores its state.
    pub data: PathBuf,
    /// The path of the key file.
    pub key: PathBuf,
}

/// A disk server. It ends when its standard input is closed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerPart {
    /// Its name.
    pub name: String,
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// The master's address.
    pub master: String,
    /// The path of the key file.
    pub key: PathBuf,
    /// The paths of its disks.
    pub disks: Vec<PathBuf>,
    /// How long a read takes, in words; `None`: as long as it does.
    pub disk_time: Option<String>,
    /// Bytes of its memory cache.
    pub cache: u64,
    /// The send buffer of each client's connection, bytes.
    pub send_buffer: Option<u64>,
}

/// The client's session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionPart {
    /// What the client requests.
    pub request: BlockSessionRequest,
    /// Whether the figures are printed as JSON.
    pub json: bool,
}

impl BlockPart {
    /// Writes the part to a file that only this user can read.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::environment(format!("cannot write {}: {error}", path.display()))
        };
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| failed(&error))?;
        serde_json::to_writer(file, self).map_err(|error| failed(&error))
    }

    /// Reads a part from a file.
    ///
    /// # Errors
    /// If it cannot be read, or does not hold a part.
    pub fn read(path: &Path) -> Result<Self> {
        let text = stackline_guard::files::read_text(path, LONGEST)
            .map_err(|error| Error::input(format!("cannot read {}: {error}", path.display())))?;
        serde_json::from_str(&text).map_err(|error| {
            Error::input(format!(
                "{} does not describe a part of a session: {error}",
                path.display()
            ))
        })
    }
}

/// A running process of a part. It ends when its standard input is closed.
#[derive(Debug)]
pub(crate) struct PartProcess(Child);

impl PartProcess {
    /// Starts the process, and waits for its first line, which it prints when it listens.
    ///
    /// # Errors
    /// If it ends before, with its own words.
    pub(crate) fn start(mut command: Command, host: &str) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::environment(format!("cannot start a program on {host}: {error}"))
        };
        // What it prints is kept in a file for error messages, and not shown: those lines are for people who run a part by hand.
        let words = scratch::create_file().map_err(failed)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(words.try_clone().map_err(failed)?);
        let mut process = Self(command.spawn().map_err(failed)?);
        let mut line = String::new();
        if let Some(out) = process.0.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(failed)?;
        }
        if line.is_empty() {
            drop(process);
            return Err(ended_at_once(host, words));
        }
        Ok(process)
    }
}

/// Why a process did not start: its error, or else the last line that it printed.
fn ended_at_once(host: &str, mut words: File) -> Error {
    let mut said = String::new();
    let _ = words
        .rewind()
        .and_then(|()| words.take(LONGEST).read_to_string(&mut said));
    let reason = said
        .lines()
        .find_map(|line| line.strip_prefix("error: "))
        .or_else(|| said.lines().last());
    let message = format!("the process on {host} exited immediately");
    match reason {
        None => Error::environment(message),
        Some(reason) => {
            let error = Error::environment(format!("{message}: {reason}"));
            let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
            match hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }
    }
}

impl Drop for PartProcess {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let until = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.0.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_at_start_shows_its_own_words() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo note: x >&2; echo 'error: no disk' >&2; echo 'hint: buy one' >&2",
        ]);
        let error = PartProcess::start(command, "rack1").unwrap_err();
        assert_eq!(
            (error.message.as_str(), error.hint.as_deref()),
            (
                "the process on rack1 exited immediately: no disk",
                Some("buy one")
            )
        );
    }

    #[test]
    fn a_part_that_listens_runs_until_its_input_ends() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo listening; cat > /dev/null"]);
        drop(PartProcess::start(command, "rack1").unwrap());
    }
}
