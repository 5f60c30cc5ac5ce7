//! Pictures of an experiment: effects with intervals, the largest interaction, a half-normal plot, and a tornado chart. The SVG is
//! self-contained (no scripts, no external fonts).

use super::canvas::{Canvas, FactorPicture, SvgPoint};
use super::{FactorOutcome, Response, times, unscaled};
use stackline_factors::{EffectScale, FactorAnswer};

pub(super) const WIDTH: f64 = 760.0;
const LEFT: f64 = 260.0;
const RIGHT: f64 = WIDTH - 40.0;
const ROW: f64 = 30.0;
pub(super) const TOP: f64 = 64.0;

/// All pictures of the main response; none if it could not be analysed.
#[must_use]
pub fn pictures(outcome: &FactorOutcome) -> Vec<FactorPicture> {
    let Some(response) = outcome.responses.first() else {
        return Vec::new();
    };
    let Ok(answer) = &response.answer else {
        return Vec::new();
    };
    let mut all = vec![
        effects(outcome, response, answer),
        tornado(outcome, response, answer),
        half_normal(outcome, answer),
    ];
    all.extend(interaction(outcome, response, answer));
    all
}

/// The ends of an interval, if known.
type EffectInterval = Option<(f64, f64)>;

/// A horizontal axis of ratios, on a logarithmic scale.
struct Ratios {
    least: f64,
    most: f64,
}

impl Ratios {
    fn from_values(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((1.0_f64, 1.0_f64), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        let (least, most) = (least.ln(), most.ln());
        let margin = 0.06 * (most - least).max(0.02);
        Self {
            least: least - margin,
            most: most + margin,
        }
    }

    fn x(&self, ratio: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ratio.max(1e-12).ln() - self.least) / (self.most - self.least)
    }

    fn grid(&self, bottom: f64, canvas: &mut Canvas) {
        let steps: [f64; 14] = [
            0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0,
        ];
        let mut inside: Vec<f64> = steps
            .into_iter()
            .filter(|step| (self.least..=self.most).contains(&step.ln()))
            .collect();
        if inside.len() < 3 {
            inside = [self.least, f64::midpoint(self.least, self.most), self.most]
                .map(f64::exp)
                .to_vec();
            // Labels that would overlap that of `x 1` are left out.
            inside.retain(|step| (self.x(*step) - self.x(1.0)).abs() > 48.0);
            inside.push(1.0);
        }
        for step in inside {
            let (x, class) = (
                self.x(step),
                if (step - 1.0).abs() < 1e-9 {
                    "zero"
                } else {
                    "grid"
                },
            );
            canvas.line(class, (x, TOP), (x, bottom));
            canvas.text("soft middle", (x, bottom + 16.0), &times(step));
        }
    }
}

/// The effects as dots with whiskers for their intervals, one row each.
fn effects(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> FactorPicture {
    let rows: Vec<(String, f64, EffectInterval)> = answer
        .effects
        .iter()
        .map(|effect| {
            let (gain, within) = response.gain(answer, effect.factor, effect.level);
            (outcome.level(effect.factor, effect.level), gain, within)
        })
        .collect();
    let ends = rows.iter().flat_map(|(_, gain, within)| {
        let (least, most) = within.unwrap_or((*gain, *gain));
        [*gain, least, most]
    });
    let axis = Ratios::from_values(ends);
    let bottom = TOP + ROW * rows.len() as f64;
    let mut canvas = Canvas::default();
    axis.grid(bottom, &mut canvas);
    for (at, (name, gain, within)) in rows.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        canvas.text("end", (LEFT - 12.0, y + 4.0), &short(name));
        if let Some((least, most)) = within {
            canvas.line("whisker", (axis.x(*least), y), (axis.x(*most), y));
        }
        canvas.dot((axis.x(*gain), y), 5.0, "");
    }
    let title = format!("Effect of each factor on the {}", response.name);
    canvas.picture(
        "effects",
        bottom + 32.0,
        &title,
        "times as fast, averaged over the levels of the other factors; 95 % intervals",
    )
}

