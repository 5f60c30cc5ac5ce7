//! Pictures of files, cut into tiles: PNG row by row, TIFF strip by strip or row of tiles by row of tiles, JPEG at once,
//! since its crate gives no parts.

mod jpeg;
mod pixels;
mod png;
mod tiff;

use stackline_blocks::pyramid::Pyramid;
use stackline_core::error::Result;
use std::fs::File;
use std::path::Path;

/// The form of a picture's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Png,
    Jpeg,
    Tiff,
}

impl PictureFormat {
    /// Recognised by its first bytes.
    pub(crate) fn of(first: &[u8]) -> Option<Self> {
        let begins = |with: &[u8]| first.starts_with(with);
        if begins(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if begins(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"]
            .iter()
            .any(|magic| begins(*magic))
        {
            Some(Self::Tiff)
        } else {
            None
        }
    }
}

/// A file of the tiles of all levels, and what picture they are of.
pub(crate) fn cut(form: PictureFormat, file: File, path: &Path) -> Result<(File, Pyramid)> {
    let (cutter, about) = match form {
        PictureFormat::Png => png::cut(file),
        PictureFormat::Jpeg => jpeg::cut(file, path),
        PictureFormat::Tiff => tiff::cut(file),
    }
    .map_err(|error| error.within(&path.display().to_string()))?;
    Ok((cutter.finish()?, about))
}

#[cfg(test)]
mod tests;
