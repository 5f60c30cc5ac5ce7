//! An error of the kernel, with which step of opening a capture it is about.

use std::io;

/// The error with what it is about.
pub(super) fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
