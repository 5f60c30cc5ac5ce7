//! A figure over two variables as a picture: a cell for each two values, darker for more, with the figure in it where there is room.

use super::line_picture::{LETTER, shortened};
use super::plotted_axes::{PlotWidth, axis_name};
use crate::colours::{INK, SOFT};
use crate::grid::wrap;
use crate::scene::{SceneMeasure, SceneShape, TextAnchor, VectorScene};
use stackline_analyze::curves::{CurveAxis, CurveSet};
use stackline_core::units::three_digits;
use std::collections::{BTreeMap, BTreeSet};

const LETTERS: f32 = SceneMeasure::Paper.letters();
/// Most values of an axis that have cells of their own.
const MOST_CELLS: usize = 400;
/// The least and the largest figure's colours; between them it is mixed. Their lightness differs, so they are distinguished in grey too.
const RAMP: [u32; 2] = [0xe9f1f8, 0x0b3c6f];
/// The share from which on a cell is so dark that its text is white.
const DARK: f64 = 0.55;
const WHITE: u32 = 0xff_fffe;
/// The text of a light cell, on any screen.
const BLACK: u32 = 0x10161c;

/// A grid of cells: the values of both variables, and figures by their places.
struct HeatGrid {
    x: Vec<f64>,
    y: Vec<f64>,
    cells: BTreeMap<(usize, usize), f64>,
}

/// Draws the first panel of curves, whose lines are the values of one variable.
///
/// # Errors
/// If lines are not the values of one variable, or there are too many cells: one sentence.
pub fn heat_picture(set: &CurveSet, width: PlotWidth) -> Result<VectorScene, String> {
    let by = set.by.as_ref().ok_or(
        "a heat map is over two swept variables, and lines are not distinguished by one number alone",
    )?;
    let grids: Vec<HeatGrid> = (0..set.panels.len())
        .map(|panel| HeatGrid::from_panel(set, panel))
        .collect();
    let is_large = |grid: &HeatGrid| grid.x.len().max(grid.y.len()) > MOST_CELLS;
    if grids.iter().any(is_large) {
        return Err(format!(
            "a heat map has at most {MOST_CELLS} values of a variable"
        ));
    }
    let figures = || grids.iter().flat_map(|grid| grid.cells.values().copied());
    let range = HeatRange {
        least: figures().fold(f64::INFINITY, f64::min),
        most: figures().fold(f64::NEG_INFINITY, f64::max),
    };
    let (factor, unit) = set.y.quantity.axis_unit(range.most);
    let layout = HeatLayout {
        set,
        by,
        range,
        factor,
        width: width.points(),
    };
    let mut shapes = Vec::new();
    let what = axis_name(&set.y, unit);
    let mut top = layout.scale(&what, &mut shapes);
    for (panel, grid) in grids.iter().enumerate() {
        let name = shortened(&set.panels[panel], (layout.width / LETTER) as usize - 2);
        if !name.is_empty() {
            shapes.push(SceneShape::text(LETTERS, top, TextAnchor::Start, INK, name));
            top += 0.8 * LETTERS;
        }
        top = layout.grid(grid, top, &mut shapes);
    }
    Ok(VectorScene {
        title: format!("{what} over {} and {}", set.x.name, by.name),
        measure: SceneMeasure::Paper,
        width: layout.width,
        height: top,
        shapes,
    })
}

impl HeatGrid {
    fn from_panel(set: &CurveSet, panel: usize) -> Self {
        let curves = || set.curves.iter().filter(move |curve| curve.panel == panel);
        let different = |values: BTreeSet<u64>| {
            let mut values: Vec<f64> = values.into_iter().map(f64::from_bits).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let points = curves().flat_map(|curve| &curve.points);
        let x = different(points.map(|point| point.x.to_bits()).collect());
        let y = different(
            curves()
                .filter_map(|curve| curve.number)
                .map(f64::to_bits)
                .collect(),
        );
        let place = |values: &[f64], value: f64| {
            let found = values.binary_search_by(|known| known.total_cmp(&value));
            found.ok()
        };
        let mut cells = BTreeMap::new();
        for curve in curves() {
            let row = curve.number.and_then(|number| place(&y, number));
            for point in &curve.points {
                if let (Some(row), Some(column)) = (row, place(&x, point.x)) {
                    cells.insert((row, column), point.y);
                }
            }
        }
        Self { x, y, cells }
    }
}

/// The least and the largest figure.
#[derive(Clone, Copy)]
struct HeatRange {
    least: f64,
    most: f64,
}

impl HeatRange {
    /// The place of a figure, 0 to 1; figures that cover more than a factor 100 are compared by their logarithms.
    fn share(self, figure: f64) -> f64 {
        let Self { least, most } = self;
        let share = match least > 0.0 && most / least > 100.0 {
            true => (figure / least).ln() / (most / least).ln(),
            false => (figure - least) / (most - least),
        };
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.5
        }
    }
}

/// The colour of a share.
fn mixed(share: f64) -> u32 {
    let part = |colour: u32, byte: u32| f64::from((colour >> (8 * byte)) & 0xff);
    let mix = |byte: u32| {
        let (from, to) = (part(RAMP[0], byte), part(RAMP[1], byte));
        ((from + (to - from) * share).round() as u32) << (8 * byte)
    };
    mix(0) | mix(1) | mix(2)
}

