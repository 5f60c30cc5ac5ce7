//! Exit codes and the form of an error: one sentence with its cause, then `hint:`.

use crate::output;
use std::path::Path;
use std::process::ExitCode;

pub(crate) use stackline_core::error::{Blame, Error};

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
    /// 4: worse than `compare --fail-above` permits.
    Worse,
    /// 5: `compare --fail-above` cannot tell.
    Unclear,
    /// 130: interrupted (Ctrl-C, SIGTERM or SIGHUP).
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
            Exit::Worse => 4,
            Exit::Unclear => 5,
            Exit::Interrupted => 130,
            Exit::Program(code) => code,
        })
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

/// What every command returns.
pub(crate) type Result<T = Exit, E = Error> = stackline_core::error::Result<T, E>;

/// An error that was already shown: it has an exit code and no message.
pub(crate) fn already_shown(blame: Blame) -> Error {
    Error::new(blame, "")
}

/// An error as the user sees it.
pub(crate) fn shown(error: &Error) -> String {
    let hint = error
        .hint
        .as_ref()
        .map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    format!("error: {}{hint}", error.message)
}

/// What the machine refuses where `/proc` is not mounted is refused for that.
fn without_proc(error: Error) -> Error {
    let is_the_machines = error.blame == Blame::Environment && !error.message.is_empty();
    if !is_the_machines || Path::new("/proc/self/fd").exists() {
        return error;
    }
    let message = format!("{}; /proc is not mounted here", error.message);
    Error::environment(message).hint("mount it with `mount -t proc proc /proc`; check, plan, predict, stacks and keywords work without it")
}

impl Exit {
    /// Shows the error, unless it was shown already, and gives its exit code. Who asked for JSON gets it in that form too,
    /// where nothing else was printed.
    pub(crate) fn from_error(error: Error, json: bool) -> Self {
        let error = without_proc(error);
        let exit = Self::from(error.blame);
        if !error.message.is_empty() {
            output::say(&shown(&error));
            if json && !output::has_printed() {
                let Error { message, hint, .. } = error;
                // What cannot be printed was said on stderr.
                let _ = output::json(
                    &serde_json::json!({ "ok": false, "error": message, "hint": hint }),
                    true,
                );
            }
        }
        exit
    }
}
