//! Errors at the other end of a terminal: it cannot be opened, its program is lost, or the display is gone.

use crate::address::DisplayAddress;
use stackline_core::error::Error;
use std::io;

/// The error if no terminal can be opened at that address.
pub(super) fn unopened(at: &DisplayAddress, why: &str) -> Error {
    Error::environment(format!("cannot open the terminal at {at}: {why}"))
        .hint("the secret is in ~/.config/stackline/terminal.secret, in the home directory of the user who serves the terminal: copy that file, or specify another with --secret-file")
}

pub(super) fn lost(error: io::Error) -> Error {
    match error.kind() {
        // A server in between has sent the reason.
        io::ErrorKind::ConnectionAborted => Error::measurement(error.to_string()),
        _ => Error::measurement(format!("lost the connection: {error}")),
    }
}

pub(super) fn gone() -> Error {
    Error::measurement("the display closed the connection")
        .hint("the standard error of its `stackline display serve` shows the reason")
}
