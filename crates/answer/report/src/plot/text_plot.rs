//! Curves as characters: braille dots or ASCII, with the axes' labels and a legend; a heat map as a table of figures.

use super::line_picture::shortened;
use super::plotted_axes::{LogAxes, PlottedAxes, axis_name};
use crate::axes::AxisTick;
use crate::grid::{Align, line, widths};
use stackline_analyze::curves::{Curve, CurveAxis, CurveKind, CurvePoint, CurveSet};
use stackline_core::units::{Quantity, three_digits};
use std::collections::BTreeSet;

/// How curves are drawn in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlotForm {
    /// How many columns there are; more than 80 are not used.
    pub columns: usize,
    /// Whether only characters of ASCII are used.
    pub is_ascii: bool,
    /// Whether lines are the values of one variable, and figures stand in a table.
    pub is_heat: bool,
    /// Which axes are logarithmic, whatever the values are.
    pub log: Option<LogAxes>,
}

/// With fewer columns points are listed instead of drawn.
const LEAST_COLUMNS: usize = 40;
const MOST_COLUMNS: usize = 80;
/// Lines of a plot.
const LINES: usize = 14;
/// Dots of a braille character, across and down.
const DOTS: (usize, usize) = (2, 4);
/// The bits of these dots, by column and line.
const BITS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
/// The braille character without dots.
const BLANK: u32 = 0x2800;
/// The marks of curves; what follows is drawn without.
const MARKS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Most panels and lines of a list.
const MOST_PANELS: usize = 8;
const MOST_LISTED: usize = 200;

/// The curves as text; each line ends with a line break.
#[must_use]
pub fn text_plot(set: &CurveSet, form: TextPlotForm) -> String {
    let columns = form.columns.min(MOST_COLUMNS);
    if columns < LEAST_COLUMNS {
        return listed(set);
    }
    let axes = PlottedAxes::fit(set, form.log);
    let mut text = String::new();
    for (panel, name) in set.panels.iter().enumerate().take(MOST_PANELS) {
        if !name.is_empty() {
            text += &format!("{name}\n");
        }
        let curves = set.curves.iter().filter(|curve| curve.panel == panel);
        let curves: Vec<&Curve> = curves.collect();
        text += &match form.is_heat {
            true => figures(set, &curves),
            false => TextCanvas::new(&axes, columns, form.is_ascii).plot(set, &curves),
        };
    }
    let more = set.panels.len().saturating_sub(MOST_PANELS);
    if more > 0 {
        text += &format!("{more} panels more are not drawn\n");
    }
    text
}

/// A value with its unit.
fn with_unit(axis: &CurveAxis, value: f64) -> String {
    if axis.quantity == Quantity::Number && !axis.unit.is_empty() {
        return format!("{} {}", three_digits(value), axis.unit);
    }
    let (factor, unit) = axis.quantity.axis_unit(value.abs());
    format!("{} {unit}", three_digits(value / factor))
        .trim_end()
        .to_owned()
}

/// The points one below the other, for a narrow terminal.
fn listed(set: &CurveSet) -> String {
    let points = set
        .curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let mut text = String::new();
    let mut left = 0;
    for (at, (curve, point)) in points.enumerate() {
        if at >= MOST_LISTED {
            left += 1;
            continue;
        }
        let panel = set.panels.get(curve.panel).map_or("", String::as_str);
        let names = [panel, curve.name.as_str()];
        let names = names.into_iter().filter(|name| !name.is_empty());
        let names: Vec<&str> = names.collect();
        let gap = if names.is_empty() { "" } else { ": " };
        text += &format!(
            "{}{gap}{} {}\n",
            names.join(", "),
            set.x.quantity.written(point.x),
            with_unit(&set.y, point.y)
        );
    }
    if left > 0 {
        text += &format!("and {left} more\n");
    }
    text
}

