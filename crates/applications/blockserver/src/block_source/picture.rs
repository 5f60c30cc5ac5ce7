//! Picture files, cut into tiles: PNG row by row, TIFF by rows of strips or tiles, JPEG as a whole because its decoder offers no rows.

mod jpeg;
mod pixels;
mod png;
mod tiff;

use stackline_blocks::pyramid::Pyramid;
use stackline_core::error::Result;
use std::fs::File;
use std::path::Path;

/// The format of a picture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Png,
    Jpeg,
    Tiff,
}

impl PictureFormat {
    /// Recognises the format by a file's first bytes.
    pub(crate) fn recognise(first: &[u8]) -> Option<Self> {
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

/// Cuts a picture. Returns a file with the tiles of all levels, and the picture's description.
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
