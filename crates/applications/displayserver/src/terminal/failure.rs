//! What went wrong at the other end of a terminal: it was not opened, its program is lost, the display is gone.

use crate::address::DisplayAddress;
use stackline_core::error::Error;
use std::io;

/// No terminal is opened there.
pub(super) fn unopened(at: &DisplayAddress, why: &str) -> Error {
    Error::environment(format!("the terminal at {at} is not opened: {why}"))
        .hint("its secret is in ~/.config/stackline/terminal.secret of the user who serves it: copy it, or name a file with --secret-file")
}

pub(super) fn lost(error: io::Error) -> Error {
    match error.kind() {
        // A server in between has said what is wrong.
        io::ErrorKind::ConnectionAborted => Error::measurement(error.to_string()),
        _ => Error::measurement(format!("the program is lost: {error}")),
    }
}

pub(super) fn gone() -> Error {
    Error::measurement("the display ended the connection")
        .hint("why stands on the standard error of its `stackline display serve`")
}
