//! Encodes a picture as a file: SVG, PNG or PDF.

use crate::scene::{VectorScene, pdf, png, svg};
use std::path::Path;

/// The format of a picture's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFileFormat {
    /// Lines and letters, for the web and for drawing programs.
    Svg,
    /// Pixels, two for each of the SVG's.
    Png,
    /// One page, as large as the picture.
    Pdf,
}

impl PictureFileFormat {
    /// The format by the extension of a file's name; `None` if it is unknown.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        [("svg", Self::Svg), ("png", Self::Png), ("pdf", Self::Pdf)]
            .into_iter()
            .find(|(name, _)| *name == ending)
            .map(|(_, format)| format)
    }
}

impl VectorScene {
    /// The picture as bytes of a file.
    ///
    /// # Errors
    /// If it is too large for a PNG or cannot be encoded: one sentence.
    pub fn encode(&self, format: PictureFileFormat) -> Result<Vec<u8>, String> {
        match format {
            PictureFileFormat::Svg => Ok(svg::svg(self).into_bytes()),
            PictureFileFormat::Png => png::png(self),
            PictureFileFormat::Pdf => Ok(pdf::pdf(self)),
        }
    }
}
