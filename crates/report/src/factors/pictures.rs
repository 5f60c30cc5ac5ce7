//! Pictures of an experiment: effects with their intervals, interactions of the two largest, a half-normal plot, a tornado. SVG without
//! scripts, fonts or anything else from outside. They compute nothing but where things stand.

use super::{Outcome, Response, mean_of, times, unscaled};
use crate::drawing::escaped;
use stackline_factors::{Answer, Scale};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 260.0;
const RIGHT: f64 = WIDTH - 40.0;
const ROW: f64 = 30.0;
const TOP: f64 = 64.0;

const STYLE: &str = "\
.paper{fill:#fff}text{font:12px system-ui,sans-serif;fill:#1f2933}.head{font-size:15px;font-weight:600}.soft{fill:#52606d}\
.middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#dde3ea}.zero{stroke:#52606d}.bar{fill:#3e7cb1}.less{fill:#c9a227}\
.faint{fill:#b3bfcc}.whisker{stroke:#1f2933;stroke-width:2}.dot{fill:#3e7cb1}.first{stroke:#3e7cb1}.second{stroke:#e07b39}\
.curve{fill:none;stroke-width:2}\
@media(prefers-color-scheme:dark){.paper{fill:#14181d}text{fill:#e4e7eb}.soft{fill:#9aa5b1}.grid{stroke:#2b333d}\
.zero{stroke:#9aa5b1}.whisker{stroke:#e4e7eb}.faint{fill:#465362}}";

/// Each with its name; none where there is no answer.
#[must_use]
pub fn pictures(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let Some(response) = outcome.responses.first() else { return Vec::new() };
    let Ok(answer) = &response.answer else { return Vec::new() };
    let mut all = vec![
        ("effects", effects(outcome, response, answer)),
        ("tornado", tornado(outcome, response, answer)),
        ("half-normal", half_normal(outcome, answer)),
    ];
    all.extend(interaction(outcome, response, answer).map(|svg| ("interaction", svg)));
    all
}

fn svg(high: f64, title: &str, below: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {high}\" width=\"{WIDTH}\" height=\"{high}\" role=\"img\">\n\
         <title>{0}</title>\n<style>{STYLE}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{high}\"/>\n\
         <text class=\"head\" x=\"20\" y=\"26\">{0}</text>\n<text class=\"soft\" x=\"20\" y=\"44\">{1}</text>\n{body}</svg>\n",
        escaped(title),
        escaped(below)
    )
}

/// Least and most, where they are known.
type Interval = Option<(f64, f64)>;

/// A horizontal axis of ratios, on a logarithmic scale.
struct Ratios {
    least: f64,
    most: f64,
}

impl Ratios {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((1.0_f64, 1.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        let (least, most) = (least.ln(), most.ln());
        let margin = 0.06 * (most - least).max(0.02);
        Self { least: least - margin, most: most + margin }
    }

    fn x(&self, ratio: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ratio.max(1e-12).ln() - self.least) / (self.most - self.least)
    }

    fn grid(&self, bottom: f64, out: &mut String) {
        let steps: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0];
        let mut inside: Vec<f64> =
            steps.into_iter().filter(|step| (self.least..=self.most).contains(&step.ln())).collect();
        if inside.len() < 3 {
            inside = [self.least, f64::midpoint(self.least, self.most), self.most].map(f64::exp).to_vec();
            // What would stand in the label of `x 1` is left out.
            inside.retain(|step| (self.x(*step) - self.x(1.0)).abs() > 48.0);
            inside.push(1.0);
        }
        for step in inside {
            let (x, class) = (self.x(step), if (step - 1.0).abs() < 1e-9 { "zero" } else { "grid" });
            let _ = writeln!(
                out,
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"soft middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 16.0,
                escaped(&times(step))
            );
        }
    }
}

