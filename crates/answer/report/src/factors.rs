//! What a designed experiment came to: as text, as JSON with the whole design and every response, as pictures.

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

/// A factor in words.
#[derive(Clone, Debug)]
pub struct FactorWords {
    /// Without its levels.
    pub name: String,
    /// Its levels.
    pub levels: Vec<String>,
    /// How many times what is written each is, where it is a number.
    pub times: Vec<Option<f64>>,
}

/// The unit of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseUnit {
    /// bit/s.
    BitPerSecond,
    /// s.
    Seconds,
    /// So many of something a second, as `vectors/s`.
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

/// A response with what it says.
#[derive(Debug)]
pub struct Response {
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: ResponseUnit,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// What it says of the factors.
    pub answer: Result<FactorAnswer, String>,
    /// Every run of the design.
    pub observed: Vec<FactorObservation>,
    /// Runs half way between all levels.
    pub centre: Vec<f64>,
}

impl Response {
    /// How many times as fast a combination is than with everything at its first level, with its interval.
    #[must_use]
    pub fn gain_of(&self, answer: &FactorAnswer, design: &Design, row: &[usize]) -> Gain {
        self.in_its_direction(answer.ratio(design, row, &vec![0; row.len()]))
    }

    /// How many times as fast a level of a factor is than its first, on average over the levels of the others.
    fn gain(&self, answer: &FactorAnswer, factor: usize, level: usize) -> Gain {
        answer
            .ratio_on_average(factor, level)
            .map_or((f64::NAN, None), |ratio| self.in_its_direction(ratio))
    }

    fn in_its_direction(&self, gain: Gain) -> Gain {
        if self.more_is_better {
            return gain;
        }
        let (ratio, within) = gain;
        let within = within.map(|(least, most)| (1.0 / most, 1.0 / least));
        (1.0 / ratio, within)
    }
}

/// How many times as fast, and the 95 % interval.
pub type Gain = (f64, Option<(f64, f64)>);

/// The limit if a factor were infinite.
#[derive(Clone, Debug)]
pub struct FactorLimit {
    /// The factor.
    pub factor: usize,
    /// How many times as fast, and its 95 % interval.
    pub times: Option<(f64, f64, f64)>,
    /// The same by the account of one traced run as it is: its time without the factor's; where that is known.
    pub by_account: Option<f64>,
    /// What limits then.
    pub next: Option<String>,
}

/// A change that brings most once those before it are made.
#[derive(Clone, Copy, Debug)]
pub struct ImprovementStep {
    /// The factor.
    pub factor: usize,
    /// Its level.
    pub level: usize,
    /// How many times as fast as before it.
    pub times: f64,
}

/// A set of improvements.
#[derive(Clone, Debug)]
pub struct ImprovementOffer {
    /// What is bought.
    pub bought: Vec<String>,
    /// What it costs.
    pub cost: f64,
    /// How many times as fast.
    pub times: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it is the best for what is to be spent.
    pub is_best: bool,
}

/// An experiment.
#[derive(Debug)]
pub struct FactorOutcome {
    /// The measurement with all factors at their first level.
    pub measurement: String,
    /// Where it ran.
    pub world: World,
    /// What was varied.
    pub factors: Vec<FactorWords>,
    /// The combinations.
    pub design: Design,
    /// Runs of each.
    pub replicates: u32,
    /// Runs that were made.
    pub runs: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// How long it took.
    pub took_s: f64,
    /// Where it is kept, if it is.
    pub directory: Option<String>,
    /// What it is judged by first.
    pub responses: Vec<Response>,
    /// What to change first, and what brings most then; empty where nobody looked for it.
    pub steps: Vec<ImprovementStep>,
    /// The limits if factors were infinite.
    pub limits: Vec<FactorLimit>,
    /// What could be bought, the cheapest first.
    pub offers: Vec<ImprovementOffer>,
    /// What is to be spent at most.
    pub spend: Option<f64>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

impl FactorOutcome {
    /// The first level of every factor.
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

/// From the answer's scale to the response's.
fn unscaled(answer: &FactorAnswer, value: f64) -> f64 {
    if answer.scale == EffectScale::Multiplicative {
        value.exp()
    } else {
        value
    }
}

/// What a level brings by itself, with all others at their first: where that was run, and the model has a term for each combination.
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

/// Improvement over change, both in per cent (Lantz, Nowicki and Theimer 1985, section 3.3).
fn sensitivity(outcome: &FactorOutcome, factor: usize, level: usize, gain: f64) -> Option<f64> {
    let times = outcome.factors[factor].times[level]?;
    let change = if times < 1.0 { 1.0 / times } else { times } - 1.0;
    (change > 0.0 && gain.is_finite()).then(|| (gain - 1.0) / change)
}
