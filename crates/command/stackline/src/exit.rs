//! Exit codes, and the form of error messages: one sentence with the cause, then `hint:`.

use crate::output;
use std::path::Path;
use std::process::ExitCode;

pub(crate) use stackline_core::error::{Blame, Error};

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done.
    Done,
    /// 1: the measurement began and failed.
    Failed,
    /// 2: the specification or the command line is wrong.
    Input,
    /// 3: this machine or network cannot do what was asked.
    Environment,
    /// 4: worse than a gate permits, or than the specification expects; an alert fired.
    Worse,
    /// 5: a gate or an expectation is undecided.
    Unclear,
    /// 130: interrupted (Ctrl-C, SIGTERM or SIGHUP).
    Interrupted,
    /// The exit code of the program that was run.
    Program(u8),
}

impl Exit {
    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Input => 2,
            Self::Environment => 3,
            Self::Worse => 4,
            Self::Unclear => 5,
            Self::Interrupted => 130,
            Self::Program(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<Blame> for Exit {
    fn from(blame: Blame) -> Self {
        match blame {
            Blame::Input => Self::Input,
            Blame::Environment => Self::Environment,
            Blame::Measurement => Self::Failed,
            Blame::Interrupted => Self::Interrupted,
        }
    }
}

/// The result of every command.
pub(crate) type Result<T = Exit, E = Error> = stackline_core::error::Result<T, E>;

/// The error for a failure that was printed already: it has an exit code and no message.
pub(crate) fn already_shown(blame: Blame) -> Error {
    Error::new(blame, "")
}

/// The text of an error as the user sees it.
pub(crate) fn shown(error: &Error) -> String {
    let hint = error
        .hint
        .as_ref()
        .map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    format!("error: {}{hint}", error.message)
}

/// Adds to an error of the machine that `/proc` is not mounted, if so: that is then the likely cause.
fn without_proc(error: Error) -> Error {
    let is_the_machines = error.blame == Blame::Environment && !error.message.is_empty();
    if !is_the_machines || Path::new("/proc/self/fd").exists() {
        return error;
    }
    let message = format!("{}; /proc is not mounted here", error.message);
    Error::environment(message).hint("mount it with `mount -t proc proc /proc`; check, plan, predict, stacks and keywords work without it")
}

impl Exit {
    /// Prints the error, unless it was printed already, and returns its exit code. With `json` it is also printed as
    /// JSON, if nothing else was printed on stdout.
    pub(crate) fn from_error(error: Error, json: bool) -> Self {
        let error = without_proc(error);
        let exit = Self::from(error.blame);
        if !error.message.is_empty() {
            output::say(&shown(&error));
            if json && !output::has_printed() {
                let Error { message, hint, .. } = error;
                // If stdout cannot be written, stderr has the message already.
                let _ = output::json(
                    &serde_json::json!({ "ok": false, "error": message, "hint": hint }),
                    true,
                );
            }
        }
        exit
    }
}
