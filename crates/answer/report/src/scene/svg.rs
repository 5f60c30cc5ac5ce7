//! A scene as self-contained SVG (no scripts, no external fonts). On a dark screen its colours are the dark ones.

use super::{SceneMeasure, SceneShape, TextAnchor, VectorScene};
use crate::colours::{PAPER, on_dark};
use crate::markup_escape::escaped;
use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// The scene as SVG.
pub(crate) fn svg(scene: &VectorScene) -> String {
    let (width, height) = (scene.width, scene.height);
    let unit = match scene.measure {
        SceneMeasure::Screen => "",
        SceneMeasure::Paper => "pt",
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}{unit}\" \
         height=\"{height}{unit}\" role=\"img\" font-family=\"system-ui,sans-serif\" font-size=\"{}\">\n\
         <title>{}</title>\n<style>{}</style>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#{PAPER:06x}\"/>\n",
        scene.measure.letters(),
        escaped(&scene.title),
        dark_style(scene),
    );
    for shape in &scene.shapes {
        let _ = write_shape(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

/// Rules for the colours in use on a dark screen; many programs that render SVG know no variables, so each colour has a rule.
fn dark_style(scene: &VectorScene) -> String {
    let colours: BTreeSet<u32> = scene.shapes.iter().map(colour).chain([PAPER]).collect();
    let rules = colours.into_iter().filter_map(|light| {
        let dark = on_dark(light)?;
        Some(format!(
            "[fill=\"#{light:06x}\"]{{fill:#{dark:06x}}}[stroke=\"#{light:06x}\"]{{stroke:#{dark:06x}}}"
        ))
    });
    format!(
        "@media(prefers-color-scheme:dark){{{}}}",
        rules.collect::<String>()
    )
}

const fn colour(shape: &SceneShape) -> u32 {
    match shape {
        SceneShape::Rect { colour, .. }
        | SceneShape::Line { colour, .. }
        | SceneShape::Area { colour, .. }
        | SceneShape::Dot { colour, .. }
        | SceneShape::Text { colour, .. }
        | SceneShape::Upwards { colour, .. } => *colour,
    }
}

/// Points as SVG lists them.
fn list(points: &[(f32, f32)]) -> String {
    let mut text = String::with_capacity(12 * points.len());
    for (at, (x, y)) in points.iter().enumerate() {
        let gap = if at == 0 { "" } else { " " };
        let _ = write!(text, "{gap}{x:.1},{y:.1}");
    }
    text
}

fn write_shape(out: &mut String, shape: &SceneShape) -> fmt::Result {
    match shape {
        SceneShape::Rect {
            x,
            y,
            width,
            height,
            colour,
        } => {
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"#{colour:06x}\"/>"
            )
        }
        SceneShape::Line {
            points,
            colour,
            width,
            dashes,
        } => {
            let dashes: Vec<String> = dashes.iter().map(f32::to_string).collect();
            let dashes = match dashes.is_empty() {
                true => String::new(),
                false => format!(" stroke-dasharray=\"{}\"", dashes.join(" ")),
            };
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"#{colour:06x}\" stroke-width=\"{width}\"{dashes}/>",
                list(points)
            )
        }
        SceneShape::Area {
            points,
            colour,
            cover,
        } => writeln!(
            out,
            "<polygon points=\"{}\" fill=\"#{colour:06x}\" fill-opacity=\"{cover}\"/>",
            list(points)
        ),
        SceneShape::Dot {
            x,
            y,
            radius,
            colour,
        } => {
            writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"#{colour:06x}\"/>"
            )
        }
        SceneShape::Text { text, .. } | SceneShape::Upwards { text, .. } if text.is_empty() => {
            Ok(())
        }
        SceneShape::Text { .. } | SceneShape::Upwards { .. } => write_text(out, shape),
    }
}

/// Writes a text; nothing of another shape.
fn write_text(out: &mut String, shape: &SceneShape) -> fmt::Result {
    match shape {
        SceneShape::Text {
            x,
            y,
            anchor,
            colour,
            text,
        } => {
            let anchor = match anchor {
                TextAnchor::Start => "start",
                TextAnchor::Middle => "middle",
                TextAnchor::End => "end",
            };
            let text = escaped(text);
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#{colour:06x}\">{text}</text>"
            )
        }
        SceneShape::Upwards { x, y, colour, text } => {
            let text = escaped(text);
            writeln!(
                out,
                "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#{colour:06x}\">{text}</text>"
            )
        }
        _ => Ok(()),
    }
}
