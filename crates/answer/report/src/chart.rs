//! Charts: curves over two axes as a picture. Computed values are a line; simulated or measured ones are points in the line's colour. What
//! lies beyond the axes is cut off.

use crate::axes::AxesFrame;
pub use crate::axes::{Axis, AxisScale};
use crate::colours::{INK, SOFT};
use crate::pens::CurvePen;
use crate::scene::picture_file::PictureFileFormat;
use crate::scene::{SceneMeasure, SceneShape, TextAnchor, VectorScene};

const WIDTH: f32 = 760.0;
const HEIGHT: f32 = 520.0;
/// The edges of the frame around the curves, pixels; also for `RIGHT`, `TOP` and `BOTTOM`.
const LEFT: f32 = 74.0;
const RIGHT: f32 = WIDTH - 24.0;
const TOP: f32 = 96.0;
const BOTTOM: f32 = HEIGHT - 56.0;
/// Distance between two lines of the legend, pixels.
const ENTRY: f32 = 16.0;
/// Entries of the legend on one line.
const ENTRIES_A_LINE: usize = 2;
/// The most curves that are drawn.
const MOST_CURVES: usize = 6;
/// The ground of the highlighted range.
const BAND: u32 = 0x3e7cb1;

/// One curve, with its values in the units of the axes.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartCurve {
    /// Its name in the legend.
    pub name: String,
    /// Computed values (x, y), from left to right.
    pub line: Vec<(f64, f64)>,
    /// Simulated or measured values (x, y).
    pub points: Vec<(f64, f64)>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// A highlighted range of the x axis (from, to) with its label.
    pub band: Option<(f64, f64, String)>,
    /// The curves; at most six are drawn.
    pub curves: Vec<ChartCurve>,
    /// A line of text below the heading, such as what lines and points mean.
    pub below: String,
}

/// The chart as SVG.
#[must_use]
pub fn chart(chart: &Chart) -> String {
    let bytes = chart_scene(chart).encode(PictureFileFormat::Svg);
    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}

/// The chart as a picture.
fn chart_scene(chart: &Chart) -> VectorScene {
    let frame = AxesFrame {
        left: LEFT,
        right: RIGHT,
        top: TOP,
        bottom: BOTTOM,
        x: chart.x.clone(),
        y: chart.y.clone(),
        x_ticks: chart.x.ticks(),
        y_ticks: chart.y.ticks(),
        has_y_labels: true,
        ground: None,
        letters: SceneMeasure::Screen.letters(),
    };
    let start = TextAnchor::Start;
    let mut shapes = vec![
        SceneShape::text(LEFT, 24.0, start, INK, chart.title.as_str()),
        SceneShape::text(LEFT, 42.0, start, SOFT, chart.below.as_str()),
    ];
    band(chart, &frame, &mut shapes);
    frame.draw(&mut shapes);
    frame.draw_names(20.0, &mut shapes);
    for (at, curve) in chart.curves.iter().take(MOST_CURVES).enumerate() {
        let pen = CurvePen::with_index(at);
        draw_curve(&frame, curve, pen, &mut shapes);
        draw_entry(at, curve, pen, &mut shapes);
    }
    VectorScene {
        title: chart.title.clone(),
        measure: SceneMeasure::Screen,
        width: WIDTH,
        height: HEIGHT,
        shapes,
    }
}

fn band(chart: &Chart, frame: &AxesFrame, shapes: &mut Vec<SceneShape>) {
    let Some((from, to, name)) = &chart.band else {
        return;
    };
    let (from, to) = (frame.x(*from), frame.x(*to));
    shapes.push(SceneShape::Area {
        points: vec![(from, TOP), (to, TOP), (to, BOTTOM), (from, BOTTOM)],
        colour: BAND,
        cover: 0.12,
    });
    let middle = f32::midpoint(from, to);
    let name = name.as_str();
    shapes.push(SceneShape::text(
        middle,
        BOTTOM - 8.0,
        TextAnchor::Middle,
        SOFT,
        name,
    ));
}

fn draw_curve(frame: &AxesFrame, curve: &ChartCurve, pen: CurvePen, shapes: &mut Vec<SceneShape>) {
    let pieces = frame.cut_line(&curve.line).into_iter();
    shapes.extend(pieces.map(|points| pen.line(points, 2.0)));
    for point in curve.points.iter().filter(|point| frame.contains(**point)) {
        let at = (frame.x(point.0), frame.y(point.1));
        shapes.push(SceneShape::Dot {
            x: at.0,
            y: at.1,
            radius: 4.0,
            colour: pen.colour,
        });
    }
}

fn draw_entry(at: usize, curve: &ChartCurve, pen: CurvePen, shapes: &mut Vec<SceneShape>) {
    let across = (at % ENTRIES_A_LINE) as f32 * (RIGHT - LEFT) / ENTRIES_A_LINE as f32;
    let (left, middle) = (LEFT + across, 58.0 + (at / ENTRIES_A_LINE) as f32 * ENTRY);
    shapes.push(pen.line(vec![(left, middle), (left + 34.0, middle)], 2.0));
    let (x, y) = (left + 42.0, middle + 4.0);
    let name = curve.name.as_str();
    shapes.push(SceneShape::text(x, y, TextAnchor::Start, INK, name));
}

#[cfg(test)]
mod tests;
