//! A scene as SVG without scripts, fonts or anything else from outside.

use super::Picture;
use crate::drawing::escaped;
use crate::scene::{Anchor, Shape};
use std::fmt::Write;

/// The picture as SVG.
#[must_use]
pub fn svg(picture: &Picture) -> String {
    let scene = &picture.scene;
    let (width, height) = (scene.width, scene.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"system-ui,sans-serif\" font-size=\"11\">\n<title>lifelines</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for shape in &scene.shapes {
        let _ = match shape {
            Shape::Rect {
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
            Shape::Line {
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
            Shape::Dot {
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
            Shape::Text { text, .. } if text.is_empty() => Ok(()),
            Shape::Text {
                x,
                y,
                anchor,
                colour,
                text,
            } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let text = escaped(text);
                writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#{colour:06x}\">{text}</text>"
                )
            }
        };
    }
    out.push_str("</svg>\n");
    out
}