fn short(name: &str) -> String {
    const MOST: usize = 36;
    if name.chars().count() <= MOST {
        name.to_owned()
    } else {
        name.chars().take(MOST - 1).collect::<String>() + "…"
    }
}

/// A tornado chart: bars from "no gain" to each gain, the longest on top.
fn tornado(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> FactorPicture {
    let rows: Vec<(String, f64, bool)> = answer
        .effects
        .iter()
        .map(|effect| {
            let (gain, _) = response.gain(answer, effect.factor, effect.level);
            (
                outcome.level(effect.factor, effect.level),
                gain,
                effect.estimate.may_be_zero(),
            )
        })
        .collect();
    let axis = Ratios::from_values(rows.iter().map(|(_, gain, _)| *gain));
    let bottom = TOP + ROW * rows.len() as f64;
    let mut canvas = Canvas::default();
    axis.grid(bottom, &mut canvas);
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
        canvas.text("end", (LEFT - 12.0, y + ROW / 2.0 + 4.0), &short(name));
        canvas.bar(
            class,
            (zero.min(end), y + 4.0),
            ((end - zero).abs().max(1.0), ROW - 8.0),
        );
        let (x, class) = if end + 60.0 > WIDTH {
            (end - 6.0, "end")
        } else {
            (end + 6.0, "")
        };
        canvas.text(class, (x, y + ROW / 2.0 + 4.0), &times(*gain));
    }
    let title = format!("Changes that would improve the {}", response.name);
    canvas.picture(
        "tornado",
        bottom + 32.0,
        &title,
        "times as fast; pale: may be chance",
    )
}

/// A half-normal plot: sizes of effects against the quantiles expected from chance alone; real effects lie off the line.
fn half_normal(outcome: &FactorOutcome, answer: &FactorAnswer) -> FactorPicture {
    let sizes = sizes_of(outcome, answer);
    let (high, n) = (420.0, sizes.len() as f64);
    let bottom = high - 50.0;
    let most = sizes.last().map_or(1.0, |(size, _)| size.max(1e-12));
    let quantile = |at: usize| half_normal_quantile((at as f64 + 0.5) / n);
    let top = quantile(sizes.len().saturating_sub(1)).max(1e-9);
    let (left, right) = (70.0, RIGHT - 170.0);
    let mut canvas = Canvas::default();
    canvas.line("zero", (left, bottom), (right, bottom));
    canvas.line("zero", (left, TOP), (left, bottom));
    let unit = if answer.scale == EffectScale::Multiplicative {
        ", logarithm of the ratio"
    } else {
        ""
    };
    let below = (f64::midpoint(left, right), bottom + 32.0);
    canvas.text("soft middle", below, &format!("size of the effect{unit}"));
    canvas.text_upwards(
        "soft",
        (40.0, f64::midpoint(TOP, bottom)),
        "half-normal quantile",
    );
    // The line for chance alone: through the corner and the middle of the sorted sizes, as most effects are small.
    let middle = sizes.len() / 2;
    let slope = sizes
        .get(middle.saturating_sub(1))
        .map_or(0.0, |(size, _)| {
            size / quantile(middle.saturating_sub(1)).max(1e-9)
        });
    if slope > 0.0 {
        let end = (most / slope).min(top);
        let chance = (
            left + (right - left) * slope * end / most,
            bottom - (bottom - TOP - 10.0) * end / top,
        );
        canvas.line("grid", (left, bottom), chance);
    }
    for (at, (size, name)) in sizes.iter().enumerate() {
        let (x, y) = (
            left + (right - left) * size / most,
            bottom - (bottom - TOP - 10.0) * quantile(at) / top,
        );
        canvas.dot((x, y), 4.0, name);
        if *size > 0.25 * most || at + 3 > sizes.len() {
            canvas.text("", (x + 9.0, y + 4.0), &short(name));
        }
    }
    canvas.picture(
        "half-normal",
        high,
        "Half-normal plot of effects",
        "chance effects lie near the line; real effects lie to the right of it",
    )
}