/// The figures of a heat map as a table: a row for each line, a column for each value.
fn figures(set: &CurveSet, curves: &[&Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let different: BTreeSet<u64> = points().map(|point| point.x.to_bits()).collect();
    let mut values: Vec<f64> = different.into_iter().map(f64::from_bits).collect();
    values.sort_by(f64::total_cmp);
    let most = points().map(|point| point.y).fold(0.0, f64::max);
    let (factor, unit) = set.y.quantity.axis_unit(most);
    let mut rows = vec![vec![set.x.name.clone()]];
    rows[0].extend(values.iter().map(|x| set.x.quantity.written(*x)));
    for curve in curves {
        let mut row = vec![curve.name.clone()];
        row.extend(values.iter().map(|x| {
            let mut mine = curve.points.iter();
            let found = mine.find(|point| point.x == *x);
            found.map_or_else(|| "-".to_owned(), |point| three_digits(point.y / factor))
        }));
        rows.push(row);
    }
    let mut align = vec![Align::Right; values.len() + 1];
    align[0] = Align::Left;
    let widths = widths(&rows);
    let lines = rows.iter().map(|row| line(row, &widths, &align) + "\n");
    format!("{}\n{}", axis_name(&set.y, unit), lines.collect::<String>())
}

/// Columns of the longest label of the vertical axis.
pub(super) fn label_columns(axes: &PlottedAxes) -> usize {
    let labels = axes.y_ticks.iter();
    let label = labels.map(|tick| tick.label.chars().count()).max();
    label.unwrap_or(0)
}

/// The characters of a plot.
pub(super) struct TextCanvas<'a> {
    axes: &'a PlottedAxes,
    is_ascii: bool,
    /// Lines of the plot itself.
    lines: usize,
    /// Columns of the labels at the left.
    margin: usize,
    /// Columns and lines of the plot itself.
    columns: usize,
    dots: Vec<u32>,
    marks: Vec<Option<char>>,
}

impl<'a> TextCanvas<'a> {
    fn new(axes: &'a PlottedAxes, columns: usize, is_ascii: bool) -> Self {
        let margin = label_columns(axes).min(columns / 3);
        Self::with_size(axes, [columns, LINES], margin, is_ascii)
    }

    /// A plot of so many columns, with its margin, and lines.
    pub(super) fn with_size(
        axes: &'a PlottedAxes,
        size: [usize; 2],
        label: usize,
        is_ascii: bool,
    ) -> Self {
        let margin = label + 2;
        let (columns, lines) = (size[0] - margin, size[1]);
        Self {
            axes,
            is_ascii,
            lines,
            margin,
            columns,
            dots: vec![0; columns * lines],
            marks: vec![None; columns * lines],
        }
    }

    /// Dots to the right and down of a point; `None` beyond the axes.
    fn dot(&self, point: (f64, f64)) -> Option<(i64, i64)> {
        let (x, y) = (self.axes.x.share(point.0), self.axes.y.share(point.1));
        let inside = |share: f64| (-1e-9..=1.0 + 1e-9).contains(&share);
        let last = |count: usize| (count - 1) as f64;
        (inside(x) && inside(y)).then(|| {
            (
                (x * last(self.columns * DOTS.0)).round() as i64,
                ((1.0 - y) * last(self.lines * DOTS.1)).round() as i64,
            )
        })
    }

    fn set(&mut self, x: i64, y: i64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else {
            return;
        };
        let (column, row) = (x / DOTS.0, y / DOTS.1);
        if column < self.columns && row < self.lines {
            self.dots[row * self.columns + column] |= BITS[x % DOTS.0][y % DOTS.1];
        }
    }

