//! What a designed experiment came to: as text, as JSON with the whole design and every response, as pictures.

mod canvas;
mod pictures;

pub use canvas::FactorPicture;
pub use pictures::pictures;

use crate::drawing::escaped;
use crate::grid::wrap;
use crate::grid::{Align, line, widths};
use serde_json::{Value, json};
use stackline_core::plan::World;
use stackline_core::units;
use stackline_factors::answer::Interaction;
use stackline_factors::fit::IntervalSource;
use stackline_factors::{
    Design, DesignKind, Effect, EffectScale, Estimate, FactorAnswer, FactorObservation,
};

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

    fn in_its_direction(&self, (ratio, within): Gain) -> Gain {
        match self.more_is_better {
            true => (ratio, within),
            false => (
                1.0 / ratio,
                within.map(|(least, most)| (1.0 / most, 1.0 / least)),
            ),
        }
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

/// A text whose further lines stand behind its first.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 80;
    let blank = if text.starts_with("  ") { "    " } else { "  " };
    let lines = wrap(text, WIDTH - blank.len()).into_iter().enumerate();
    lines
        .map(|(at, line)| format!("{}{line}\n", if at == 0 { "" } else { blank }))
        .collect()
}

fn times(value: f64) -> String {
    if value.is_finite() {
        format!("x {}", units::three_digits(value))
    } else {
        "-".into()
    }
}

