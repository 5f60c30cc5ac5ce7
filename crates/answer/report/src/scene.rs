//! What a picture is made of, before it is SVG, PNG or PDF: plain shapes, later ones over earlier ones.

mod pdf;
pub mod picture_file;
mod png;
mod svg;

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorScene {
    /// What it shows.
    pub(crate) title: String,
    pub(crate) width: f32,
    pub(crate) height: f32,
    pub(crate) shapes: Vec<SceneShape>,
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
