//! Curves as a picture: lines with bands of 95 % intervals, in one panel or in several with common axes. Letters are as large as those of a
//! paper's captions; lines differ in dashes and markers as well as in colour.

use super::plotted_axes::{LogAxes, PlotWidth, PlottedAxes};
use crate::axes::{AxesFrame, AxisTick};
use crate::colours::{INK, PAPER, SOFT};
use crate::grid::wrap;
use crate::pens::CurvePen;
use crate::scene::{SceneMeasure, SceneShape, TextAnchor, VectorScene};
use stackline_analyze::curves::{Curve, CurveKind, CurvePoint, CurveSet};
use stackline_core::units::counted;

/// Of a panel at most so many lines are drawn.
const MOST_LINES: usize = 24;
/// Most panels that are drawn.
const MOST_PANELS: usize = 24;
/// A curve with more points has no markers.
const MOST_MARKERS: usize = 60;
/// The size of letters, points; the measures below are points or letters.
const LETTERS: f32 = SceneMeasure::Paper.letters();
/// The width of a letter: that of the widest font.
pub(super) const LETTER: f32 = 0.57 * LETTERS;
/// The height of a frame over its width.
const HEIGHT: f32 = 0.62;
/// Distance between panels, and of a frame from the right edge.
const GAP: f32 = 1.2 * LETTERS;
/// Height of an entry of the legend.
const ENTRY: f32 = 1.5 * LETTERS;
/// The length of the stroke in an entry of the legend.
const STROKE: f32 = 20.0;
const LINE_WIDTH: f32 = 1.1;
const MARKER: f32 = 2.0;
/// The opacity of a band.
const BAND: f32 = 0.18;
/// Places in a unit of the scene that can be distinguished.
const PLACES: f32 = 4.0;

/// Draws curves.
#[must_use]
pub fn line_picture(set: &CurveSet, width: PlotWidth, log: Option<LogAxes>) -> VectorScene {
    let layout = LineLayout::new(set, width, log);
    let mut shapes = Vec::new();
    let names = layout.names();
    let top = layout.legend(&names, &mut shapes);
    let bottom = layout.panels(&names, top, &mut shapes);
    let mut y = bottom + 4.6 * LETTERS;
    for note in layout.notes() {
        for words in wrap(&note, (layout.width / LETTER) as usize - 2) {
            shapes.push(SceneShape::text(LETTERS, y, TextAnchor::Start, SOFT, words));
            y += 1.25 * LETTERS;
        }
    }
    VectorScene {
        title: layout.title(),
        measure: SceneMeasure::Paper,
        width: layout.width,
        height: y - 0.5 * LETTERS,
        shapes,
    }
}

/// What all panels have in common.
struct LineLayout<'s> {
    set: &'s CurveSet,
    axes: PlottedAxes,
    width: f32,
    /// Panels beside each other.
    columns: usize,
    /// The left edge of the first frame.
    left: f32,
}

impl<'s> LineLayout<'s> {
    fn new(set: &'s CurveSet, width: PlotWidth, log: Option<LogAxes>) -> Self {
        let axes = PlottedAxes::fit(set, log);
        let columns = match (width, set.panels.len()) {
            (_, 0 | 1) => 1,
            (PlotWidth::Single, _) | (PlotWidth::Double, 2 | 4) => 2,
            (PlotWidth::Double, _) => 3,
        };
        let labels = axes.y_ticks.iter();
        let label = labels.map(|tick| tick.label.chars().count()).max();
        Self {
            set,
            axes,
            width: width.points(),
            columns,
            left: 2.4 * LETTERS + LETTER * label.unwrap_or(0) as f32,
        }
    }

    fn title(&self) -> String {
        format!("{} over {}", self.set.y.name, self.set.x.name)
    }

