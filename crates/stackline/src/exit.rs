//! Exit codes and how an error looks: one sentence with its cause, then `hint:`.

use crate::output;
use stackline_live::fault::{Blame, Fault};
use std::fmt;
use std::process::ExitCode;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done.
    Done,
    /// 1: the measurement failed on its way.
    Failed,
    /// 2: the specification or the command line is wrong.
    Input,
    /// 3: this machine or network cannot do it.
    Environment,
    /// 130: interrupted (Ctrl-C or SIGTERM).
    Interrupted,
    /// That of the program that was run on a host.
    Program(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Input => 2,
            Exit::Environment => 3,
            Exit::Interrupted => 130,
            Exit::Program(code) => code,
        })
    }
}

/// What every command returns.
pub(crate) type Result<T = Exit> = std::result::Result<T, Error>;

/// An error as the user sees it.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) exit: Exit,
    message: String,
    hint: Option<String>,
}

impl Error {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(Exit::Input, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Mistakes that were already shown.
    pub(crate) const fn shown() -> Self {
        Self { exit: Exit::Input, message: String::new(), hint: None }
    }

    /// An error that somebody else shows.
    pub(crate) fn told(self) -> Self {
        Self { message: String::new(), hint: None, ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl Exit {
    /// Tells the error and gives its exit code.
    pub(crate) fn from_error(error: Error) -> Self {
        if !error.message.is_empty() {
            output::say(&error);
        }
        error.exit
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let exit = match fault.blame {
            Blame::Input => Exit::Input,
            Blame::Environment => Exit::Environment,
            Blame::Measurement => Exit::Failed,
            Blame::Ended => Exit::Interrupted,
        };
        Self { exit, message: fault.message, hint: fault.hint }
    }
}

impl From<stackline_emu::refusal::Refusal> for Error {
    fn from(refusal: stackline_emu::refusal::Refusal) -> Self {
        use stackline_emu::refusal::Blame;
        let exit = match refusal.blame {
            Blame::Input => Exit::Input,
            Blame::Environment => Exit::Environment,
            Blame::Emulation => Exit::Failed,
        };
        Self { exit, message: refusal.message, hint: refusal.hint }
    }
}

impl From<stackline_runs::Error> for Error {
    fn from(error: stackline_runs::Error) -> Self {
        Self { exit: Exit::Environment, message: error.to_string(), hint: Some(error.hint) }
    }
}
