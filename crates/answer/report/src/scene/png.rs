//! A scene as PNG, with two pixels for each pixel of the SVG. The font is built into the program; characters that it lacks become `?`.

use super::{SceneShape, TextAnchor, VectorScene};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use tiny_skia::{
    Color, FillRule, Paint, PathBuilder, Pixmap, PremultipliedColorU8, Rect, Stroke, StrokeDash,
    Transform,
};

const SCALE: f32 = 2.0;
const HEIGHT: RasterHeight = RasterHeight::Size20;
/// The distance from the top of a character's pixels to the baseline.
const ASCENT: f32 = 16.0;

/// The scene as PNG. Fails with a sentence if it is too large or cannot be encoded.
pub(crate) fn png(scene: &VectorScene) -> Result<Vec<u8>, String> {
    let (width, height) = (
        (scene.width * SCALE).ceil() as u32,
        (scene.height * SCALE).ceil() as u32,
    );
    let mut pixels = Pixmap::new(width, height).ok_or("the picture is too large for a PNG")?;
    pixels.fill(Color::WHITE);
    for shape in &scene.shapes {
        match shape {
            SceneShape::Rect {
                x,
                y,
                width,
                height,
                colour,
            } => {
                if let Some(rect) = Rect::from_xywh(*x, *y, *width, *height) {
                    pixels.fill_rect(
                        rect,
                        &paint(*colour),
                        Transform::from_scale(SCALE, SCALE),
                        None,
                    );
                }
            }
            SceneShape::Line {
                points,
                colour,
                width,
                dashed,
            } => line(&mut pixels, points, *colour, *width, *dashed),
            SceneShape::Dot {
                x,
                y,
                radius,
                colour,
            } => {
                if let Some(path) = PathBuilder::from_circle(*x, *y, *radius) {
                    let transform = Transform::from_scale(SCALE, SCALE);
                    pixels.fill_path(&path, &paint(*colour), FillRule::Winding, transform, None);
                }
            }
            SceneShape::Text {
                x,
                y,
                anchor,
                colour,
                text,
            } => letters(&mut pixels, (*x, *y), *anchor, *colour, text),
        }
    }
    pixels
        .encode_png()
        .map_err(|cause| format!("cannot encode the picture: {cause}"))
}

fn paint(colour: u32) -> Paint<'static> {
    let mut paint = Paint::default();
    let [_, red, green, blue] = colour.to_be_bytes();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn line(pixels: &mut Pixmap, points: &[(f32, f32)], colour: u32, width: f32, dashed: bool) {
    let mut path = PathBuilder::new();
    for (index, (x, y)) in points.iter().enumerate() {
        if index == 0 {
            path.move_to(*x, *y)
        } else {
            path.line_to(*x, *y)
        }
    }
    let dash = dashed
        .then(|| StrokeDash::new(vec![5.0, 3.0], 0.0))
        .flatten();
    // A line whose points are all in one place has nothing to draw.
    if let Some(path) = path.finish() {
        let stroke = Stroke {
            width,
            dash,
            ..Stroke::default()
        };
        pixels.stroke_path(
            &path,
            &paint(colour),
            &stroke,
            Transform::from_scale(SCALE, SCALE),
            None,
        );
    }
}

fn letters(pixels: &mut Pixmap, at: (f32, f32), anchor: TextAnchor, colour: u32, text: &str) {
    let (x, y) = at;
    let advance = get_raster_width(FontWeight::Regular, HEIGHT);
    let wide = (text.chars().count() * advance) as f32;
    let left = x * SCALE
        - match anchor {
            TextAnchor::Start => 0.0,
            TextAnchor::Middle => wide / 2.0,
            TextAnchor::End => wide,
        };
    let (left, top) = (left.round() as i64, (y * SCALE - ASCENT).round() as i64);
    for (place, letter) in text.chars().enumerate() {
        let letter = if letter == '…' { '~' } else { letter };
        let Some(raster) = get_raster(letter, FontWeight::Regular, HEIGHT)
            .or_else(|| get_raster('?', FontWeight::Regular, HEIGHT))
        else {
            continue;
        };
        for (row, line) in raster.raster().iter().enumerate() {
            for (column, cover) in line.iter().enumerate().filter(|(_, cover)| **cover > 0) {
                dot(
                    pixels,
                    left + (place * advance + column) as i64,
                    top + row as i64,
                    colour,
                    *cover,
                );
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
