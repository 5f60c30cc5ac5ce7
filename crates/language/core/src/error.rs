//! The error that reaches a user: one sentence with the cause, who has to act, and perhaps a hint.
//!
//! It is passed unchanged from agents and from the emulator's process to the command. Libraries that are used by
//! themselves (`events`, `transfer`) have error types of their own.

use alloc::format;
use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Who has to act; decides the exit code of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The specification or the command line asks for something impossible: exit code 2.
    Input,
    /// This machine or network cannot do what was asked: exit code 3.
    Environment,
    /// The measurement began and failed: exit code 1.
    Measurement,
    /// The user interrupted it, which is not a failure: exit code 130.
    Interrupted,
}

/// One sentence without a full stop, who has to act, and perhaps a hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// Who has to act.
    pub blame: Blame,
    /// One sentence with the cause.
    pub message: String,
    /// What the user can try.
    pub hint: Option<String>,
}

/// The result of functions that fail with an [`Error`] unless another error type is given.
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl Error {
    /// An error without a hint.
    pub fn new(blame: Blame, message: impl Into<String>) -> Self {
        Self {
            blame,
            message: message.into(),
            hint: None,
        }
    }

    /// An error of the specification or the command line.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Blame::Input, message)
    }

    /// An error of the machine or the network.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(Blame::Environment, message)
    }

    /// An error of a measurement that began and failed.
    pub fn measurement(message: impl Into<String>) -> Self {
        Self::new(Blame::Measurement, message)
    }

    /// The error of an interrupted command.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::new(Blame::Interrupted, "interrupted before completion")
    }

    /// The same error with that hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with `place: ` before its message.
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    /// Writes the sentence without the hint, which the caller prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Error {}