struct HeatLayout<'s> {
    set: &'s CurveSet,
    by: &'s CurveAxis,
    range: HeatRange,
    /// The unit of figures.
    factor: f64,
    width: f32,
}

impl HeatLayout<'_> {
    /// The figure as it is written.
    fn figure(&self, value: f64) -> String {
        three_digits(value / self.factor)
    }

    /// Draws what colours mean; returns where it ends.
    fn scale(&self, what: &str, shapes: &mut Vec<SceneShape>) -> f32 {
        const STEPS: usize = 24;
        let mut y = 1.3 * LETTERS;
        for words in wrap(what, (self.width / LETTER) as usize - 2) {
            shapes.push(SceneShape::text(LETTERS, y, TextAnchor::Start, INK, words));
            y += 1.25 * LETTERS;
        }
        let (least, most) = (self.figure(self.range.least), self.figure(self.range.most));
        let left = LETTERS + LETTER * (least.chars().count() as f32 + 1.0);
        let step = 3.0_f32;
        shapes.push(SceneShape::text(LETTERS, y, TextAnchor::Start, SOFT, least));
        for at in 0..STEPS {
            shapes.push(SceneShape::Rect {
                x: left + step * at as f32,
                y: y - 0.8 * LETTERS,
                width: step + 0.2,
                height: LETTERS,
                colour: mixed(at as f64 / (STEPS - 1) as f64),
            });
        }
        let right = left + step * STEPS as f32 + LETTER;
        shapes.push(SceneShape::text(right, y, TextAnchor::Start, SOFT, most));
        y + 1.8 * LETTERS
    }

    /// Draws the cells of a panel below `top`; returns where it ends.
    fn grid(&self, grid: &HeatGrid, top: f32, shapes: &mut Vec<SceneShape>) -> f32 {
        let rows = labels(self.by, &grid.y);
        let longest = rows.iter().map(|label| label.chars().count()).max();
        let left = 2.6 * LETTERS + LETTER * longest.unwrap_or(0) as f32;
        let wide = (self.width - left - LETTERS) / grid.x.len().max(1) as f32;
        let high = (0.6 * (self.width - left) / grid.y.len().max(1) as f32).clamp(0.5, 22.0);
        let bottom = top + high * grid.y.len() as f32;
        for ((row, column), value) in &grid.cells {
            let share = self.range.share(*value);
            // The least value is at the bottom, as on an axis.
            let (x, y) = (
                left + wide * *column as f32,
                bottom - high * (*row + 1) as f32,
            );
            shapes.push(SceneShape::Rect {
                x,
                y,
                width: wide - 0.4,
                height: high - 0.4,
                colour: mixed(share),
            });
            let words = self.figure(*value);
            let fits = LETTER * words.chars().count() as f32 <= wide - 1.0 && high >= LETTERS;
            if fits {
                let colour = if share > DARK { WHITE } else { BLACK };
                let at = (x + wide / 2.0, y + high / 2.0 + 0.36 * LETTERS);
                shapes.push(SceneShape::text(
                    at.0,
                    at.1,
                    TextAnchor::Middle,
                    colour,
                    words,
                ));
            }
        }
        let mut free = f32::INFINITY;
        for (row, label) in rows.into_iter().enumerate() {
            let y = bottom - high * (row as f32 + 0.5) + 0.36 * LETTERS;
            if y <= free {
                free = y - 1.1 * LETTERS;
                let right = left - 0.6 * LETTERS;
                shapes.push(SceneShape::text(right, y, TextAnchor::End, SOFT, label));
            }
        }
        self.columns(grid, [left, wide], bottom, shapes);
        let middle = f32::midpoint(left, self.width - LETTERS);
        let below = bottom + 2.8 * LETTERS;
        let x_name = self.set.x.name.as_str();
        shapes.push(SceneShape::text(
            middle,
            below,
            TextAnchor::Middle,
            INK,
            x_name,
        ));
        shapes.push(SceneShape::Upwards {
            x: 1.1 * LETTERS,
            y: f32::midpoint(top, bottom),
            colour: INK,
            text: self.by.name.clone(),
        });
        bottom + 4.2 * LETTERS
    }

    /// Writes the values of columns below the cells, which begin at the first of these places and are as wide as the second; those
    /// that would overlap are left out.
    fn columns(&self, grid: &HeatGrid, cells: [f32; 2], bottom: f32, shapes: &mut Vec<SceneShape>) {
        let [left, wide] = cells;
        let mut free = f32::NEG_INFINITY;
        for (column, label) in labels(&self.set.x, &grid.x).into_iter().enumerate() {
            let x = left + wide * (column as f32 + 0.5);
            let half = LETTER * label.chars().count() as f32 / 2.0;
            if x - half >= free {
                free = x + half + 0.7 * LETTERS;
                let y = bottom + 1.3 * LETTERS;
                shapes.push(SceneShape::text(x, y, TextAnchor::Middle, SOFT, label));
            }
        }
    }
}

/// The values of a variable, each with its unit.
fn labels(axis: &CurveAxis, values: &[f64]) -> Vec<String> {
    let each = values.iter().map(|value| axis.quantity.written(*value));
    each.collect()
}
