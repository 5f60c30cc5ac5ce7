//! The frame with axes of every picture: two scales, lines of a grid at round values with their labels, names. What is drawn in it is cut
//! off at its edges.

use crate::colours::{INK, RULE, SOFT};
use crate::scene::{SceneShape, TextAnchor};

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Evenly.
    Linear,
    /// Every decade has the same length; both ends are above zero.
    Logarithmic,
}

/// One of the two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub name: String,
    /// How it is divided.
    pub scale: AxisScale,
    /// Its least value.
    pub from: f64,
    /// Its largest value.
    pub to: f64,
}

/// A value at which an axis has a line, and what is written there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// A frame, with its edges in units of the scene.
#[derive(Clone, Debug)]
pub(crate) struct AxesFrame {
    pub(crate) left: f32,
    pub(crate) right: f32,
    pub(crate) top: f32,
    pub(crate) bottom: f32,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) x_ticks: Vec<AxisTick>,
    pub(crate) y_ticks: Vec<AxisTick>,
    /// Whether values are written beside the vertical axis, which several panels may share.
    pub(crate) has_y_labels: bool,
    /// The colour of its ground, if it has one of its own.
    pub(crate) ground: Option<u32>,
    /// The size of letters, in units of the scene.
    pub(crate) letters: f32,
}

impl Axis {
    /// The place of a value on the axis: 0 at its beginning, 1 at its end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        match self.scale {
            AxisScale::Linear => (value - self.from) / (self.to - self.from),
            AxisScale::Logarithmic => (value / self.from).log10() / (self.to / self.from).log10(),
        }
    }

    /// Round values, about as many as `wanted`: evenly 1, 2 or 5 times a power of ten apart; on a logarithmic scale powers of ten, and 2 and 5
    /// times these where there are fewer than three.
    pub(crate) fn round_values(&self, wanted: f64) -> Vec<f64> {
        if self.scale == AxisScale::Linear {
            let step = round_step((self.to - self.from) / wanted);
            let (first, last) = ((self.from / step).ceil(), (self.to / step + 1e-9).floor());
            let count = std::iter::successors(Some(first), |at| Some(at + 1.0));
            let count = count.take_while(|at| *at <= last);
            return count.map(|at| at * step).collect();
        }
        let decades = self.decades();
        if decades.len() >= 3 {
            let every = (decades.len() as f64 / wanted).ceil().max(1.0) as usize;
            return decades.into_iter().step_by(every).collect();
        }
        let first = 10_f64.powf(self.from.log10().floor());
        let powers = std::iter::successors(Some(first), |power| Some(power * 10.0));
        let powers = powers.take_while(|power| *power <= self.to);
        let each = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * power));
        let inside: Vec<f64> = each
            .filter(|value| (-1e-9..=1.0 + 1e-9).contains(&self.share(*value)))
            .collect();
        match inside.len() {
            0 | 1 => vec![self.from, self.to],
            _ => inside,
        }
    }

    /// The powers of ten on a logarithmic axis.
    fn decades(&self) -> Vec<f64> {
        let first = (self.from.log10() - 1e-9).ceil();
        let last = (self.to.log10() + 1e-9).floor();
        let powers = std::iter::successors(Some(first), |at| Some(at + 1.0));
        let powers = powers.take_while(|at| *at <= last);
        powers.map(|power| 10_f64.powf(power)).collect()
    }

    /// The values of the grid lines with plain numbers as labels, or powers of ten on a logarithmic scale.
    pub(crate) fn ticks(&self) -> Vec<AxisTick> {
        let step = round_step((self.to - self.from) / 8.0);
        match self.scale {
            AxisScale::Linear => {
                let values = self.round_values(8.0).into_iter();
                let tick = |value| AxisTick {
                    value,
                    label: number(value, step),
                };
                values.map(tick).collect()
            }
            AxisScale::Logarithmic => {
                let values = self.decades().into_iter();
                let tick = |value: f64| AxisTick {
                    value,
                    label: decade(value.log10().round()),
                };
                values.map(tick).collect()
            }
        }
    }
}

impl AxesFrame {
    /// The horizontal place of a value.
    pub(crate) fn x(&self, value: f64) -> f32 {
        let share = self.x.share(value).clamp(-1.0, 2.0);
        self.left + (self.right - self.left) * share as f32
    }

    /// The vertical place of a value; at most one height of the frame beyond it, so that no coordinate becomes too large for SVG.
    pub(crate) fn y(&self, value: f64) -> f32 {
        let share = self.y.share(value).clamp(-1.0, 2.0);
        self.bottom - (self.bottom - self.top) * share as f32
    }

    /// Whether a point is inside; one on the frame is (the tolerance is for rounding).
    pub(crate) fn contains(&self, point: (f64, f64)) -> bool {
        let inside = |axis: &Axis, value: f64| (-1e-9..=1.0 + 1e-9).contains(&axis.share(value));
        inside(&self.x, point.0) && inside(&self.y, point.1)
    }