    /// The names of lines, each once: lines of one name have one pen in all panels.
    fn names(&self) -> Vec<&'s str> {
        let mut names: Vec<&str> = Vec::new();
        for curve in &self.set.curves {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
            if names.len() == MOST_LINES {
                break;
            }
        }
        names
    }

    /// Draws the legend, as many entries on a line as fit; returns where it ends. A single line without a name has none.
    fn legend(&self, names: &[&str], shapes: &mut Vec<SceneShape>) -> f32 {
        let mut at = (self.left, 1.2 * LETTERS);
        if names.iter().all(|name| name.is_empty()) {
            return 0.8 * LETTERS;
        }
        let room = self.width - GAP;
        for (index, name) in names.iter().enumerate() {
            let most = ((room - self.left - STROKE) / LETTER) as usize;
            let name = shortened(name, most);
            let wide = STROKE + 0.6 * LETTERS + LETTER * name.chars().count() as f32;
            if at.0 > self.left && at.0 + wide > room {
                at = (self.left, at.1 + ENTRY);
            }
            let (x, y) = at;
            let pen = CurvePen::with_index(index);
            let middle = y - 0.35 * LETTERS;
            shapes.push(pen.line(vec![(x, middle), (x + STROKE, middle)], LINE_WIDTH));
            shapes.push(pen.mark((x + STROKE / 2.0, middle), MARKER, pen.colour));
            let words = x + STROKE + 0.5 * LETTERS;
            shapes.push(SceneShape::text(words, y, TextAnchor::Start, INK, name));
            at.0 += wide + 1.2 * LETTERS;
        }
        at.1 + 0.9 * LETTERS
    }

    /// Draws the panels below `top`; returns where the lowest frame ends.
    fn panels(&self, names: &[&str], top: f32, shapes: &mut Vec<SceneShape>) -> f32 {
        let shown = self.set.panels.len().clamp(1, MOST_PANELS);
        let columns = self.columns as f32;
        let wide = (self.width - self.left - GAP * columns) / columns;
        let high = match self.columns {
            1 => HEIGHT * wide,
            _ => 0.85 * wide,
        };
        let has_names = shown > 1;
        let heading = if has_names { 1.6 * LETTERS } else { 0.0 };
        // Below the frames of a row stand the labels of its axis.
        let row_height = heading + high + 2.4 * LETTERS;
        let mut bottom = top;
        for panel in 0..shown {
            let (row, column) = (panel / self.columns, panel % self.columns);
            let left = self.left + (wide + GAP) * column as f32;
            let frame_top = top + row_height * row as f32 + heading;
            let frame = self.frame([left, left + wide], [frame_top, frame_top + high]);
            let frame = AxesFrame {
                has_y_labels: column == 0,
                ..frame
            };
            bottom = frame.bottom;
            if has_names {
                let name = shortened(&self.set.panels[panel], (wide / LETTER) as usize);
                let above = frame_top - 0.5 * LETTERS;
                shapes.push(SceneShape::text(left, above, TextAnchor::Start, INK, name));
            }
            frame.draw_ground(shapes);
            let curves = self.set.curves.iter().filter(|curve| curve.panel == panel);
            for curve in curves {
                if let Some(index) = names.iter().position(|name| *name == curve.name) {
                    self.curve(&frame, curve, CurvePen::with_index(index), shapes);
                }
            }
            frame.draw_border(shapes);
        }
        // The names of the axes stand once, in the middle of all frames.
        let whole = self.frame([self.left, self.width - GAP], [top, bottom]);
        whole.draw_names(1.1 * LETTERS, shapes);
        bottom
    }

    fn frame(&self, across: [f32; 2], down: [f32; 2]) -> AxesFrame {
        let mut frame = AxesFrame {
            left: across[0],
            right: across[1],
            top: down[0],
            bottom: down[1],
            x: self.axes.x.clone(),
            y: self.axes.y.clone(),
            x_ticks: self.axes.x_ticks.clone(),
            y_ticks: self.axes.y_ticks.clone(),
            has_y_labels: true,
            ground: None,
            letters: LETTERS,
        };
        frame.x_ticks = fitting(&frame, &frame.x_ticks);
        frame
    }

    fn curve(&self, frame: &AxesFrame, curve: &Curve, pen: CurvePen, shapes: &mut Vec<SceneShape>) {
        let drawn: Vec<(&CurvePoint, (f64, f64))> = curve
            .points
            .iter()
            .filter_map(|point| Some((point, self.axes.place(point)?)))
            .collect();
        self.bands(frame, &drawn, pen, shapes);
        for stretch in drawn.chunk_by(|_, (next, _)| !next.begins) {
            let points: Vec<(f64, f64)> = stretch.iter().map(|(_, at)| *at).collect();
            for piece in frame.cut_line(&thinned(frame, &points)) {
                shapes.push(pen.line(piece, LINE_WIDTH));
            }
        }
        if self.set.kind != CurveKind::Sweep || drawn.len() > MOST_MARKERS {
            return;
        }
        for (point, at) in drawn.iter().filter(|(_, at)| frame.contains(*at)) {
            let at = (frame.x(at.0), frame.y(at.1));
            shapes.push(pen.mark(at, MARKER, pen.colour));
            if is_single(point) {
                shapes.push(pen.mark(at, 0.5 * MARKER, PAPER));
            }
        }
    }

    /// The intervals: a band over neighbours that have one, a stroke where a point stands alone.
    fn bands(
        &self,
        frame: &AxesFrame,
        drawn: &[(&CurvePoint, (f64, f64))],
        pen: CurvePen,
        shapes: &mut Vec<SceneShape>,
    ) {
        let ends: Vec<Option<[(f32, f32); 2]>> = drawn
            .iter()
            .map(|(point, at)| {
                let (low, high) = self.axes.interval(point)?;
                let x = frame.x(at.0);
                let y = |value: f64| frame.y(value).clamp(frame.top, frame.bottom);
                Some([(x, y(low)), (x, y(high))])
            })
            .collect();
        for neighbours in ends.split(Option::is_none) {
            let neighbours: Vec<[(f32, f32); 2]> = neighbours.iter().flatten().copied().collect();
            match &neighbours[..] {
                [] => {}
                [[low, high]] => shapes.push(SceneShape::Line {
                    points: vec![*low, *high],
                    colour: pen.colour,
                    width: 0.8,
                    dashes: &[],
                }),
                several => {
                    let several = widest(several);
                    let lower = several.iter().map(|[low, _]| *low);
                    let upper = several.iter().rev().map(|[_, high]| *high);
                    shapes.push(SceneShape::Area {
                        points: lower.chain(upper).collect(),
                        colour: pen.colour,
                        cover: BAND,
                    });
                }
            }
        }
    }

    /// What the reader of the picture has to know.
    fn notes(&self) -> Vec<String> {
        let set = self.set;
        let mut notes = Vec::new();
        let has_intervals = set.points().any(|point| point.interval.is_some());
        if has_intervals {
            notes.push("bands: 95 % intervals".to_owned());
        }
        match set.single_points() {
            0 => {}
            _ if !has_intervals => notes.push("one run a point, no intervals".to_owned()),
            count => {
                let points = counted(count as u64, "open point");
                notes.push(format!("{points} of one run"));
            }
        }
        let lost = self.axes.without_place(set);
        if lost > 0 {
            notes.push(format!("{lost} points have no place on a logarithmic axis"));
        }
        let names: Vec<&str> = set.curves.iter().map(|curve| curve.name.as_str()).collect();
        let shown = self.names();
        let left = names.iter().filter(|name| !shown.contains(name)).count();
        if left > 0 {
            notes.push(format!("{left} lines more are not drawn"));
        }
        if set.panels.len() > MOST_PANELS {
            let left = set.panels.len() - MOST_PANELS;
            notes.push(format!("{left} panels more are not drawn"));
        }
        match notes.is_empty() {
            true => notes,
            false => vec![notes.join("; ")],
        }
    }
}

