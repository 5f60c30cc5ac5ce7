//! What went wrong, who is to blame and what to try; it travels from agents to the coordinator unchanged.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// Whose fault it is; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The specification or the command line asks for what cannot be: exit code 2.
    Input,
    /// This machine or network cannot do it: exit code 3.
    Environment,
    /// The measurement failed on its way: exit code 1.
    Measurement,
    /// It was asked to end; not a failure by itself.
    Ended,
}

/// One sentence, its blame, perhaps a hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Whose fault.
    pub blame: Blame,
    /// One sentence with the cause.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

/// What most functions here return.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A fault of the specification or command line.
    pub fn input(message: impl Into<String>) -> Self {
        Self { blame: Blame::Input, message: message.into(), hint: None }
    }

    /// A fault of the machine or the network.
    pub fn environment(message: impl Into<String>) -> Self {
        Self { blame: Blame::Environment, message: message.into(), hint: None }
    }

    /// A measurement that failed on its way.
    pub fn measurement(message: impl Into<String>) -> Self {
        Self { blame: Blame::Measurement, message: message.into(), hint: None }
    }

    /// It was asked to end.
    #[must_use]
    pub fn ended() -> Self {
        Self { blame: Blame::Ended, message: "it was ended before it was done".into(), hint: None }
    }

    /// A system call that failed during the measurement; a lack of memory is the machine's.
    #[must_use]
    pub fn io(what: &str, error: &io::Error) -> Self {
        let message = format!("{what} failed: {error}");
        if error.kind() == io::ErrorKind::OutOfMemory { Self::environment(message) } else { Self::measurement(message) }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with words before the message.
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
