//! Draws curves over two axes as self-contained SVG (no scripts, no external fonts), for light and dark screens.
//!
//! Computed values are a line; simulated or measured ones are points in the line's colour. What lies beyond the axes is cut off.

use crate::colours;
use crate::markup_escape::escaped;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 520.0;
/// The edges of the frame around the curves, pixels; also for `RIGHT`, `TOP` and `BOTTOM`.
const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = HEIGHT - 56.0;
/// Distance between two lines of the legend, pixels.
const ENTRY: f64 = 16.0;
/// Entries of the legend on one line.
const ENTRIES_A_LINE: usize = 2;

/// The dash patterns of the curves, in the order of their colours.
const DASHES: [&str; 6] = ["", "7 4", "2 3", "9 3 2 3", "12 4", "4 4"];

/// The colour and the dashes of each curve.
fn pens() -> impl Iterator<Item = (String, &'static str)> {
    colours::LIGHT.into_iter().map(colours::written).zip(DASHES)
}

/// Colours are literal: many programs that render SVG do not support CSS variables.
const STYLE: &str = "\
.paper{fill:#fff}.band{fill:#eaf0f6}text{font:12px system-ui,sans-serif;fill:#1f2933}.head{font-size:15px;font-weight:600}\
.soft{fill:#52606d}.middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#dde3ea}.frame{stroke:#52606d;fill:none}\
.curve{fill:none;stroke-width:2}.point{stroke:#fff;stroke-width:1.2}\
@media(prefers-color-scheme:dark){.paper{fill:#14181d}.band{fill:#1d2731}text{fill:#e4e7eb}.soft{fill:#9aa5b1}\
.grid{stroke:#2b333d}.frame{stroke:#9aa5b1}.point{stroke:#14181d}}";

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
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\">\n<title>{0}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <clipPath id=\"inside\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{1}\" height=\"{2}\"/></clipPath>\n\
         <text class=\"head\" x=\"{LEFT}\" y=\"24\">{0}</text>\n\
         <text class=\"soft\" x=\"{LEFT}\" y=\"42\">{3}</text>\n",
        escaped(&chart.title),
        RIGHT - LEFT,
        BOTTOM - TOP,
        escaped(&chart.below)
    );
    band(chart, &mut out);
    grid(chart, &mut out);
    for (curve, (colour, dashes)) in chart.curves.iter().zip(pens()) {
        drawn(chart, curve, &colour, dashes, &mut out);
    }
    legend(chart, &mut out);
    out.push_str("</svg>\n");
    out
}

impl Axis {
    /// The place of a value on the axis: 0 at its beginning, 1 at its end.
    fn share(&self, value: f64) -> f64 {
        match self.scale {
            AxisScale::Linear => (value - self.from) / (self.to - self.from),
            AxisScale::Logarithmic => (value / self.from).log10() / (self.to / self.from).log10(),
        }
    }

    /// The values of the grid lines, with their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            AxisScale::Linear => {
                let step = step((self.to - self.from) / 8.0);
                let (first, last) = ((self.from / step).ceil(), (self.to / step + 1e-9).floor());
                let count = std::iter::successors(Some(first), |at| Some(at + 1.0))
                    .take_while(|at| *at <= last);
                count
                    .map(|at| (at * step, number(at * step, step)))
                    .collect()
            }
            AxisScale::Logarithmic => {
                let (first, last) = (
                    (self.from.log10() - 1e-9).ceil(),
                    (self.to.log10() + 1e-9).floor(),
                );
                let decades = std::iter::successors(Some(first), |at| Some(at + 1.0))
                    .take_while(|at| *at <= last);
                decades
                    .map(|power| (10_f64.powf(power), decade(power)))
                    .collect()
            }
        }
    }
}

