//! What a picture is made of, before it is SVG or PNG: plain shapes, later ones over earlier ones.

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scene {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) shapes: Vec<Shape>,
}

/// One thing in it. Colours are 0xRRGGBB, lengths pixels of the SVG.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Rect { x: f32, y: f32, width: f32, height: f32, colour: u32 },
    Line { points: Vec<(f32, f32)>, colour: u32, width: f32, dashed: bool },
    Text { x: f32, y: f32, anchor: Anchor, colour: u32, text: String },
}

/// Where a text's place is in it; `y` is the line it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}
