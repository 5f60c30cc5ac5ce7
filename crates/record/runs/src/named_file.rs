//! Writes a file that the user named, completely or not at all, and the error when it cannot be written.

use crate::replace::replace;
use stackline_core::error::{Error, Result};
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The hint of the error.
const ELSEWHERE: &str = "choose a writable directory on a disk with free space";

/// The error that something cannot be written.
#[must_use]
pub fn unwritten(what: impl Display, cause: &std::io::Error) -> Error {
    Error::environment(format!("cannot write {what}: {cause}")).hint(ELSEWHERE)
}

/// Writes a file, completely or not at all; `write` produces its contents.
///
/// # Errors
/// When the file cannot be written, and those of `write`.
pub fn write_file_by<T>(path: &Path, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    replace(path, |file| write(file).map_err(Unwritten::Content)).map_err(|error| match error {
        Unwritten::Target(cause) => Error::environment(cause.to_string()).hint(ELSEWHERE),
        Unwritten::Content(error) => error,
    })
}

/// Writes a file with these bytes, completely or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    write_file_by(path, |file| {
        file.write_all(bytes.as_ref())
            .map_err(|cause| unwritten(path.display(), &cause))
    })
}

/// Why a file was not written: because of the file itself, or because of its contents.
enum Unwritten {
    Target(crate::Error),
    Content(Error),
}

impl From<crate::Error> for Unwritten {
    fn from(error: crate::Error) -> Self {
        Self::Target(error)
    }
}
