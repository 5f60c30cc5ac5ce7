//! A picture as bytes of a file: SVG, PNG or PDF.

use crate::scene::{VectorScene, pdf, png, svg};
use std::path::Path;

/// What a picture is written as.
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
    /// What a file's name ends with says it.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
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
    /// A sentence when there is no memory for its pixels or it cannot be encoded.
    pub fn encode(&self, format: PictureFileFormat) -> Result<Vec<u8>, String> {
        match format {
            PictureFileFormat::Svg => Ok(svg::svg(self).into_bytes()),
            PictureFileFormat::Png => png::png(self),
            PictureFileFormat::Pdf => Ok(pdf::pdf(self)),
        }
    }
}
