//! A canvas for pictures of an experiment: draws shapes both as SVG (for light and dark screens) and into a scene for PNG (light).

use super::pictures::{TOP, WIDTH};
use crate::markup_escape::escaped;
use crate::scene::picture_file::PictureFileFormat;
use crate::scene::{SceneMeasure, SceneShape, TextAnchor, VectorScene};
use std::fmt::Write;

const STYLE: &str = "\
.paper{fill:#fff}text{font:12px system-ui,sans-serif;fill:#1f2933}.head{font-size:15px;font-weight:600}.soft{fill:#52606d}\
.middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#dde3ea}.zero{stroke:#52606d}.bar{fill:#3e7cb1}.less{fill:#c9a227}\
.faint{fill:#b3bfcc}.whisker{stroke:#1f2933;stroke-width:2}.dot{fill:#3e7cb1}.first{stroke:#3e7cb1}.second{stroke:#e07b39}\
.curve{fill:none;stroke-width:2}\
@media(prefers-color-scheme:dark){.paper{fill:#14181d}text{fill:#e4e7eb}.soft{fill:#9aa5b1}.grid{stroke:#2b333d}\
.zero{stroke:#9aa5b1}.whisker{stroke:#e4e7eb}.faint{fill:#465362}}";

/// For each style class: its light colour and the width of its lines, for PNG.
const LIGHT: &[(&str, u32, f32)] = &[
    ("grid", 0xdde3ea, 1.0),
    ("zero", 0x52606d, 1.0),
    ("soft", 0x52606d, 1.0),
    ("bar", 0x3e7cb1, 1.0),
    ("less", 0xc9a227, 1.0),
    ("faint", 0xb3bfcc, 1.0),
    ("whisker", 0x1f2933, 2.0),
    ("dot", 0x3e7cb1, 1.0),
    ("first", 0x3e7cb1, 2.0),
    ("second", 0xe07b39, 2.0),
];
const INK: u32 = 0x1f2933;

/// A finished picture.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorPicture {
    /// Its name, for a file without extension.
    pub name: &'static str,
    /// The picture as SVG.
    pub svg: String,
    scene: VectorScene,
}

impl FactorPicture {
    /// The picture as PNG, in light colours.
    ///
    /// # Errors
    /// If it is too large or cannot be encoded: one sentence.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        self.scene.encode(PictureFileFormat::Png)
    }
}

/// The shapes drawn so far, as SVG and for the scene.
#[derive(Default)]
pub(super) struct Canvas {
    svg: String,
    shapes: Vec<SceneShape>,
}

/// A point (x, y) in pixels of the SVG.
pub(super) type SvgPoint = (f64, f64);

/// Colour and line width of a style class in light mode.
fn light(class: &str) -> (u32, f32) {
    let known = LIGHT
        .iter()
        .find(|(name, ..)| class.split(' ').any(|word| word == *name));
    known.map_or((INK, 1.0), |(_, colour, width)| (*colour, *width))
}

impl Canvas {
    pub(super) fn line(&mut self, class: &str, from: SvgPoint, to: SvgPoint) {
        let _ = writeln!(
            self.svg,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
        self.strokes(class, &[from, to]);
    }

    pub(super) fn curve(&mut self, class: &str, points: &[SvgPoint]) {
        let written: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            self.svg,
            "<polyline class=\"curve {class}\" points=\"{}\"/>",
            written.join(" ")
        );
        self.strokes(class, points);
    }

    fn strokes(&mut self, class: &str, points: &[SvgPoint]) {
        let (colour, width) = light(class);
        let points = points.iter().map(|(x, y)| (*x as f32, *y as f32)).collect();
        self.shapes.push(SceneShape::Line {
            points,
            colour,
            width,
            dashes: &[],
        });
    }

    pub(super) fn bar(&mut self, class: &str, corner: SvgPoint, size: SvgPoint) {
        let ((x, y), (width, height)) = (corner, size);
        let _ = writeln!(
            self.svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
        let (x, y, width, height) = (x as f32, y as f32, width as f32, height as f32);
        self.shapes.push(SceneShape::Rect {
            x,
            y,
            width,
            height,
            colour: light(class).0,
        });
    }

    /// A dot, with `title` as its tooltip if it is not empty.
    pub(super) fn dot(&mut self, centre: SvgPoint, radius: f64, title: &str) {
        let (x, y) = centre;
        let title = if title.is_empty() {
            String::new()
        } else {
            format!("<title>{}</title>", escaped(title))
        };
        let _ = writeln!(
            self.svg,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">{title}</circle>"
        );
        self.shapes.push(SceneShape::Dot {
            x: x as f32,
            y: y as f32,
            radius: radius as f32,
            colour: light("dot").0,
        });
    }

    /// A text; the class `middle` or `end` says that `at` is its middle or end.
    pub(super) fn text(&mut self, class: &str, at: SvgPoint, text: &str) {
        let (x, y) = at;
        let _ = writeln!(
            self.svg,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escaped(text)
        );
        self.letters(class, at, text);
    }

    /// A text that reads upwards beside an axis; in the PNG it is horizontal above the axis.
    pub(super) fn text_upwards(&mut self, class: &str, at: SvgPoint, text: &str) {
        let (x, y) = at;
        let escaped = escaped(text);
        let _ = writeln!(
            self.svg,
            "<text class=\"{class} middle\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{escaped}</text>"
        );
        self.letters(class, (x, TOP - 6.0), text);
    }

    fn letters(&mut self, class: &str, at: SvgPoint, text: &str) {
        let anchor = match class {
            _ if class.contains("middle") => TextAnchor::Middle,
            _ if class.contains("end") => TextAnchor::End,
            _ => TextAnchor::Start,
        };
        let (x, y, colour) = (at.0 as f32, at.1 as f32, light(class).0);
        self.shapes.push(SceneShape::Text {
            x,
            y,
            anchor,
            colour,
            text: text.to_owned(),
        });
    }

    /// Finishes the picture with its title and a line below the title.
    pub(super) fn picture(
        self,
        name: &'static str,
        high: f64,
        title: &str,
        below: &str,
    ) -> FactorPicture {
        let mut top = Self::default();
        top.text("head", (20.0, 26.0), title);
        top.text("soft", (20.0, 44.0), below);
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {high}\" width=\"{WIDTH}\" height=\"{high}\" role=\"img\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{high}\"/>\n{}{}</svg>\n",
            escaped(title),
            top.svg,
            self.svg
        );
        let shapes = top.shapes.into_iter().chain(self.shapes).collect();
        FactorPicture {
            name,
            svg,
            scene: VectorScene {
                title: title.to_owned(),
                measure: SceneMeasure::Screen,
                width: WIDTH as f32,
                height: high as f32,
                shapes,
            },
        }
    }
}