/// Dots with whiskers, a row an effect.
fn effects(outcome: &Outcome, response: &Response, answer: &Answer) -> String {
    let rows: Vec<(String, f64, Interval)> = answer
        .effects
        .iter()
        .map(|effect| {
            let (gain, within) = response.gain(answer, mean_of(answer, effect), &effect.estimate);
            (outcome.level(effect.factor, effect.level), gain, within)
        })
        .collect();
    let ends = rows.iter().flat_map(|(_, gain, within)| {
        let (least, most) = within.unwrap_or((*gain, *gain));
        [*gain, least, most]
    });
    let axis = Ratios::of(ends);
    let bottom = TOP + ROW * rows.len() as f64;
    let mut body = String::new();
    axis.grid(bottom, &mut body);
    for (at, (name, gain, within)) in rows.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        let _ = writeln!(
            body,
            "<text class=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 12.0,
            y + 4.0,
            escaped(&short(name))
        );
        if let Some((least, most)) = within {
            let _ = writeln!(
                body,
                "<line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                axis.x(*least),
                axis.x(*most)
            );
        }
        let _ = writeln!(body, "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\"/>", axis.x(*gain));
    }
    let title = format!("What each factor does to the {}", response.name);
    svg(bottom + 32.0, &title, "times as fast, on average over the levels of the others; 95 % intervals", &body)
}

fn short(name: &str) -> String {
    const MOST: usize = 36;
    if name.chars().count() <= MOST { name.to_owned() } else { name.chars().take(MOST - 1).collect::<String>() + "…" }
}

/// Bars from nothing to each gain, the longest on top.
fn tornado(outcome: &Outcome, response: &Response, answer: &Answer) -> String {
    let rows: Vec<(String, f64, bool)> = answer
        .effects
        .iter()
        .map(|effect| {
            let (gain, _) = response.gain(answer, mean_of(answer, effect), &effect.estimate);
            (outcome.level(effect.factor, effect.level), gain, effect.estimate.may_be_zero())
        })
        .collect();
    let axis = Ratios::of(rows.iter().map(|(_, gain, _)| *gain));
    let bottom = TOP + ROW * rows.len() as f64;
    let mut body = String::new();
    axis.grid(bottom, &mut body);
    for (at, (name, gain, nothing)) in rows.iter().enumerate() {
        let y = TOP + ROW * at as f64;
        let (zero, end) = (axis.x(1.0), axis.x(*gain));
        let class = if *nothing {
            "faint"
        } else if *gain < 1.0 {
            "less"
        } else {
            "bar"
        };
        let _ = writeln!(
            body,
            "<text class=\"end\" x=\"{}\" y=\"{:.1}\">{}</text><rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\"{}>{}</text>",
            LEFT - 12.0,
            y + ROW / 2.0 + 4.0,
            escaped(&short(name)),
            zero.min(end),
            y + 4.0,
            (end - zero).abs().max(1.0),
            ROW - 8.0,
            if end + 60.0 > WIDTH { end - 6.0 } else { end + 6.0 },
            y + ROW / 2.0 + 4.0,
            if end + 60.0 > WIDTH { " class=\"end\"" } else { "" },
            escaped(&times(*gain))
        );
    }
    let title = format!("What would make the {} better", response.name);
    svg(bottom + 32.0, &title, "times as fast; pale: may be nothing", &body)
}

/// Sizes of effects against what they would be if all were chance: those that matter stand off the line.
fn half_normal(outcome: &Outcome, answer: &Answer) -> String {
    let mut sizes: Vec<(f64, String)> = answer
        .effects
        .iter()
        .map(|effect| (effect.estimate.value.abs(), outcome.factors[effect.factor].name.clone()))
        .chain(
            answer.interactions.iter().filter_map(|one| Some((one.estimate?.value.abs(), outcome.names(&one.factors)))),
        )
        .collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (high, n) = (420.0, sizes.len() as f64);
    let bottom = high - 50.0;
    let most = sizes.last().map_or(1.0, |(size, _)| size.max(1e-12));
    let quantile = |at: usize| half_normal_quantile((at as f64 + 0.5) / n);
    let top = quantile(sizes.len().saturating_sub(1)).max(1e-9);
    let (left, right) = (70.0, RIGHT - 170.0);
    let mut body = format!(
        "<line class=\"zero\" x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
         <line class=\"zero\" x1=\"{left}\" x2=\"{left}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
         <text class=\"soft middle\" x=\"{:.1}\" y=\"{:.1}\">size of the effect{}</text>\
         <text class=\"soft middle\" transform=\"translate(40 {:.1}) rotate(-90)\">quantile of half a normal distribution</text>\n",
        f64::midpoint(left, right),
        bottom + 32.0,
        if answer.scale == Scale::Multiplicative { ", logarithm of the ratio" } else { "" },
        f64::midpoint(TOP, bottom),
    );
    // Through the corner and the middle of the small half: what is chance alone.
    let middle = sizes.len() / 2;
    let slope = sizes
        .get(middle.saturating_sub(1))
        .map_or(0.0, |(size, _)| size / quantile(middle.saturating_sub(1)).max(1e-9));
    if slope > 0.0 {
        let end = (most / slope).min(top);
        let _ = writeln!(
            body,
            "<line class=\"grid\" x1=\"{left}\" y1=\"{bottom}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            left + (right - left) * slope * end / most,
            bottom - (bottom - TOP - 10.0) * end / top
        );
    }
    for (at, (size, name)) in sizes.iter().enumerate() {
        let (x, y) = (left + (right - left) * size / most, bottom - (bottom - TOP - 10.0) * quantile(at) / top);
        let _ = writeln!(
            body,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{}</title></circle>",
            escaped(name)
        );
        if *size > 0.25 * most || at + 3 > sizes.len() {
            let _ = writeln!(body, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 9.0, y + 4.0, escaped(&short(name)));
        }
    }
    svg(
        high,
        "Half-normal plot of effects",
        "what is chance alone lies near the line; what stands right of it is not",
        &body,
    )
}

