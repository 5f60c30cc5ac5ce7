//! The series of a run as a picture: panels one below the other, over one time axis.

use super::line_picture::{LETTER, fitting, shortened, thinned};
use super::plotted_axes::{PlotWidth, PlottedAxes, round_ticks_of};
use super::series_curves::{curves_of, series_notes};
use crate::axes::AxesFrame;
use crate::colours::{INK, SOFT};
use crate::grid::wrap;
use crate::pens::CurvePen;
use crate::scene::{SceneMeasure, SceneShape, TextAnchor, VectorScene};
use stackline_analyze::curves::CurveSet;
use stackline_analyze::time_series::TimeSeries;
use stackline_core::units::format_time;

/// The size of letters, points; the measures below are points or letters.
const LETTERS: f32 = SceneMeasure::Paper.letters();
/// The height of a panel's frame, and of what stands above it.
const HEIGHT: f32 = 8.0 * LETTERS;
const HEADING: f32 = 2.0 * LETTERS;
/// Distance from the right edge.
const GAP: f32 = 1.5 * LETTERS;
/// About how many lines the grid of a panel has.
const TICKS: f64 = 3.0;
/// The stroke of an entry of the legend.
const STROKE: f32 = 16.0;
const LINE_WIDTH: f32 = 1.0;

/// Draws the series.
#[must_use]
pub fn series_picture(series: &TimeSeries, width: PlotWidth) -> VectorScene {
    let sets: Vec<CurveSet> = series.panels.iter().map(curves_of).collect();
    let axes: Vec<PlottedAxes> = sets
        .iter()
        .map(|set| fitted(set, series.length_s))
        .collect();
    let width = width.points();
    let labels = axes.iter().flat_map(|axes| &axes.y_ticks);
    let label = labels.map(|tick| tick.label.chars().count()).max();
    let edges = [
        1.2 * LETTERS + LETTER * label.unwrap_or(1) as f32,
        width - GAP,
    ];
    let mut shapes = Vec::new();
    let mut y = 1.4 * LETTERS;
    let heading = format!("{}, run {}", series.text, series.run + 1);
    for words in wrap(&heading, ((width - GAP) / LETTER) as usize) {
        shapes.push(SceneShape::text(LETTERS, y, TextAnchor::Start, INK, words));
        y += 1.3 * LETTERS;
    }
    let last = sets.len().saturating_sub(1);
    for (at, (set, axes)) in sets.iter().zip(&axes).enumerate() {
        let every = format_time(series.panels[at].every_s);
        let panel = SeriesFrame {
            heading: format!("{}, each {every}", axes.y.name),
            set,
            axes,
            edges,
        };
        y = panel.draw(y, at == last, &mut shapes);
    }
    y += 4.4 * LETTERS;
    for note in series_notes(series) {
        for words in wrap(&note, ((width - GAP) / LETTER) as usize) {
            shapes.push(SceneShape::text(LETTERS, y, TextAnchor::Start, SOFT, words));
            y += 1.3 * LETTERS;
        }
    }
    VectorScene {
        title: heading,
        measure: SceneMeasure::Paper,
        width,
        height: y,
        shapes,
    }
}

fn fitted(set: &CurveSet, length_s: f64) -> PlottedAxes {
    let mut axes = PlottedAxes::over_time(set, length_s);
    axes.y_ticks = round_ticks_of(&axes.y, TICKS);
    axes
}

/// A panel between the left and the right edge.
struct SeriesFrame<'s> {
    /// What it shows.
    heading: String,
    set: &'s CurveSet,
    axes: &'s PlottedAxes,
    edges: [f32; 2],
}

impl SeriesFrame<'_> {
    /// Draws it below `top`; returns where its frame ends. The last one has the labels of the time axis.
    fn draw(&self, top: f32, is_last: bool, shapes: &mut Vec<SceneShape>) -> f32 {
        let below = self.heading(top + 1.2 * LETTERS, shapes) + 0.7 * LETTERS;
        let mut frame = AxesFrame {
            left: self.edges[0],
            right: self.edges[1],
            top: below,
            bottom: below + HEIGHT,
            x: self.axes.x.clone(),
            y: self.axes.y.clone(),
            x_ticks: self.axes.x_ticks.clone(),
            y_ticks: self.axes.y_ticks.clone(),
            has_y_labels: true,
            ground: None,
            letters: LETTERS,
        };
        frame.x_ticks = fitting(&frame, &frame.x_ticks);
        if !is_last {
            frame.x_ticks.iter_mut().for_each(|tick| tick.label.clear());
        }
        frame.draw_ground(shapes);
        for (index, curve) in self.set.curves.iter().enumerate() {
            let pen = CurvePen::with_index(index);
            let places = curve.points.iter();
            let places: Vec<(f64, f64)> = places.filter_map(|at| self.axes.place(at)).collect();
            for piece in frame.cut_line(&thinned(&frame, &places)) {
                shapes.push(pen.line(piece, LINE_WIDTH));
            }
            if let [only] = places[..] {
                let at = (frame.x(only.0), frame.y(only.1));
                shapes.push(pen.mark(at, 1.5, pen.colour));
            }
        }
        frame.draw_border(shapes);
        if is_last {
            let middle = f32::midpoint(frame.left, frame.right);
            let at = frame.bottom + 3.0 * LETTERS;
            let name = self.axes.x.name.as_str();
            shapes.push(SceneShape::text(middle, at, TextAnchor::Middle, INK, name));
        }
        frame.bottom + 0.4 * HEADING
    }

    /// Writes what the panel shows, and behind it the names of its lines; returns where the last line of it stands.
    fn heading(&self, top: f32, shapes: &mut Vec<SceneShape>) -> f32 {
        let [left, right] = self.edges;
        let name = self.heading.as_str();
        shapes.push(SceneShape::text(left, top, TextAnchor::Start, INK, name));
        let mut at = (left + LETTER * (name.chars().count() + 2) as f32, top);
        for (index, curve) in self.set.curves.iter().enumerate() {
            if curve.name.is_empty() {
                continue;
            }
            let name = shortened(&curve.name, ((right - left - STROKE) / LETTER) as usize - 1);
            let wide = STROKE + 0.4 * LETTERS + LETTER * name.chars().count() as f32;
            if at.0 + wide > right {
                at = (left, at.1 + 1.4 * LETTERS);
            }
            let (x, y) = at;
            let middle = y - 0.35 * LETTERS;
            let pen = CurvePen::with_index(index);
            shapes.push(pen.line(vec![(x, middle), (x + STROKE, middle)], LINE_WIDTH));
            let words = x + STROKE + 0.4 * LETTERS;
            shapes.push(SceneShape::text(words, y, TextAnchor::Start, SOFT, name));
            at.0 += wide + LETTERS;
        }
        at.1
    }
}