/// Whether a point is of one run, so that it has no interval.
fn is_single(point: &CurvePoint) -> bool {
    point.n == 1 && point.interval.is_none()
}

/// The ticks of the horizontal axis whose labels do not overlap.
pub(super) fn fitting(frame: &AxesFrame, ticks: &[AxisTick]) -> Vec<AxisTick> {
    let mut fitting: Vec<AxisTick> = Vec::new();
    let mut free = f32::NEG_INFINITY;
    for tick in ticks {
        let half = LETTER * tick.label.chars().count() as f32 / 2.0;
        let x = frame.x(tick.value);
        if x - half >= free {
            free = x + half + 0.7 * LETTERS;
            fitting.push(tick.clone());
        }
    }
    fitting
}

/// Intervals of which at most one is at a place: from the lowest end there to the highest.
fn widest(intervals: &[[(f32, f32); 2]]) -> Vec<[(f32, f32); 2]> {
    let place = |interval: &[(f32, f32); 2]| (interval[0].0 * PLACES) as i64;
    let same = intervals.chunk_by(|a, b| place(a) == place(b));
    let whole = |same: &[[(f32, f32); 2]]| {
        // The vertical axis of a scene goes downwards.
        let low = same.iter().map(|[low, _]| low.1).fold(f32::MIN, f32::max);
        let high = same.iter().map(|[_, high]| high.1).fold(f32::MAX, f32::min);
        let x = same.first().map_or(0.0, |interval| interval[0].0);
        [(x, low), (x, high)]
    };
    same.map(whole).collect()
}

/// The points of a line of which more fall on one place than can be distinguished: of each place the first, the least, the largest and the last.
pub(super) fn thinned(frame: &AxesFrame, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let most = (frame.right - frame.left) * PLACES;
    if (points.len() as f32) <= 2.0 * most {
        return points.to_vec();
    }
    let place = |point: &(f64, f64)| (frame.x(point.0) * PLACES) as i64;
    let mut kept = Vec::new();
    for same in points.chunk_by(|a, b| place(a) == place(b)) {
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let ends = [
            same.first(),
            same.iter().min_by(by_y),
            same.iter().max_by(by_y),
            same.last(),
        ];
        kept.extend(ends.into_iter().flatten().copied());
    }
    kept
}

/// A text cut to so many characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let most = most.max(4);
    match text.chars().count() > most {
        true => text.chars().take(most - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}
