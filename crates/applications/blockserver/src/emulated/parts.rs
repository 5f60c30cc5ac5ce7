//! What a process on a host of a session is given to do, and the process while it does it. A part is one value that is handed over whole:
//! nothing of it is written as a command line, where something could be forgotten.

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
/// The longest part that is read, bytes.
const LONGEST: u64 = 1 << 20;

/// A part of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum BlockPart {
    /// The master.
    Master(MasterPart),
    /// A disk server.
    Server(ServerPart),
    /// The client.
    Session(Box<SessionPart>),
}

/// A master; it ends when its standard input does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MasterPart {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where it remembers.
    pub data: PathBuf,
    /// The file of the key.
    pub key: PathBuf,
}

/// A disk server; it ends when its standard input does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerPart {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The master's address.
    pub master: String,
    /// The file of the key.
    pub key: PathBuf,
    /// Its disks.
    pub disks: Vec<PathBuf>,
    /// What a read of one takes, in words.
    pub disk_time: Option<String>,
    /// Its memory for blocks.
    pub cache: u64,
    /// The send buffer of each client's connection.
    pub send_buffer: Option<u64>,
}

/// The client's session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionPart {
    /// What it asks for.
    pub request: BlockSessionRequest,
    /// What it came to is printed as JSON.
    pub json: bool,
}

impl BlockPart {
    /// Writes it where this user alone can read it.
    ///
    /// # Errors
    /// When it cannot be written.
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

    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read, or is no part.
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

/// A process on a host; it ends when its standard input does.
#[derive(Debug)]
pub(crate) struct PartProcess(Child);

impl PartProcess {
    /// Starts it, and waits for its first line, which it prints when it listens.
    ///
    /// # Errors
    /// When it ends before, with its own words.
    pub(crate) fn start(mut command: Command, host: &str) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::environment(format!("cannot start a program on {host}: {error}"))
        };
        // What it says of itself while it runs is for those who run one by hand.
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

/// Why a process did not begin: its error, else the last that it said.
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
