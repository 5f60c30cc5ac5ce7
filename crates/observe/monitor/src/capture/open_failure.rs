//! Names the failed step in an error of opening a capture.

use std::io;

/// Prefixes an error with `what` failed.
pub(super) fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
