//! The error of this crate: a sentence, its cause, and what to do about it.

use stackline_core::error::Blame;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Why a run directory could not be written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// One sentence without a full stop.
    pub message: String,
    /// The message of the system or of a library.
    pub cause: Option<String>,
    /// What the user can do.
    pub hint: String,
    /// Who has to act; `Interrupted` where the user ended the operation and nothing is wrong.
    pub blame: Blame,
    /// Whether there was no room on the disk, or the file would be longer than allowed.
    pub is_disk_full: bool,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            cause: None,
            hint: hint.into(),
            blame: Blame::Environment,
            is_disk_full: false,
        }
    }

    /// The error that what the caller named does not exist.
    pub(crate) fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            blame: Blame::Input,
            ..Self::new(message, hint)
        }
    }

    pub(crate) fn interrupted(message: &str) -> Self {
        Self {
            blame: Blame::Interrupted,
            ..Self::new(message, "")
        }
    }

    pub(crate) fn because(mut self, cause: &dyn fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    pub(crate) fn writing(path: &Path, cause: &dyn fmt::Display) -> Self {
        let hint = "check that the directory is writable and that the disk is not full, or set STACKLINE_RUNS to another directory";
        Self::new(format!("cannot write {}", path.display()), hint).because(cause)
    }

    /// The error that a write to a file failed.
    pub(crate) fn write_failed(path: &Path, cause: &io::Error) -> Self {
        let is_disk_full = matches!(
            cause.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        );
        Self {
            is_disk_full,
            ..Self::writing(path, cause)
        }
    }

    pub(crate) fn reading_events(path: &Path, cause: &dyn fmt::Display) -> Self {
        let hint = "the file is damaged, or is not an event file of this version of stackline; recreate it from its source, or remove it to read the other hosts' events";
        Self::new(format!("cannot read {}", path.display()), hint).because(cause)
    }

    /// The error that nothing can be read yet of a run that another process is writing.
    pub(crate) fn unfinished(run: &Path) -> Self {
        let message = format!(
            "the run at {} is incomplete: it is still being written, and nothing has been kept yet",
            run.display()
        );
        Self::new(
            message,
            "wait until the command that writes it has finished, then try again",
        )
    }

    pub(crate) fn damaged(path: &Path) -> Self {
        let hint = "restore the file, or run the specification again; results computed from this file would be wrong";
        Self::new(
            format!(
                "{} is damaged or belongs to another run: its checksum differs from the one in status.json",
                path.display()
            ),
            hint,
        )
    }

    pub(crate) fn damaged_events(path: &Path) -> Self {
        let hint = "restore it, or remove it to read the other hosts' events";
        Self {
            hint: hint.to_owned(),
            ..Self::damaged(path)
        }
    }

    pub(crate) fn reading(path: &Path, cause: &dyn fmt::Display) -> Self {
        let hint =
            "check that the run directory is readable and was written by this version of stackline";
        Self::new(format!("cannot read {}", path.display()), hint).because(cause)
    }
}

impl fmt::Display for Error {
    /// Writes the message and its cause, without the hint, which the caller prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{}: {cause}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for stackline_core::error::Error {
    fn from(error: Error) -> Self {
        match error.blame {
            Blame::Interrupted => Self::new(Blame::Interrupted, error.message),
            blame => Self::new(blame, error.to_string()).hint(error.hint),
        }
    }
}