fn interval((least, most): (f64, f64)) -> String {
    let most = if most.is_finite() {
        units::three_digits(most)
    } else {
        "no bound".into()
    };
    format!("{} .. {most}", units::three_digits(least))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// As text.
#[must_use]
pub fn factors(outcome: &FactorOutcome) -> String {
    let runs = format!(
        "{}; {} runs ({} each) in {}",
        outcome.design,
        outcome.runs,
        outcome.replicates,
        units::format_time(outcome.took_s)
    );
    let mut out = wrapped(&outcome.measurement);
    out += &wrapped(&format!("{}, {runs}", outcome.world));
    for (at, response) in outcome.responses.iter().enumerate() {
        out.push('\n');
        match &response.answer {
            Ok(answer) if at == 0 => out += &first(outcome, response, answer),
            Ok(answer) => out += &further(outcome, response, answer),
            Err(why) => out += &wrapped(&format!("{}: {why}", response.name)),
        }
    }
    out += &steps(outcome);
    out += &limits(outcome);
    out += &offers(outcome);
    if !outcome.notes.is_empty() {
        out.push('\n');
    }
    outcome
        .notes
        .iter()
        .for_each(|note| out += &wrapped(&format!("! {note}")));
    if let Some(directory) = &outcome.directory {
        out += &format!("kept in {directory}\n");
    }
    out
}

/// The response that matters most: every effect.
fn first(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> String {
    let model = match answer.scale {
        EffectScale::Multiplicative => "ratios",
        EffectScale::Additive => "differences",
    };
    let start = match written(outcome, response, answer) {
        Some(value) => format!(
            "{} with everything as it is first",
            response.unit.written(value)
        ),
        None => {
            format!(
                "{} on average over all combinations",
                response.unit.written(unscaled(answer, answer.mean.value))
            )
        }
    };
    let mut rows = vec![
        [
            "",
            "factor",
            "alone",
            "95 %",
            "on average",
            "95 %",
            "of variation",
            "sensitivity",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for effect in &answer.effects {
        rows.push(effect_row(outcome, response, answer, effect, effect.level));
        let others =
            (1..outcome.design.levels[effect.factor]).filter(|level| *level != effect.level);
        rows.extend(others.map(|level| effect_row(outcome, response, answer, effect, level)));
    }
    let right = Align::Right;
    let align = [
        right,
        Align::Left,
        right,
        Align::Left,
        right,
        Align::Left,
        right,
        right,
    ];
    let columns = widths(&rows);
    let mut out = wrapped(&format!(
        "{}: {start}; alone from there, and on average over the levels of the others ({model}):",
        response.name
    ));
    rows.iter()
        .for_each(|row| out += &(line(row, &columns, &align) + "\n"));
    out += &clear_interactions(outcome, response, answer);
    out += &aliased(outcome, answer);
    out += &bend(response, answer);
    let left = match answer.spread {
        IntervalSource::None => {
            "repeated runs are equal: nothing in them is drawn by chance".to_owned()
        }
        _ => format!(
            "repeated runs and what the model leaves: {} of the variation",
            percent(answer.error_share)
        ),
    };
    out += &wrapped(&left);
    answer
        .doubts
        .iter()
        .for_each(|doubt| out += &wrapped(&format!("! {doubt}")));
    out
}

/// An effect that cannot be distinguished from nothing has no rank.
fn rank(effect: &Effect, answer: &FactorAnswer) -> String {
    if effect.estimate.may_be_zero() {
        return "-".into();
    }
    let tied = answer
        .effects
        .iter()
        .filter(|other| other.rank == effect.rank && !other.estimate.may_be_zero())
        .count();
    if tied > 1 {
        format!("={}", effect.rank)
    } else {
        effect.rank.to_string()
    }
}

fn effect_row(
    outcome: &FactorOutcome,
    response: &Response,
    answer: &FactorAnswer,
    effect: &Effect,
    level: usize,
) -> Vec<String> {
    let estimate = effect
        .levels
        .get(level - 1)
        .copied()
        .unwrap_or(effect.estimate);
    let (gain, within) = response.gain(answer, effect.factor, level);
    let words = |within: Option<(f64, f64)>| within.map_or("no interval".into(), interval);
    let nothing = if estimate.may_be_zero() {
        ", may be nothing"
    } else {
        ""
    };
    let (alone, alone_within) = match alone(outcome, response, answer, effect.factor, level) {
        Some((gain, within)) => (times(gain), words(within)),
        None => ("-".into(), "not run".into()),
    };
    let first = level == effect.level;
    let differs = match answer.scale {
        EffectScale::Additive => format!(" ({})", signed(response.unit, estimate.value)),
        EffectScale::Multiplicative => String::new(),
    };
    let (average, average_within) = match outcome.design.kind {
        DesignKind::OneAtATime => ("-".into(), "not run".into()),
        _ => (
            format!("{}{differs}", times(gain)),
            format!("{}{nothing}", words(within)),
        ),
    };
    vec![
        if first {
            rank(effect, answer)
        } else {
            String::new()
        },
        outcome.level(effect.factor, level),
        alone,
        alone_within,
        average,
        average_within,
        if first {
            percent(effect.share)
        } else {
            String::new()
        },
        sensitivity(outcome, effect.factor, level, gain)
            .map_or("-".into(), |value| format!("{value:.2}")),
    ]
}

fn signed(unit: ResponseUnit, value: f64) -> String {
    if value < 0.0 {
        unit.written(value)
    } else {
        format!("+{}", unit.written(value))
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

/// The mean of the runs with everything at its first level, where there are some.
fn written(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> Option<f64> {
    let row = outcome.design.row_of(&outcome.base())?;
    let scaled = |value: f64| {
        if answer.scale == EffectScale::Multiplicative {
            value.ln()
        } else {
            value
        }
    };
    let values: Vec<f64> = response
        .observed
        .iter()
        .filter(|one| one.row == row)
        .map(|one| scaled(one.value))
        .collect();
    (!values.is_empty()).then(|| unscaled(answer, values.iter().sum::<f64>() / values.len() as f64))
}

/// What a level brings by itself, with all others at their first: where that was run, and the model has a term for each combination.
fn alone(
    outcome: &FactorOutcome,
    response: &Response,
    answer: &FactorAnswer,
    factor: usize,
    level: usize,
) -> Option<(f64, Option<(f64, f64)>)> {
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

fn clear_interactions(
    outcome: &FactorOutcome,
    response: &Response,
    answer: &FactorAnswer,
) -> String {
    let clear: Vec<&Interaction> = answer
        .interactions
        .iter()
        .filter(|one| one.is_clear && one.share >= 0.001)
        .take(5)
        .collect();
    let mut out = String::new();
    for one in clear {
        let two = one.estimate.filter(|_| one.factors.len() == 2);
        let how = match (two, answer.scale) {
            (Some(estimate), EffectScale::Multiplicative) => {
                // Of times, what is less is more.
                let sign = if response.more_is_better { 1.0 } else { -1.0 };
                let more = (2.0 * sign * estimate.value).exp();
                format!(
                    "; both bring {} of what their gains alone multiply to",
                    times(more)
                )
            }
            (Some(estimate), EffectScale::Additive) => {
                format!(
                    "; both together {} beside the sum of what each does alone",
                    signed(response.unit, 2.0 * estimate.value)
                )
            }
            _ => String::new(),
        };
        let same = one_of(outcome, &one.factors, &one.aliases);
        out += &wrapped(&format!(
            "{same}: {} of the variation{how}",
            percent(one.share)
        ));
    }
    out
}

/// Whether the response bends between the levels.
fn bend(response: &Response, answer: &FactorAnswer) -> String {
    let Some(bend) = answer.bend(&response.centre) else {
        return String::new();
    };
    let value = match answer.scale {
        EffectScale::Multiplicative => times(bend.value.exp()),
        EffectScale::Additive => signed(response.unit, bend.value),
    };
    let within = bend
        .interval()
        .map_or("no interval".into(), |(least, most)| match answer.scale {
            EffectScale::Multiplicative => interval((least.exp(), most.exp())),
            EffectScale::Additive => format!(
                "{} .. {}",
                signed(response.unit, least),
                signed(response.unit, most)
            ),
        });
    let (mark, words) = match (bend.half, bend.may_be_zero()) {
        (None, _) => ("", "one run tells little"),
        (_, true) => ("", "no bend is seen"),
        _ => (
            "! ",
            "it bends between the levels: others in between are not on the line",
        ),
    };
    wrapped(&format!(
        "{mark}half way between all levels the {} is {value} ({within}) of their mean: {words}",
        response.name
    ))
}

/// Factors that cannot be distinguished, joined by `=`.
fn one_of(outcome: &FactorOutcome, factors: &[usize], aliases: &[Vec<usize>]) -> String {
    let all = std::iter::once(factors).chain(aliases.iter().map(Vec::as_slice));
    all.map(|factors| outcome.names(factors))
        .collect::<Vec<_>>()
        .join(" = ")
}

fn aliased(outcome: &FactorOutcome, answer: &FactorAnswer) -> String {
    let effects = answer
        .effects
        .iter()
        .map(|effect| (vec![effect.factor], &effect.aliases));
    let interactions = answer
        .interactions
        .iter()
        .map(|one| (one.factors.clone(), &one.aliases));
    let mixed = effects
        .chain(interactions)
        .filter(|(_, aliases)| !aliases.is_empty());
    let words: Vec<String> = mixed
        .map(|(factors, aliases)| one_of(outcome, &factors, aliases))
        .collect();
    if words.is_empty() {
        return String::new();
    }
    wrapped(&format!(
        "! this design does not tell apart: {}",
        words.join("; ")
    ))
}

/// Another response: what is clear of it.
fn further(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> String {
    let words = |effect: &Effect| {
        let (gain, within) = response.gain(answer, effect.factor, effect.level);
        let within = within.map_or(String::new(), |within| format!(" ({})", interval(within)));
        format!(
            "{} {}{within}",
            outcome.level(effect.factor, effect.level),
            times(gain)
        )
    };
    let clear: Vec<String> = answer
        .effects
        .iter()
        .filter(|effect| !effect.estimate.may_be_zero())
        .map(words)
        .collect();
    let text = if clear.is_empty() {
        "no effect is clear".to_owned()
    } else {
        clear.join("; ")
    };
    let how = if outcome.design.kind == DesignKind::OneAtATime {
        ""
    } else {
        ", on average"
    };
    wrapped(&format!("{}{how}: {text}", response.name))
}

fn steps(outcome: &FactorOutcome) -> String {
    if outcome.steps.is_empty() {
        return String::new();
    }
    let mut out =
        "\nwhat to change first, and what brings most then (each with those before it, in runs of their own):\n"
            .to_owned();
    for (at, step) in outcome.steps.iter().enumerate() {
        out += &wrapped(&format!(
            "  {}. {}: {}",
            at + 1,
            outcome.level(step.factor, step.level),
            times(step.times)
        ));
    }
    out
}

/// An account that is this far from what is simulated is wrong.
const APART: f64 = 0.1;

fn limits(outcome: &FactorOutcome) -> String {
    let Some(first) = outcome
        .responses
        .first()
        .filter(|_| !outcome.limits.is_empty())
    else {
        return String::new();
    };
    let mut out = format!(
        "\nif a factor were infinite ({}, simulated a thousand times better, all else as it is first):\n",
        first.name
    );
    for limit in &outcome.limits {
        let name = &outcome.factors[limit.factor].name;
        let gain = match limit.times {
            Some((middle, least, most)) if most - least > 0.005 * middle => {
                format!("{} ({})", times(middle), interval((least, most)))
            }
            Some((middle, ..)) => times(middle),
            None => "not known".into(),
        };
        let next = limit
            .next
            .as_ref()
            .map_or(String::new(), |next| format!("; then {next}"));
        let account = limit.by_account.map_or(String::new(), |account| {
            let apart = limit
                .times
                .is_some_and(|(middle, ..)| (account / middle - 1.0).abs() > APART);
            let doubt = if apart {
                ", not to be believed: what is faster changes the way of the rest"
            } else {
                ""
            };
            format!(" (by the account of one run {}{doubt})", times(account))
        });
        out += &wrapped(&format!("  {name}: {gain}{account}{next}"));
    }
    out
}

fn offers(outcome: &FactorOutcome) -> String {
    if outcome.offers.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["cost", "times as fast", "95 %", "what"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for offer in &outcome.offers {
        let what = if offer.bought.is_empty() {
            "nothing".into()
        } else {
            offer.bought.join(", ")
        };
        let best = if offer.is_best {
            format!("   <- the best for {}", outcome.spend.unwrap_or(offer.cost))
        } else {
            String::new()
        };
        rows.push(vec![
            offer.cost.to_string(),
            times(offer.times),
            offer.interval.map_or("-".into(), interval),
            format!("{what}{best}"),
        ]);
    }
    let columns = widths(&rows);
    let mut out = "\nwhat to buy: no other set brings more for as little\n".to_owned();
    let align = [Align::Right, Align::Right, Align::Left, Align::Left];
    rows.iter()
        .for_each(|row| out += &(line(row, &columns, &align) + "\n"));
    out
}

/// As one page for a browser: the text and the pictures, with nothing from outside.
#[must_use]
pub fn factors_page(outcome: &FactorOutcome) -> String {
    let title = escaped(&outcome.measurement);
    let drawn: String = pictures(outcome)
        .into_iter()
        .map(|picture| format!("<figure>{}</figure>\n", picture.svg))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{title}</title>\n<style>body{{font:15px system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}\
         pre{{overflow-x:auto;font-size:13px}}figure{{margin:1.5rem 0}}svg{{max-width:100%;height:auto}}</style></head>\n\
         <body><h1>What would make it faster?</h1>\n{drawn}<pre>{}</pre>\n</body></html>\n",
        factors(outcome)
            .lines()
            .map(|line| escaped(line) + "\n")
            .collect::<String>()
    )
}

/// As JSON: the design, every run, every estimate.
#[must_use]
pub fn factors_json(outcome: &FactorOutcome) -> Value {
    let factors = outcome
        .factors
        .iter()
        .map(|one| json!({ "name": one.name, "levels": one.levels, "times": one.times }));
    let responses = outcome.responses.iter().map(|response| {
        let runs = response
            .observed
            .iter()
            .map(|one| json!({ "row": one.row, "block": one.block, "order": one.order, "value": one.value }));
        let mut value = json!({
            "name": response.name,
            "unit": response.unit.name(),
            "more_is_better": response.more_is_better,
            "runs": runs.collect::<Vec<_>>(),
            "centre": response.centre,
            "bend": response.answer.as_ref().ok().and_then(|answer| answer.bend(&response.centre)).as_ref().map(estimate_json),
        });
        match &response.answer {
            Ok(answer) => value["answer"] = answer_json(outcome, response, answer),
            Err(why) => value["why_none"] = json!(why),
        }
        value
    });
    let limits = outcome.limits.iter().map(|limit| {
        json!({
            "factor": outcome.factors[limit.factor].name,
            "times_as_fast": limit.times.map(|(gain, ..)| gain),
            "times_as_fast_ci95": limit.times.map(|(_, least, most)| [least, most]),
            "by_account": limit.by_account,
            "then": limit.next,
        })
    });
    let steps = outcome.steps.iter().map(|step| {
        let words = &outcome.factors[step.factor];
        json!({ "factor": words.name, "level": words.levels[step.level], "times_as_fast": step.times })
    });
    let offers = outcome.offers.iter().map(|offer| {
        json!({
            "bought": offer.bought, "cost": offer.cost, "times_as_fast": offer.times,
            "ci95": offer.interval.map(|(least, most)| [least, most]), "best": offer.is_best,
        })
    });
    json!({
        "measurement": outcome.measurement,
        "world": outcome.world.to_string(),
        "design": { "kind": outcome.design.to_string(), "resolution": outcome.design.resolution(), "rows": outcome.design.rows },
        "replicates": outcome.replicates,
        "runs": outcome.runs,
        "failed": outcome.failed,
        "took_s": outcome.took_s,
        "factors": factors.collect::<Vec<_>>(),
        "responses": responses.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
        "offers": offers.collect::<Vec<_>>(),
        "notes": outcome.notes,
        "directory": outcome.directory,
    })
}

fn estimate_json(estimate: &Estimate) -> Value {
    json!({
        "value": estimate.value,
        "ci95": estimate.interval().map(|(least, most)| [least, most]),
        "freedom": Some(estimate.freedom).filter(|freedom| freedom.is_finite()),
    })
}

fn answer_json(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> Value {
    let fit = answer.fit();
    let effects = answer.effects.iter().map(|effect| {
        let (gain, within) = response.gain(answer, effect.factor, effect.level);
        let alone = alone(outcome, response, answer, effect.factor, effect.level);
        let alone_within = alone.and_then(|(_, within)| within);
        json!({
            "factor": outcome.factors[effect.factor].name,
            "level": outcome.factors[effect.factor].levels[effect.level],
            "alone": alone.map(|(gain, _)| gain),
            "alone_ci95": alone_within.map(|(least, most)| [least, most]),
            "effect": estimate_json(&effect.estimate),
            "levels": effect.levels.iter().map(estimate_json).collect::<Vec<_>>(),
            "times_as_fast": gain,
            "times_as_fast_ci95": within.map(|(least, most)| [least, most]),
            "share": effect.share,
            "rank": effect.rank,
            "may_be_nothing": effect.estimate.may_be_zero(),
            "sensitivity": sensitivity(outcome, effect.factor, effect.level, gain),
            "aliases": effect.aliases.iter().map(|alias| outcome.names(alias)).collect::<Vec<_>>(),
        })
    });
    let interactions = answer.interactions.iter().map(|one| {
        json!({
            "factors": one.factors.iter().map(|factor| &outcome.factors[*factor].name).collect::<Vec<_>>(),
            "effect": one.estimate.as_ref().map(estimate_json),
            "share": one.share,
            "is_clear": one.is_clear,
            "aliases": one.aliases.iter().map(|alias| outcome.names(alias)).collect::<Vec<_>>(),
        })
    });
    let terms = answer
        .terms()
        .iter()
        .enumerate()
        .map(|(at, term)| json!({ "factors": term.factors, "squares": fit.squares(at), "freedom": fit.width(at) }));
    json!({
        "scale": answer.scale,
        "mean": estimate_json(&answer.mean),
        "effects": effects.collect::<Vec<_>>(),
        "interactions": interactions.collect::<Vec<_>>(),
        "terms": terms.collect::<Vec<_>>(),
        "coefficients": fit.coefficients(),
        "total_squares": fit.total_squares,
        "residual_squares": fit.residual_squares,
        "freedom": answer.freedom,
        "error_share": answer.error_share,
        "intervals": answer.spread,
        "doubts": answer.doubts,
    })
}
