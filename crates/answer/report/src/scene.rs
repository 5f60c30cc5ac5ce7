//! A picture as a list of plain shapes, from which SVG, PNG or PDF is made. Later shapes are drawn over earlier ones.

mod pdf;
pub mod picture_file;
mod png;
mod svg;

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorScene {
    /// Its title.
    pub(crate) title: String,
    pub(crate) width: f32,
    pub(crate) height: f32,
    pub(crate) shapes: Vec<SceneShape>,
}

/// A shape. Colours are 0xRRGGBB, lengths are pixels of the SVG.
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

/// Which point of a text its `x` is; its `y` is the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextAnchor {
    Start,
    Middle,
    End,
}