/// 1, 2 or 5 times a power of ten, the least that is not below `least`.
pub(crate) fn step(least: f64) -> f64 {
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
fn number(value: f64, step: f64) -> String {
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

fn x(chart: &Chart, value: f64) -> f64 {
    LEFT + chart.x.share(value) * (RIGHT - LEFT)
}

/// The y coordinate of a value; clamped to one frame height beyond the frame, so that no coordinate becomes too large for SVG.
fn y(chart: &Chart, value: f64) -> f64 {
    BOTTOM - chart.y.share(value).clamp(-1.0, 2.0) * (BOTTOM - TOP)
}

fn band(chart: &Chart, out: &mut String) {
    let Some((from, to, name)) = &chart.band else {
        return;
    };
    let (from, to) = (x(chart, *from), x(chart, *to));
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<rect class=\"band\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\"/>\
         <text class=\"soft middle\" x=\"{:.1}\" y=\"{}\">{}</text>",
        to - from,
        BOTTOM - TOP,
        f64::midpoint(from, to),
        BOTTOM - 8.0,
        escaped(name)
    );
}

fn grid(chart: &Chart, out: &mut String) {
    for (value, name) in chart.x.ticks() {
        let at = x(chart, value);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/><text class=\"soft middle\" x=\"{at:.1}\" y=\"{}\">{name}</text>",
            BOTTOM + 18.0
        );
    }
    for (value, name) in chart.y.ticks() {
        let at = y(chart, value);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/><text class=\"soft end\" x=\"{}\" y=\"{:.1}\">{name}</text>",
            LEFT - 8.0,
            at + 4.0
        );
    }
    let (middle, centre) = (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BOTTOM));
    let _ = writeln!(
        out,
        "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>\n\
         <text class=\"middle\" x=\"{middle}\" y=\"{}\">{}</text>\n\
         <text class=\"middle\" transform=\"translate(20 {centre}) rotate(-90)\">{}</text>",
        RIGHT - LEFT,
        BOTTOM - TOP,
        HEIGHT - 14.0,
        escaped(&chart.x.name),
        escaped(&chart.y.name)
    );
}

fn drawn(chart: &Chart, curve: &ChartCurve, colour: &str, dashes: &str, out: &mut String) {
    let mut path = String::new();
    for (at, (across, up)) in curve.line.iter().enumerate() {
        let letter = if at == 0 { 'M' } else { 'L' };
        let _ = write!(
            path,
            "{letter}{:.1} {:.1}",
            x(chart, *across),
            y(chart, *up)
        );
    }
    let _ = write!(
        out,
        "<g><title>{}</title><path class=\"curve\" clip-path=\"url(#inside)\" stroke=\"{colour}\" \
         stroke-dasharray=\"{dashes}\" d=\"{path}\"/>",
        escaped(&curve.name)
    );
    // A point on the frame is drawn whole (the tolerance is for rounding); one beyond it is left out.
    let inside = |axis: &Axis, value: f64| (-1e-9..=1.0 + 1e-9).contains(&axis.share(value));
    for (across, up) in curve
        .points
        .iter()
        .filter(|point| inside(&chart.x, point.0) && inside(&chart.y, point.1))
    {
        let (across, up) = (x(chart, *across), y(chart, *up));
        let _ = write!(
            out,
            "<circle class=\"point\" cx=\"{across:.1}\" cy=\"{up:.1}\" r=\"4\" fill=\"{colour}\"/>"
        );
    }
    out.push_str("</g>\n");
}

#[expect(clippy::cast_precision_loss, reason = "at most six")]
fn legend(chart: &Chart, out: &mut String) {
    for (at, (curve, (colour, dashes))) in chart.curves.iter().zip(pens()).enumerate() {
        let across = (at % ENTRIES_A_LINE) as f64 * (RIGHT - LEFT) / ENTRIES_A_LINE as f64;
        let (left, middle) = (LEFT + across, 58.0 + (at / ENTRIES_A_LINE) as f64 * ENTRY);
        let _ = writeln!(
            out,
            "<path class=\"curve\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\" d=\"M{left:.1} {middle:.1}h34\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left + 42.0,
            middle + 4.0,
            escaped(&curve.name)
        );
    }
}

#[cfg(test)]
mod tests;
