//! The result of a designed experiment: as text, as JSON with the whole design and every response, and as pictures.

mod canvas;
mod json;
mod order;
mod pictures;
mod text;

pub use canvas::FactorPicture;
pub use json::factors_json;
pub use pictures::pictures;
pub use text::{factors, factors_page};

use stackline_core::plan::World;
use stackline_core::units;
use stackline_factors::{Design, DesignKind, EffectScale, FactorAnswer, FactorObservation};

/// A factor as text.
#[derive(Clone, Debug)]
pub struct FactorWords {
    /// Its name, without levels.
    pub name: String,
    /// Its levels as text.
    pub levels: Vec<String>,
    /// By level: how many times the written value it is, if it is a number.
    pub times: Vec<Option<f64>>,
}

/// The unit of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseUnit {
    /// Bits per second.
    BitPerSecond,
    /// Seconds.
    Seconds,
    /// Another rate with its unit, such as `vectors/s`.
    PerSecond(&'static str),
}

impl ResponseUnit {
    fn written(self, value: f64) -> String {
        match self {
            Self::BitPerSecond if value >= 0.0 => units::format_rate(value),
            Self::Seconds if value >= 0.0 => units::format_time(value),
            Self::BitPerSecond => format!("-{}", units::format_rate(-value)),
            Self::Seconds => format!("-{}", units::format_time(-value)),
            Self::PerSecond(what) => {
                format!(
                    "{}{} {what}",
                    if value < 0.0 { "-" } else { "" },
                    units::three_digits(value.abs())
                )
            }
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::BitPerSecond => "bit/s",
            Self::Seconds => "s",
            Self::PerSecond(what) => what,
        }
    }
}

/// A response (a figure of the runs) and its analysis.
#[derive(Debug)]
pub struct Response {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: ResponseUnit,
    /// Whether a higher value is better.
    pub more_is_better: bool,
    /// The analysis of the factors, or why there is none.
    pub answer: Result<FactorAnswer, String>,
    /// The values of all runs of the design.
    pub observed: Vec<FactorObservation>,
    /// The values of the runs at the centre point, halfway between all levels.
    pub centre: Vec<f64>,
}

impl Response {
    /// How many times as fast a combination is as the one with all factors at their first level, with its interval.
    #[must_use]
    pub fn gain_of(&self, answer: &FactorAnswer, design: &Design, row: &[usize]) -> Gain {
        self.in_its_direction(answer.ratio(design, row, &vec![0; row.len()]))
    }

    /// How many times as fast a level of a factor is as its first level, averaged over the levels of the others.
    fn gain(&self, answer: &FactorAnswer, factor: usize, level: usize) -> Gain {
        answer
            .ratio_on_average(factor, level)
            .map_or((f64::NAN, None), |ratio| self.in_its_direction(ratio))
    }

    /// Turns a ratio of values into "times as fast": inverted if a lower value is better.
    fn in_its_direction(&self, gain: Gain) -> Gain {
        if self.more_is_better {
            return gain;
        }
        let (ratio, within) = gain;
        let within = within.map(|(least, most)| (1.0 / most, 1.0 / least));
        (1.0 / ratio, within)
    }
}

/// How many times as fast, and the 95 % interval if known.
pub type Gain = (f64, Option<(f64, f64)>);

/// The limit if a factor were infinitely better.
#[derive(Clone, Debug)]
pub struct FactorLimit {
    /// Index of the factor.
    pub factor: usize,
    /// How many times as fast, and the ends of its 95 % interval.
    pub times: Option<(f64, f64, f64)>,
    /// How many times as fast by subtracting the factor's share from the time of one traced run, if known.
    pub by_account: Option<f64>,
    /// What limits the run then.
    pub next: Option<String>,
}

/// The change that gains most after those before it are made.
#[derive(Clone, Copy, Debug)]
pub struct ImprovementStep {
    /// Index of the factor.
    pub factor: usize,
    /// Index of its level.
    pub level: usize,
    /// How many times as fast as before this change.
    pub times: f64,
}

/// A set of improvements.
#[derive(Clone, Debug)]
pub struct ImprovementOffer {
    /// The levels that are bought.
    pub bought: Vec<String>,
    /// Their price.
    pub cost: f64,
    /// How many times as fast.
    pub times: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it is the best within the amount to spend.
    pub is_best: bool,
}

/// The result of an experiment.
#[derive(Debug)]
pub struct FactorOutcome {
    /// The measurement with all factors at their first level.
    pub measurement: String,
    /// The world the runs were made in.
    pub world: World,
    /// The factors.
    pub factors: Vec<FactorWords>,
    /// The combinations.
    pub design: Design,
    /// Runs of each combination.
    pub replicates: u32,
    /// The number of runs made.
    pub runs: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How long the experiment took, seconds.
    pub took_s: f64,
    /// The directory where it is stored, if any.
    pub directory: Option<String>,
    /// The responses, the main one first.
    pub responses: Vec<Response>,
    /// What to change first, and what gains most then; empty if not computed.
    pub steps: Vec<ImprovementStep>,
    /// The limits if factors were infinitely better.
    pub limits: Vec<FactorLimit>,
    /// Improvements worth their price, the cheapest first.
    pub offers: Vec<ImprovementOffer>,
    /// The most to be spent.
    pub spend: Option<f64>,
    /// Notes for readers.
    pub notes: Vec<String>,
}

impl FactorOutcome {
    /// The combination with every factor at its first level.
    fn base(&self) -> Vec<usize> {
        vec![0; self.factors.len()]
    }

    fn level(&self, factor: usize, level: usize) -> String {
        let words = &self.factors[factor];
        let sign = if words.levels[level].starts_with("x ") {
            ""
        } else {
            "= "
        };
        format!("{} {sign}{}", words.name, words.levels[level])
    }

    fn names(&self, factors: &[usize]) -> String {
        let names: Vec<&str> = factors
            .iter()
            .map(|factor| self.factors[*factor].name.as_str())
            .collect();
        names.join(" with ")
    }
}

fn times(value: f64) -> String {
    if value.is_finite() {
        format!("x {}", units::three_digits(value))
    } else {
        "-".into()
    }
}

/// Converts a value from the analysis' scale (perhaps logarithmic) to that of the response.
fn unscaled(answer: &FactorAnswer, value: f64) -> f64 {
    if answer.scale == EffectScale::Multiplicative {
        value.exp()
    } else {
        value
    }
}

/// The gain of a level alone, with all other factors at their first level; `None` if the design does not contain that.
fn alone(
    outcome: &FactorOutcome,
    response: &Response,
    answer: &FactorAnswer,
    factor: usize,
    level: usize,
) -> Option<Gain> {
    if !matches!(
        outcome.design.kind,
        DesignKind::Full | DesignKind::OneAtATime
    ) {
        return None;
    }
    let mut row = outcome.base();
    row[factor] = level;
    Some(response.gain_of(answer, &outcome.design, &row))
}

/// The sensitivity: improvement over change, both as shares (Lantz, Nowicki and Theimer 1985, section 3.3).
fn sensitivity(outcome: &FactorOutcome, factor: usize, level: usize, gain: f64) -> Option<f64> {
    let times = outcome.factors[factor].times[level]?;
    let change = if times < 1.0 { 1.0 / times } else { times } - 1.0;
    (change > 0.0 && gain.is_finite()).then(|| (gain - 1.0) / change)
}
