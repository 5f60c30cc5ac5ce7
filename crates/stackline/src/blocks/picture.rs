//! Pictures of files, cut into tiles: PNG row by row, TIFF strip by strip or row of tiles by row of tiles, JPEG at once,
//! since its crate gives no parts.

mod jpeg;
mod png;
mod tiff;

use super::cutter::Cutter;
use crate::exit::{Error, Result};
use stackline_blocks::pyramid::Pyramid;
use std::fs::File;
use std::path::Path;

/// Bytes of a picture that has to be in memory at once, at most.
const MOST_AT_ONCE: u64 = 1 << 30;

/// The form of a picture's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Png,
    Jpeg,
    Tiff,
}

impl Form {
    /// Told by its first bytes.
    pub(super) fn of(first: &[u8]) -> Option<Self> {
        let begins = |with: &[u8]| first.starts_with(with);
        if begins(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if begins(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"].iter().any(|magic| begins(*magic)) {
            Some(Self::Tiff)
        } else {
            None
        }
    }
}

/// A file of the tiles of all levels, and what picture they are of.
pub(super) fn cut(form: Form, file: File, path: &Path) -> Result<(File, Pyramid)> {
    let (cutter, about) = match form {
        Form::Png => png::cut(file),
        Form::Jpeg => jpeg::cut(file, path),
        Form::Tiff => tiff::cut(file),
    }
    .map_err(|error| error.within(&path.display().to_string()))?;
    Ok((cutter.finish()?, about))
}

/// What a form's reader gives: tiles in the making, with all rows in them.
type Made = Result<(Cutter, Pyramid)>;

/// That the file is damaged, or of a kind that is not read.
fn unreadable(cause: impl std::fmt::Display) -> Error {
    Error::input(format!("the picture cannot be read: {cause}"))
        .hint("--plain loads the file as it is; `gdal_translate -of GTiff` makes a plain TIFF of most pictures")
}

/// Appends pixels of that many samples of a byte as red, green, blue: one or two samples are grey (and opacity).
fn to_rgb(samples: &[u8], a_pixel: usize, rgb: &mut Vec<u8>) {
    for pixel in samples.chunks_exact(a_pixel) {
        match *pixel {
            [grey] | [grey, _] => rgb.extend([grey; 3]),
            [red, green, blue, ..] => rgb.extend([red, green, blue]),
            [] => {}
        }
    }
}

#[cfg(test)]
mod tests;