    /// The pieces of a line that are inside the frame.
    pub(crate) fn cut_line(&self, points: &[(f64, f64)]) -> Vec<Vec<(f32, f32)>> {
        let mut pieces: Vec<Vec<(f32, f32)>> = Vec::new();
        let placed: Vec<(f32, f32)> = points.iter().map(|p| (self.x(p.0), self.y(p.1))).collect();
        for pair in placed.windows(2) {
            let Some([from, to]) = self.cut_segment(pair[0], pair[1]) else {
                continue;
            };
            match pieces.last_mut() {
                Some(piece) if piece.last() == Some(&from) => piece.push(to),
                _ => pieces.push(vec![from, to]),
            }
        }
        pieces
    }

    /// The piece of a segment inside the frame (Liang and Barsky 1984).
    fn cut_segment(&self, from: (f32, f32), to: (f32, f32)) -> Option<[(f32, f32); 2]> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let edges = [
            (-dx, from.0 - self.left),
            (dx, self.right - from.0),
            (-dy, from.1 - self.top),
            (dy, self.bottom - from.1),
        ];
        let (mut begin, mut end) = (0.0_f32, 1.0_f32);
        for (towards, distance) in edges {
            if towards == 0.0 {
                if distance < 0.0 {
                    return None;
                }
                continue;
            }
            let share = distance / towards;
            if towards < 0.0 {
                begin = begin.max(share);
            } else {
                end = end.min(share);
            }
        }
        let at = |share: f32| match share {
            0.0 => from,
            1.0 => to,
            share => (from.0 + share * dx, from.1 + share * dy),
        };
        (begin <= end).then(|| [at(begin), at(end)])
    }

    /// Draws ground, grid, labels and the frame itself.
    pub(crate) fn draw(&self, shapes: &mut Vec<SceneShape>) {
        self.draw_ground(shapes);
        self.draw_border(shapes);
    }

    /// Draws ground, grid and labels.
    pub(crate) fn draw_ground(&self, shapes: &mut Vec<SceneShape>) {
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        if let Some(colour) = self.ground {
            shapes.push(SceneShape::Rect {
                x: left,
                y: top,
                width: right - left,
                height: bottom - top,
                colour,
            });
        }
        for tick in &self.x_ticks {
            let x = self.x(tick.value);
            shapes.push(self.rule([(x, top), (x, bottom)]));
            let y = bottom + 1.5 * self.letters;
            let label = tick.label.as_str();
            shapes.push(SceneShape::text(x, y, TextAnchor::Middle, SOFT, label));
        }
        for tick in &self.y_ticks {
            let y = self.y(tick.value);
            shapes.push(self.rule([(left, y), (right, y)]));
            if self.has_y_labels {
                let at = (left - 0.6 * self.letters, y + 0.36 * self.letters);
                let label = tick.label.as_str();
                shapes.push(SceneShape::text(at.0, at.1, TextAnchor::End, SOFT, label));
            }
        }
    }

    /// A line of the grid.
    fn rule(&self, points: [(f32, f32); 2]) -> SceneShape {
        SceneShape::Line {
            points: points.to_vec(),
            colour: RULE,
            width: self.letters / 16.0,
            dashes: &[],
        }
    }

    /// Draws the lines of both axes around it.
    pub(crate) fn draw_border(&self, shapes: &mut Vec<SceneShape>) {
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        shapes.push(SceneShape::Line {
            points: vec![
                (left, top),
                (right, top),
                (right, bottom),
                (left, bottom),
                (left, top),
            ],
            colour: SOFT,
            width: 0.1 * self.letters,
            dashes: &[],
        });
    }

    /// Writes the names of the axes: `x` below the frame, `y` upwards at this place.
    pub(crate) fn draw_names(&self, y_name_at: f32, shapes: &mut Vec<SceneShape>) {
        let middle = f32::midpoint(self.left, self.right);
        let below = self.bottom + 3.1 * self.letters;
        let name = self.x.name.as_str();
        shapes.push(SceneShape::text(
            middle,
            below,
            TextAnchor::Middle,
            INK,
            name,
        ));
        shapes.push(SceneShape::Upwards {
            x: y_name_at,
            y: f32::midpoint(self.top, self.bottom),
            colour: INK,
            text: self.y.name.clone(),
        });
    }
}

/// 1, 2 or 5 times a power of ten, the least that is not below `least`.
pub(crate) fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 9"
)]
pub(crate) fn number(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.digits$}")
}

/// The label of a power of ten, such as `10⁻⁴`; from 0.1 to 1000 in plain digits.
fn decade(power: f64) -> String {
    if (-1.0..=3.0).contains(&power) {
        return number(10_f64.powf(power), 10_f64.powf(power));
    }
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32(u32::from('⁰') + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    };
    format!(
        "10{}",
        format!("{power:.0}")
            .chars()
            .map(raised)
            .collect::<String>()
    )
}

#[cfg(test)]
mod tests;