/// The quantile of |Z|, Z standard normal (Abramowitz and Stegun 26.2.23: within 4.5e-4, which no eye sees).
fn half_normal_quantile(share: f64) -> f64 {
    let tail = (1.0 - share) / 2.0;
    let t = (-2.0 * tail.max(1e-12).ln()).sqrt();
    t - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
        / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t)
}

/// The two factors whose interaction is largest: a line for each level of the second, on the scale on which what adds up is parallel.
fn interaction(outcome: &Outcome, response: &Response, answer: &Answer) -> Option<String> {
    let pair = answer.interactions.iter().find(|one| one.factors.len() == 2)?;
    let (a, b) = (pair.factors[0], pair.factors[1]);
    let value = |level_a: usize, level_b: usize| {
        let mut row = outcome.base();
        (row[a], row[b]) = (level_a, level_b);
        answer.predicted(&outcome.design, &row).value
    };
    let (of_a, of_b) = (outcome.design.levels[a], outcome.design.levels[b]);
    let cells = (0..of_a).flat_map(|one| (0..of_b).map(move |other| (one, other)));
    let all: Vec<f64> = cells.map(|(one, other)| value(one, other)).collect();
    let (least, most) = (all.iter().copied().fold(f64::MAX, f64::min), all.iter().copied().fold(f64::MIN, f64::max));
    let span = (most - least).max(1e-9);
    let (high, left, right) = (400.0, 110.0, WIDTH - 200.0);
    let bottom = high - 50.0;
    let x = |level: usize| left + (right - left) * (level as f64 + 0.25) / (of_a as f64 - 0.5);
    let y = |value: f64| bottom - 16.0 - (bottom - TOP - 32.0) * (value - least) / span;
    let mut body = format!("<line class=\"zero\" x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\n");
    for (at, level) in outcome.factors[a].levels.iter().enumerate() {
        let _ = writeln!(
            body,
            "<text class=\"soft middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(at),
            bottom + 18.0,
            escaped(level)
        );
    }
    for step in [least, f64::midpoint(least, most), most] {
        let _ = writeln!(
            body,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text class=\"soft end\" x=\"{1:.1}\" y=\"{2:.1}\">{3}</text>",
            y(step),
            left - 8.0,
            y(step) + 4.0,
            escaped(&response.unit.written(unscaled(answer, step)))
        );
    }
    for level in 0..of_b {
        let points: Vec<String> = (0..of_a).map(|at| format!("{:.1},{:.1}", x(at), y(value(at, level)))).collect();
        let class = if level == 0 { "first" } else { "second" };
        let name = format!("{} {}", short_name(&outcome.factors[b].name), outcome.factors[b].levels[level]);
        let _ = writeln!(
            body,
            "<polyline class=\"curve {class}\" points=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            points.join(" "),
            x(of_a - 1) + 10.0,
            y(value(of_a - 1, level)) + 4.0,
            escaped(&short(&name))
        );
    }
    let title = format!("{} against {}", response.name, outcome.factors[a].name);
    let below = match answer.scale {
        Scale::Multiplicative => "logarithmic; parallel lines: gains multiply; all others at their first level",
        Scale::Additive => "parallel lines: differences add up; all others at their first level",
    };
    Some(svg(high, &title, below, &body))
}

fn short_name(name: &str) -> &str {
    name.split(" of ").next().unwrap_or(name)
}
