//! A scene as self-contained SVG (no scripts, no external fonts).

use super::{SceneShape, TextAnchor, VectorScene};
use crate::markup_escape::escaped;
use std::fmt::{self, Write};

/// The scene as SVG.
pub(crate) fn svg(scene: &VectorScene) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"system-ui,sans-serif\" font-size=\"11\">\n<title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n",
        escaped(&scene.title)
    );
    for shape in &scene.shapes {
        let _ = write_shape(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
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
            dashed,
        } => {
            let points: Vec<String> = points
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            let dash = if *dashed {
                " stroke-dasharray=\"5 3\""
            } else {
                ""
            };
            let points = points.join(" ");
            writeln!(
                out,
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"#{colour:06x}\" stroke-width=\"{width}\"{dash}/>"
            )
        }
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
        SceneShape::Text { text, .. } if text.is_empty() => Ok(()),
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
    }
}
