//! What a picture is made of, before it is SVG, PNG or PDF: plain shapes, later ones over earlier ones.

mod pdf;
mod png;
mod svg;

use std::path::Path;

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorScene {
    /// What it shows.
    pub(crate) title: String,
    pub(crate) width: f32,
    pub(crate) height: f32,
    pub(crate) shapes: Vec<SceneShape>,
}

/// What a picture is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Lines and letters, for the web and for drawing programs.
    Svg,
    /// Pixels, two for each of the SVG's.
    Png,
    /// One page, as large as the picture.
    Pdf,
}

impl PictureFormat {
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
    pub fn encode(&self, format: PictureFormat) -> Result<Vec<u8>, String> {
        match format {
            PictureFormat::Svg => Ok(svg::svg(self).into_bytes()),
            PictureFormat::Png => png::png(self),
            PictureFormat::Pdf => Ok(pdf::pdf(self)),
        }
    }
}

/// One thing in it. Colours are 0xRRGGBB, lengths pixels of the SVG.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SceneShape {
    Rect {
        x: f32,
        y: f32,
        width: f32,
        height: f32,
        colour: u32,
    },
    Line {
        points: Vec<(f32, f32)>,
        colour: u32,
        width: f32,
        dashed: bool,
    },
    Dot {
        x: f32,
        y: f32,
        radius: f32,
        colour: u32,
    },
    Text {
        x: f32,
        y: f32,
        anchor: TextAnchor,
        colour: u32,
        text: String,
    },
}

/// Where a text's place is in it; `y` is the line it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextAnchor {
    Start,
    Middle,
    End,
}