    /// A straight line of dots.
    fn stroke(&mut self, from: (i64, i64), to: (i64, i64)) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steps = dx.abs().max(dy.abs()).max(1);
        for step in 0..=steps {
            let along = |from: i64, whole: i64| {
                let share = step as f64 / steps as f64;
                from + (share * whole as f64).round() as i64
            };
            self.set(along(from.0, dx), along(from.1, dy));
        }
    }

    fn curve(&mut self, curve: &Curve, mark: Option<char>) {
        let placed = |point: &CurvePoint| self.dot(self.axes.place(point)?);
        let points: Vec<(i64, i64)> = curve.points.iter().filter_map(placed).collect();
        for pair in points.windows(2) {
            self.stroke(pair[0], pair[1]);
        }
        if let [only] = points[..] {
            self.set(only.0, only.1);
        }
        let Some(mark) = mark else {
            return;
        };
        // Of many points some have the mark, so that curves are distinguished.
        let step = match points.len() <= self.columns / 3 {
            true => 1,
            false => points.len() / 4,
        };
        for (x, y) in points.into_iter().skip(step - 1).step_by(step) {
            let at = y as usize / DOTS.1 * self.columns + x as usize / DOTS.0;
            // Of several curves in one place the first is seen.
            if let Some(cell) = self.marks.get_mut(at) {
                cell.get_or_insert(mark);
            }
        }
    }

    fn plot(mut self, set: &CurveSet, curves: &[&Curve]) -> String {
        let has_marks = set.kind == CurveKind::Sweep || curves.len() > 1;
        let mark = |at: usize| MARKS.chars().nth(at).filter(|_| has_marks);
        for (at, curve) in curves.iter().enumerate() {
            let letter = match curves.len() {
                1 => Some('o').filter(|_| has_marks && curve.points.len() <= self.columns / 3),
                _ => mark(at),
            };
            self.curve(curve, letter);
        }
        let mut text = format!("{}\n", self.axes.y.name);
        text += &self.rows();
        text += &self.foot();
        text += &legend(curves, self.margin + self.columns);
        text
    }

    /// Curves below their legend, with the horizontal axis if it is wanted; several have marks.
    pub(super) fn panel(mut self, curves: &[&Curve], has_foot: bool) -> String {
        for (at, curve) in curves.iter().enumerate() {
            let mark = MARKS.chars().nth(at).filter(|_| curves.len() > 1);
            self.curve(curve, mark);
        }
        let columns = self.margin + self.columns;
        let mut text = match curves {
            [only] if only.name.is_empty() => String::new(),
            [only] => shortened(&only.name, columns) + "\n",
            several => legend(several, columns),
        };
        text += &self.rows();
        if has_foot {
            text += &self.foot();
        }
        text
    }

    fn rows(&self) -> String {
        (0..self.lines).map(|row| self.row(row)).collect()
    }

    /// A line of the plot with its label.
    fn row(&self, row: usize) -> String {
        let line = |tick: &AxisTick| {
            let share = 1.0 - self.axes.y.share(tick.value);
            (share * (self.lines * DOTS.1 - 1) as f64).round() as usize / DOTS.1
        };
        let tick = self.axes.y_ticks.iter().find(|tick| line(tick) == row);
        let label = tick.map_or("", |tick| tick.label.as_str());
        let side = match (self.is_ascii, tick.is_some()) {
            (true, _) => '|',
            (false, true) => '┤',
            (false, false) => '│',
        };
        let cells = row * self.columns..(row + 1) * self.columns;
        let cell = |at: usize| match (self.marks[at], self.dots[at]) {
            (Some(mark), _) => mark,
            (None, 0) => ' ',
            (None, _) if self.is_ascii => '.',
            (None, bits) => char::from_u32(BLANK + bits).unwrap_or(' '),
        };
        let drawn: String = cells.map(cell).collect();
        let wide = self.margin - 1;
        format!("{label:>wide$}{side}{drawn}").trim_end().to_owned() + "\n"
    }

    /// The horizontal axis with its labels and its name.
    fn foot(&self) -> String {
        let (corner, along) = if self.is_ascii {
            ('+', '-')
        } else {
            ('└', '─')
        };
        let margin = " ".repeat(self.margin - 1);
        let axis = along.to_string().repeat(self.columns);
        let mut labels: Vec<char> = Vec::new();
        let most = self.margin + self.columns;
        for tick in &self.axes.x_ticks {
            let share = self.axes.x.share(tick.value);
            let middle = self.margin + (share * (self.columns - 1) as f64).round() as usize;
            let wide = tick.label.chars().count();
            let begin = middle
                .saturating_sub(wide / 2)
                .min(most.saturating_sub(wide));
            // Labels that would touch the one before are left out.
            if labels.is_empty() || begin > labels.len() {
                labels.resize(begin, ' ');
                labels.extend(tick.label.chars());
            }
        }
        let labels: String = labels.into_iter().collect();
        let name = &self.axes.x.name;
        let indent = self.margin + self.columns.saturating_sub(name.chars().count()) / 2;
        format!(
            "{margin}{corner}{axis}\n{}\n{}{name}\n",
            labels.trim_end(),
            " ".repeat(indent)
        )
    }
}

/// Marks and names of curves, as many on a line as fit.
fn legend(curves: &[&Curve], columns: usize) -> String {
    if curves.iter().all(|curve| curve.name.is_empty()) {
        return String::new();
    }
    let mut lines: Vec<String> = Vec::new();
    let marks = MARKS.chars();
    for (mark, curve) in marks.zip(curves) {
        let mark = if curves.len() == 1 { 'o' } else { mark };
        let entry = shortened(&format!("{mark} {}", curve.name), columns);
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + entry.chars().count() <= columns => {
                *line += &format!("   {entry}");
            }
            _ => lines.push(entry),
        }
    }
    let more = curves.len().saturating_sub(MARKS.len());
    if more > 0 {
        lines.push(format!("and {more} lines without a mark"));
    }
    lines.join("\n") + "\n"
}
