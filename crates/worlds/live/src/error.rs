//! The error type of this crate (that of `stackline_core`), and the conversion of a failed system call into it.

use std::io;

pub use stackline_core::error::{Blame, Error, Result};

/// The error for a system call that failed during the measurement: `what` names the call. Lack of memory is blamed on the environment
/// (the machine), everything else on the measurement.
#[must_use]
pub fn io_error(what: &str, error: &io::Error) -> Error {
    let message = format!("{what} failed: {error}");
    if error.kind() == io::ErrorKind::OutOfMemory {
        Error::environment(message)
    } else {
        Error::measurement(message)
    }
}
