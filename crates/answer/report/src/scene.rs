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
    pub(crate) measure: SceneMeasure,
    pub(crate) width: f32,
    pub(crate) height: f32,
    pub(crate) shapes: Vec<SceneShape>,
}

/// What a unit of length is, and how large letters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SceneMeasure {
    /// Pixels of a screen; letters of 11 pixels.
    Screen,
    /// Points of paper (1/72 inch); letters of 8 points, as in the captions of a paper.
    Paper,
}

impl SceneMeasure {
    /// The size of letters, in units of length.
    pub(crate) const fn letters(self) -> f32 {
        match self {
            Self::Screen => 11.0,
            Self::Paper => 8.0,
        }
    }
}

/// Dashes of a line: the lengths of strokes and gaps. Empty for a solid line.
pub(crate) type LineDashes = &'static [f32];

/// The usual dashed line.
pub(crate) const DASHED: LineDashes = &[5.0, 3.0];

/// A shape. Colours are 0xRRGGBB, lengths are units of the scene.
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
        dashes: LineDashes,
    },
    /// A filled area; `cover` is its opacity, 0 to 1.
    Area {
        points: Vec<(f32, f32)>,
        colour: u32,
        cover: f32,
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
    /// A text that reads upwards; its middle is at this point.
    Upwards {
        x: f32,
        y: f32,
        colour: u32,
        text: String,
    },
}

impl SceneShape {
    /// A text with its baseline at `y`.
    pub(crate) fn text(
        x: f32,
        y: f32,
        anchor: TextAnchor,
        colour: u32,
        words: impl Into<String>,
    ) -> Self {
        Self::Text {
            x,
            y,
            anchor,
            colour,
            text: words.into(),
        }
    }
}

/// Which point of a text its `x` is; its `y` is the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextAnchor {
    Start,
    Middle,
    End,
}
