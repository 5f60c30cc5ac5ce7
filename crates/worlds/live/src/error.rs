//! The error of this crate, which is `core`'s, and what a failed system call becomes.

use std::io;

pub use stackline_core::error::{Blame, Error, Result};

/// A system call that failed during the measurement; a lack of memory is the machine's.
#[must_use]
pub fn io_error(what: &str, error: &io::Error) -> Error {
    let message = format!("{what} failed: {error}");
    if error.kind() == io::ErrorKind::OutOfMemory {
        Error::environment(message)
    } else {
        Error::measurement(message)
    }
}
