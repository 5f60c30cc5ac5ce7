//! Helpers for reading source files: reading a small file completely, and the errors for files that cannot be read or shrank.

use stackline_core::error::{Error, Result};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Reads a file of at most `most` bytes completely.
pub(crate) fn read_all(mut file: File, path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = (&mut file).take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(path, &error))?;
    if bytes.len() as u64 > most {
        let message = format!(
            "{} is larger than {most} bytes, the limit for a picture in this format",
            path.display()
        );
        return Err(Error::input(message).hint("convert it to TIFF, which is read piece by piece"));
    }
    Ok(bytes)
}

/// The error for a source that cannot be read.
pub(crate) fn unread(path: &Path, error: &std::io::Error) -> Error {
    let hint = "a source is a file, a directory, a picture or terrain:WIDTHxHEIGHT";
    match error.kind() {
        ErrorKind::UnexpectedEof => shorter(path),
        _ => Error::input(format!("cannot read {}: {error}", path.display())).hint(hint),
    }
}

/// The error for a file that became shorter during the load.
pub(crate) fn shorter(path: &Path) -> Error {
    Error::input(format!(
        "{} shrank while it was being loaded",
        path.display()
    ))
    .hint("load a copy that does not change, under another name or after `stackline blocks delete`")
}
