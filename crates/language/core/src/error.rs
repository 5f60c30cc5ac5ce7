//! The one error that reaches a user: a sentence with its cause, who has to act, perhaps a hint.
//!
//! It travels from agents and from the emulator's process to the command unchanged. Libraries that are used by themselves
//! (`events`, `transfer`) keep errors of their own.

use alloc::format;
use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Who has to act; decides the exit code of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The specification or the command line wants what cannot be: exit code 2.
    Input,
    /// This machine or network cannot do it: exit code 3.
    Environment,
    /// The measurement failed on its way: exit code 1.
    Measurement,
    /// It was interrupted; not a failure by itself: exit code 130.
    Interrupted,
}

/// One sentence without a full stop, who has to act, perhaps a hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// Who has to act.
    pub blame: Blame,
    /// One sentence with the cause.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

/// What functions return that fail with an [`Error`] unless they say otherwise.
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl Error {
    /// With that blame.
    pub fn new(blame: Blame, message: impl Into<String>) -> Self {
        Self {
            blame,
            message: message.into(),
            hint: None,
        }
    }

    /// The specification or the command line is wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Blame::Input, message)
    }

    /// The machine or the network cannot do it.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(Blame::Environment, message)
    }

    /// The measurement failed on its way.
    pub fn measurement(message: impl Into<String>) -> Self {
        Self::new(Blame::Measurement, message)
    }

    /// It was interrupted.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::new(Blame::Interrupted, "interrupted before completion")
    }

    /// The same with that hint.
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

impl fmt::Display for Error {
    /// The sentence; the hint is for the caller to place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Error {}
