//! A scene as PNG: two pixels for each pixel of a screen, four for each point of paper (288 a inch). The font is built into the program; characters that it lacks become `?`.

use super::{LineDashes, SceneMeasure, SceneShape, TextAnchor, VectorScene};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use tiny_skia::{
    Color, FillRule, Paint, PathBuilder, Pixmap, PremultipliedColorU8, Rect, Stroke, StrokeDash,
    Transform,
};

/// How many pixels a unit of the scene has, and how large letters are.
#[derive(Clone, Copy)]
struct PixelMeasure {
    scale: f32,
    raster: RasterHeight,
    /// The distance from the top of a character's pixels to the baseline.
    ascent: f32,
}

impl PixelMeasure {
    const fn for_scene(scene: &VectorScene) -> Self {
        match scene.measure {
            SceneMeasure::Screen => Self {
                scale: 2.0,
                raster: RasterHeight::Size20,
                ascent: 16.0,
            },
            SceneMeasure::Paper => Self {
                scale: 4.0,
                raster: RasterHeight::Size32,
                ascent: 25.0,
            },
        }
    }

    fn transform(self) -> Transform {
        Transform::from_scale(self.scale, self.scale)
    }
}

/// The scene as PNG. Fails with a sentence if it is too large or cannot be encoded.
pub(crate) fn png(scene: &VectorScene) -> Result<Vec<u8>, String> {
    let measure = PixelMeasure::for_scene(scene);
    let (width, height) = (
        (scene.width * measure.scale).ceil() as u32,
        (scene.height * measure.scale).ceil() as u32,
    );
    let mut pixels = Pixmap::new(width, height).ok_or("the picture is too large for a PNG")?;
    pixels.fill(Color::WHITE);
    for shape in &scene.shapes {
        draw(&mut pixels, measure, shape);
    }
    pixels
        .encode_png()
        .map_err(|cause| format!("cannot encode the picture: {cause}"))
}

fn draw(pixels: &mut Pixmap, measure: PixelMeasure, shape: &SceneShape) {
    let transform = measure.transform();
    match shape {
        SceneShape::Rect {
            x,
            y,
            width,
            height,
            colour,
        } => {
            if let Some(rect) = Rect::from_xywh(*x, *y, *width, *height) {
                pixels.fill_rect(rect, &paint(*colour, 1.0), transform, None);
            }
        }
        SceneShape::Line {
            points,
            colour,
            width,
            dashes,
        } => {
            let stroke = Stroke {
                width: *width,
                dash: dash(dashes),
                ..Stroke::default()
            };
            // A line whose points are all in one place has nothing to draw.
            if let Some(path) = path(points) {
                pixels.stroke_path(&path, &paint(*colour, 1.0), &stroke, transform, None);
            }
        }
        SceneShape::Area {
            points,
            colour,
            cover,
        } => {
            if let Some(path) = path(points) {
                let paint = paint(*colour, *cover);
                pixels.fill_path(&path, &paint, FillRule::Winding, transform, None);
            }
        }
        SceneShape::Dot {
            x,
            y,
            radius,
            colour,
        } => {
            if let Some(path) = PathBuilder::from_circle(*x, *y, *radius) {
                let paint = paint(*colour, 1.0);
                pixels.fill_path(&path, &paint, FillRule::Winding, transform, None);
            }
        }
        SceneShape::Text { text, .. } | SceneShape::Upwards { text, .. } => {
            if let Some(lettering) = Lettering::for_shape(measure, shape) {
                lettering.draw(pixels, text);
            }
        }
    }
}

fn paint(colour: u32, cover: f32) -> Paint<'static> {
    let mut paint = Paint::default();
    let [_, red, green, blue] = colour.to_be_bytes();
    paint.set_color_rgba8(red, green, blue, (cover * 255.0).round() as u8);
    paint
}

fn path(points: &[(f32, f32)]) -> Option<tiny_skia::Path> {
    let mut path = PathBuilder::new();
    for (index, (x, y)) in points.iter().enumerate() {
        if index == 0 {
            path.move_to(*x, *y);
        } else {
            path.line_to(*x, *y);
        }
    }
    path.finish()
}

/// Dashes are pairs of a stroke and a gap.
fn dash(dashes: LineDashes) -> Option<StrokeDash> {
    StrokeDash::new(dashes.to_vec(), 0.0)
}

/// Where and how a text is drawn.
struct Lettering {
    measure: PixelMeasure,
    at: (f32, f32),
    anchor: TextAnchor,
    colour: u32,
    is_upwards: bool,
}

impl Lettering {
    /// How the text of a shape is drawn; `None` if it has none.
    fn for_shape(measure: PixelMeasure, shape: &SceneShape) -> Option<Self> {
        match shape {
            SceneShape::Text {
                x,
                y,
                anchor,
                colour,
                ..
            } => Some(Self {
                measure,
                at: (*x, *y),
                anchor: *anchor,
                colour: *colour,
                is_upwards: false,
            }),
            SceneShape::Upwards { x, y, colour, .. } => Some(Self {
                measure,
                at: (*x, *y),
                anchor: TextAnchor::Middle,
                colour: *colour,
                is_upwards: true,
            }),
            _ => None,
        }
    }

    fn draw(&self, pixels: &mut Pixmap, text: &str) {
        let PixelMeasure {
            scale,
            raster,
            ascent,
        } = self.measure;
        let (x, y) = (self.at.0 * scale, self.at.1 * scale);
        let advance = get_raster_width(FontWeight::Regular, raster);
        let wide = (text.chars().count() * advance) as f32;
        let left = match self.anchor {
            TextAnchor::Start => 0.0,
            TextAnchor::Middle => -wide / 2.0,
            TextAnchor::End => -wide,
        };
        for (place, letter) in text.chars().enumerate() {
            let letter = if letter == '…' { '~' } else { letter };
            let Some(drawn) = get_raster(letter, FontWeight::Regular, raster)
                .or_else(|| get_raster('?', FontWeight::Regular, raster))
            else {
                continue;
            };
            for (row, line) in drawn.raster().iter().enumerate() {
                for (column, cover) in line.iter().enumerate().filter(|(_, cover)| **cover > 0) {
                    let along = left.round() + (place * advance + column) as f32;
                    let down = row as f32 - ascent;
                    let (x, y) = match self.is_upwards {
                        false => (x.round() + along, y.round() + down),
                        true => (x.round() + down, y.round() - along),
                    };
                    dot(pixels, x as i64, y as i64, self.colour, *cover);
                }
            }
        }
    }
}

/// Blends a colour over a pixel with opacity `cover` (0 to 255).
fn dot(pixels: &mut Pixmap, x: i64, y: i64, colour: u32, cover: u8) {
    let (width, height) = (i64::from(pixels.width()), i64::from(pixels.height()));
    if !(0..width).contains(&x) || !(0..height).contains(&y) {
        return;
    }
    let pixel = &mut pixels.pixels_mut()[(y * width + x) as usize];
    let mix = |below: u8, above: u8| {
        let cover = u32::from(cover);
        ((u32::from(below) * (255 - cover) + u32::from(above) * cover) / 255) as u8
    };
    let [_, red, green, blue] = colour.to_be_bytes();
    let mixed = (
        mix(pixel.red(), red),
        mix(pixel.green(), green),
        mix(pixel.blue(), blue),
    );
    // The background is opaque, so the premultiplied colour equals the colour.
    *pixel = PremultipliedColorU8::from_rgba(mixed.0, mixed.1, mixed.2, 255).unwrap_or(*pixel);
}
