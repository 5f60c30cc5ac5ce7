//! The result of a designed experiment as text, and as an HTML page.

use super::order::{RankedEffect, printed_ranks, ranked};
use super::{FactorOutcome, Response, ResponseUnit, alone, pictures, sensitivity, times, unscaled};
use crate::grid::{Align, line, widths, wrap};
use crate::markup_escape::escaped;
use stackline_core::units;
use stackline_factors::answer::Interaction;
use stackline_factors::fit::IntervalSource;
use stackline_factors::{DesignKind, Effect, EffectScale, FactorAnswer};

/// Wraps a text at 80 characters, with further lines indented.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 80;
    let blank = if text.starts_with("  ") { "    " } else { "  " };
    let lines = wrap(text, WIDTH - blank.len()).into_iter().enumerate();
    lines
        .map(|(at, line)| format!("{}{line}\n", if at == 0 { "" } else { blank }))
        .collect()
}

fn interval(bounds: (f64, f64)) -> String {
    let (least, most) = bounds;
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

/// The result as text.
#[must_use]
pub fn factors(outcome: &FactorOutcome) -> String {
    let runs = format!(
        "{}; {} runs (replicates: {}) in {}",
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

/// The main response, with every effect.
fn first(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> String {
    let model = match answer.scale {
        EffectScale::Multiplicative => "ratios",
        EffectScale::Additive => "differences",
    };
    let start = match written(outcome, response, answer) {
        Some(value) => format!(
            "{} with every factor at its first level",
            response.unit.written(value)
        ),
        None => {
            format!(
                "{} on average over all combinations",
                response.unit.written(unscaled(answer, answer.mean.value))
            )
        }
    };
    let mut out = wrapped(&format!(
        "{}: {start}; effect of each factor when changed alone and on average over the levels of the others ({model}):",
        response.name
    ));
    out += &effects_table(outcome, response, answer);
    out += &clear_interactions(outcome, response, answer);
    out += &aliased(outcome, answer);
    out += &bend(response, answer);
    let left = match answer.spread {
        IntervalSource::None => "repeated runs are identical: deterministic".to_owned(),
        _ => format!(
            "run-to-run noise and the model residual account for {} of the variation",
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

/// A table with a row for each effect, and one for each further level of its factor.
fn effects_table(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> String {
    let mut rows = vec![
        [
            "",
            "factor",
            "alone",
            "95 %",
            "",
            "on average",
            "95 %",
            "of variation",
            "sensitivity",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let ranked = ranked(outcome, answer);
    let ranks = printed_ranks(&each(&ranked, |one| (one.rank, one.may_be_nothing)));
    let averages = printed_ranks(&each(&ranked, |one| {
        (one.effect.rank, one.effect.estimate.may_be_zero())
    }));
    for ((one, rank), average) in ranked.iter().zip(ranks).zip(averages) {
        let average = if outcome.design.kind == DesignKind::OneAtATime {
            String::new()
        } else {
            average
        };
        let ranks = Some([rank, average]);
        rows.push(effect_row(
            outcome, response, answer, one.effect, one.level, ranks,
        ));
        let others =
            (1..outcome.design.levels[one.effect.factor]).filter(|level| *level != one.level);
        rows.extend(
            others.map(|level| effect_row(outcome, response, answer, one.effect, level, None)),
        );
    }
    let (left, right) = (Align::Left, Align::Right);
    let align = [right, left, right, left, right, right, left, right, right];
    table(&rows, &align) + &order_turns(outcome, &ranked)
}

fn each<T>(ranked: &[RankedEffect<'_>], of: impl Fn(&RankedEffect<'_>) -> T) -> Vec<T> {
    ranked.iter().map(of).collect()
}

/// A note on factors that rank higher on average than alone: they gain more once other factors are changed.
fn order_turns(outcome: &FactorOutcome, ranked: &[RankedEffect<'_>]) -> String {
    let waits = |one: &&RankedEffect<'_>| {
        let clear = !one.effect.estimate.may_be_zero();
        one.is_alone && clear && (one.may_be_nothing || one.effect.rank < one.rank)
    };
    let names: Vec<String> = ranked
        .iter()
        .filter(waits)
        .map(|one| outcome.level(one.effect.factor, one.level))
        .collect();
    if names.is_empty() || outcome.design.kind == DesignKind::OneAtATime {
        return String::new();
    }
    wrapped(&format!(
        "ranked higher on average than when changed alone, because other factors must change first: {}",
        names.join(", ")
    ))
}

fn table(rows: &[Vec<String>], align: &[Align]) -> String {
    let columns = widths(rows);
    let lines = rows.iter().map(|row| line(row, &columns, align) + "\n");
    lines.collect()
}

fn effect_row(
    outcome: &FactorOutcome,
    response: &Response,
    answer: &FactorAnswer,
    effect: &Effect,
    level: usize,
    ranks: Option<[String; 2]>,
) -> Vec<String> {
    let estimate = effect
        .levels
        .get(level - 1)
        .copied()
        .unwrap_or(effect.estimate);
    let (gain, within) = response.gain(answer, effect.factor, level);
    let words = |within: Option<(f64, f64)>| within.map_or("no interval".into(), interval);
    let nothing = if estimate.may_be_zero() {
        ", may be chance"
    } else {
        ""
    };
    let (alone, alone_within) = match alone(outcome, response, answer, effect.factor, level) {
        Some((gain, within)) => (times(gain), words(within)),
        None => ("-".into(), "not run".into()),
    };
    let first = ranks.is_some();
    let [rank, rank_on_average] = ranks.unwrap_or_default();
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
        rank,
        outcome.level(effect.factor, level),
        alone,
        alone_within,
        rank_on_average,
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

/// The mean of the runs with all factors at their first level, if there are any.
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
                // For times, a lower value is a gain.
                let sign = if response.more_is_better { 1.0 } else { -1.0 };
                let more = (2.0 * sign * estimate.value).exp();
                format!(
                    "; both together gain {} relative to the product of their separate gains",
                    times(more)
                )
            }
            (Some(estimate), EffectScale::Additive) => {
                format!(
                    "; both together: {} beyond the sum of their separate effects",
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

/// A sentence on curvature: whether the response at the centre point differs from the mean over the levels.
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
        (None, _) => ("", "one run is not enough to tell"),
        (_, true) => ("", "no curvature is visible"),
        _ => ("! ", "the response is not linear between the levels"),
    };
    wrapped(&format!(
        "{mark}with every factor halfway between its levels, the {} is {value} ({within}) relative to the mean at those levels: {words}",
        response.name
    ))
}

/// Terms that cannot be distinguished, joined by `=`.
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
        "! this design cannot distinguish: {}",
        words.join("; ")
    ))
}

/// A further response: only its clear effects.
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
        "no clear effect".to_owned()
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
        "\nwhat to change first, and what then gains most (cumulative, in separate runs):\n"
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

/// From this difference to the simulated gain on (a share), the estimate from one run is called unreliable.
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
        "\ngain in {} if a factor were ideal (simulated as a thousand times better, all others at their first level):\n",
        first.name
    );
    for limit in &outcome.limits {
        let name = &outcome.factors[limit.factor].name;
        let gain = match limit.times {
            Some((middle, least, most)) if most - least > 0.005 * middle => {
                format!("{} ({})", times(middle), interval((least, most)))
            }
            Some((middle, ..)) => times(middle),
            None => "unknown".into(),
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
                ", unreliable: speeding it up changes how the rest behaves"
            } else {
                ""
            };
            format!(" (estimated from one run: {}{doubt})", times(account))
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
            format!("   <- best for {}", outcome.spend.unwrap_or(offer.cost))
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
    let align = [Align::Right, Align::Right, Align::Left, Align::Left];
    format!(
        "\nwhat to buy: no other combination gains more at the same or lower cost\n{}",
        table(&rows, &align)
    )
}

/// The result as a self-contained HTML page, with the pictures and the text.
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