/// Sizes of effects and interactions with their names, the smallest first.
fn sizes_of(outcome: &FactorOutcome, answer: &FactorAnswer) -> Vec<(f64, String)> {
    let effects = answer.effects.iter().map(|effect| {
        let name = outcome.factors[effect.factor].name.clone();
        (effect.estimate.value.abs(), name)
    });
    let interactions = answer
        .interactions
        .iter()
        .filter_map(|one| Some((one.estimate?.value.abs(), outcome.names(&one.factors))));
    let mut sizes: Vec<(f64, String)> = effects.chain(interactions).collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    sizes
}

/// The quantile of |Z|, Z standard normal (Abramowitz and Stegun 26.2.23; its error of 4.5e-4 is invisible in a picture).
fn half_normal_quantile(share: f64) -> f64 {
    let tail = (1.0 - share) / 2.0;
    let t = (-2.0 * tail.max(1e-12).ln()).sqrt();
    t - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
        / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t)
}

/// The largest interaction of two factors: a line for each level of the second, on the scale on which lines without an interaction are
/// parallel.
fn interaction(
    outcome: &FactorOutcome,
    response: &Response,
    answer: &FactorAnswer,
) -> Option<FactorPicture> {
    let pair = answer
        .interactions
        .iter()
        .find(|one| one.factors.len() == 2)?;
    let (a, b) = (pair.factors[0], pair.factors[1]);
    let value = |level_a: usize, level_b: usize| {
        let mut row = outcome.base();
        (row[a], row[b]) = (level_a, level_b);
        answer.predicted(&outcome.design, &row).value
    };
    let (of_a, of_b) = (outcome.design.levels[a], outcome.design.levels[b]);
    let cells = (0..of_a).flat_map(|one| (0..of_b).map(move |other| (one, other)));
    let all: Vec<f64> = cells.map(|(one, other)| value(one, other)).collect();
    let (least, most) = (
        all.iter().copied().fold(f64::MAX, f64::min),
        all.iter().copied().fold(f64::MIN, f64::max),
    );
    let span = (most - least).max(1e-9);
    let (high, left, right) = (400.0, 110.0, WIDTH - 200.0);
    let bottom = high - 50.0;
    let x = |level: usize| left + (right - left) * (level as f64 + 0.25) / (of_a as f64 - 0.5);
    let y = |value: f64| bottom - 16.0 - (bottom - TOP - 32.0) * (value - least) / span;
    let mut canvas = Canvas::default();
    canvas.line("zero", (left, bottom), (right, bottom));
    for (at, level) in outcome.factors[a].levels.iter().enumerate() {
        canvas.text("soft middle", (x(at), bottom + 18.0), level);
    }
    for step in [least, f64::midpoint(least, most), most] {
        canvas.line("grid", (left, y(step)), (right, y(step)));
        let value = response.unit.written(unscaled(answer, step));
        canvas.text("soft end", (left - 8.0, y(step) + 4.0), &value);
    }
    for level in 0..of_b {
        let points: Vec<SvgPoint> = (0..of_a).map(|at| (x(at), y(value(at, level)))).collect();
        canvas.curve(if level == 0 { "first" } else { "second" }, &points);
        let name = format!(
            "{} {}",
            short_name(&outcome.factors[b].name),
            outcome.factors[b].levels[level]
        );
        canvas.text(
            "",
            (x(of_a - 1) + 10.0, y(value(of_a - 1, level)) + 4.0),
            &short(&name),
        );
    }
    let title = format!("{} against {}", response.name, outcome.factors[a].name);
    let below = match answer.scale {
        EffectScale::Multiplicative => {
            "log scale; parallel lines mean that gains multiply; all other factors at their first level"
        }
        EffectScale::Additive => {
            "parallel lines mean that differences add up; all other factors at their first level"
        }
    };
    Some(canvas.picture("interaction", high, &title, below))
}

fn short_name(name: &str) -> &str {
    name.split(" of ").next().unwrap_or(name)
}
