//! Latency against offered load: a table of the rates, why no more was offered, the knee; and the highest rate that meets an
//! expectation.

use crate::figure::{ABSENT, percent};
use crate::grid::{Align, line, widths, wrap};
use crate::table::WIDTH;
use serde_json::{Value, json};
use stackline_analyze::generator_lateness::is_late;
use stackline_analyze::offered_load::rate_verdict::{ERROR_RATE, RateVerdict};
use stackline_analyze::offered_load::{
    HighestRate, LoadCurve, LoadLatency, LoadStep, LoadStop, TriedRate, knee,
};
use stackline_core::units;

/// How load was offered.
#[derive(Clone, Debug)]
pub struct LoadForm {
    /// Pairs that share each rate.
    pub pairs: u32,
    /// Whether operations came at random moments.
    pub is_poisson: bool,
    /// Runs at each rate, at first.
    pub runs: u32,
    /// The directory of all runs; absent if none were kept.
    pub directory: Option<String>,
}

/// A curve as text.
#[must_use]
pub fn load_curve(curve: &LoadCurve, form: &LoadForm) -> String {
    let mut text = table(curve.steps.iter().map(|step| (step, ABSENT)), false);
    text += &paragraph(&stop(curve));
    text += &paragraph(&knee_words(curve));
    if let Some(closed) = curve.closed_per_s {
        text += &paragraph(&format!(
            "without pauses, each call after the one before, the pairs made {}",
            units::per_second(closed)
        ));
    }
    text + &footer(&curve.steps, form)
}

/// The highest rate that meets expectations as text.
#[must_use]
pub fn highest_rate(answer: &HighestRate, form: &LoadForm) -> String {
    let rows = answer
        .tried
        .iter()
        .map(|tried| (&tried.step, word(tried.verdict)));
    let mut text = table(rows, true);
    text += &paragraph(&found(answer));
    for (rate, reason) in &answer.failed {
        let rate = units::per_second(*rate);
        text += &paragraph(&format!(
            "! at {rate} the runs failed, which counts as missed: {reason}"
        ));
    }
    if let Some(tried) = limited_by_generator(answer) {
        let late = tried.step.generator_lateness_s.map_or(0.0, |late| late.p99);
        text += &paragraph(&format!(
            "! at {} the generator was late by itself, p99 {}: it may be what missed, not the server",
            units::per_second(tried.step.offered_per_s),
            units::format_time(late)
        ));
    }
    let steps: Vec<LoadStep> = answer
        .tried
        .iter()
        .map(|tried| tried.step.clone())
        .collect();
    text + &footer(&steps, form)
}

/// The lowest missed rate, if the generator was late there.
fn limited_by_generator(answer: &HighestRate) -> Option<&TriedRate> {
    let missed = answer
        .tried
        .iter()
        .find(|tried| tried.verdict == RateVerdict::Missed)?;
    let lateness = missed.step.generator_lateness_s?;
    is_late(&lateness).then_some(missed)
}

fn table<'s>(steps: impl Iterator<Item = (&'s LoadStep, &'s str)>, has_verdict: bool) -> String {
    let mut head = vec!["offered", "achieved", "p50", "p99", "p99.9", "generator"];
    if has_verdict {
        head.push("");
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (step, verdict) in steps {
        let mut row = figures(step);
        if has_verdict {
            row.push(verdict.to_owned());
        }
        rows.push(row);
    }
    let mut align = [Align::Right; 7];
    align[6] = Align::Left;
    let widths = widths(&rows);
    rows.iter()
        .map(|row| line(row, &widths, &align[..row.len()]) + "\n")
        .collect()
}

fn figures(step: &LoadStep) -> Vec<String> {
    let achieved = step.achieved_per_s;
    let lateness = step.generator_lateness_s;
    vec![
        units::per_second(step.offered_per_s),
        achieved.map_or_else(|| ABSENT.into(), |rate| units::per_second(rate.mean)),
        latency(step.p50),
        latency(step.p99),
        latency(step.p999),
        lateness.map_or_else(|| ABSENT.into(), |late| units::format_time(late.p99)),
    ]
}

/// `1.03 ms ±2%`.
fn latency(of: Option<LoadLatency>) -> String {
    let Some(LoadLatency { value_s, ci95_s }) = of else {
        return ABSENT.into();
    };
    let value = units::format_time(value_s);
    match ci95_s {
        Some((_, high)) if high > 2.0 * value_s => format!("{value} ±>100%"),
        Some((_, high)) if value_s > 0.0 => {
            format!("{value} ±{:.0}%", 100.0 * (high - value_s) / value_s)
        }
        _ => value,
    }
}

fn stop(curve: &LoadCurve) -> String {
    let last = curve.steps.last();
    let rate = last.map_or_else(String::new, |step| units::per_second(step.offered_per_s));
    match &curve.stop {
        LoadStop::Saturated(sign) => {
            let before = curve.steps.len().checked_sub(2).map(|at| &curve.steps[at]);
            let before = before.map_or_else(String::new, |step| {
                format!(
                    "; the highest rate before is {}",
                    units::per_second(step.offered_per_s)
                )
            });
            format!("stopped at {rate}: {}{before}", sign.meaning())
        }
        LoadStop::Highest => {
            format!("not saturated: {rate} is the highest rate that was to be offered")
        }
        LoadStop::Failed(reason) => format!("stopped behind {rate}: {reason}"),
        LoadStop::Steps => format!("stopped at {rate}: no more rates are offered in one sweep"),
        LoadStop::Interrupted => format!("interrupted behind {rate}"),
    }
}

fn knee_words(curve: &LoadCurve) -> String {
    knee(&curve.steps).map_or_else(
        || "knee: not passed, or too few rates to see it".to_owned(),
        |step| {
            format!(
                "knee at {}: there achieved rate over median latency is greatest",
                units::per_second(step.offered_per_s)
            )
        },
    )
}

fn found(answer: &HighestRate) -> String {
    let expected = answer.expectations.join(", ");
    let (met, missed) = (answer.found.met_per_s, answer.found.missed_per_s);
    let error = format!(
        "all these verdicts together err with at most {:.0} %",
        100.0 * ERROR_RATE
    );
    let rate = units::per_second;
    let mut text = match (met, missed) {
        (Some(met), Some(missed)) => format!(
            "highest rate with {expected}: at least {}, less than {}; {error}",
            rate(met),
            rate(missed)
        ),
        (Some(met), None) => format!(
            "even the highest rate, {}, meets {expected}; {error}",
            rate(met)
        ),
        (None, Some(missed)) => format!(
            "even the lowest rate that was decided, {}, misses {expected}; {error}",
            rate(missed)
        ),
        (None, None) => format!("no rate was decided for {expected}"),
    };
    if let [first, .., last] = answer.found.undecided_per_s[..] {
        text += &format!(
            "; the runs do not decide {} to {}: more or longer runs would",
            rate(first),
            rate(last)
        );
    } else if let [only] = answer.found.undecided_per_s[..] {
        text += &format!(
            "; the runs do not decide {}: more or longer runs would",
            rate(only)
        );
    }
    let lacks = |tried: &&TriedRate| tried.figures.iter().any(Option::is_none);
    if let Some(tried) = answer.tried.iter().find(lacks) {
        let offered = rate(tried.step.offered_per_s);
        text +=
            &format!("; a run at {offered} has too few calls for it: --seconds makes runs longer");
    }
    if let [first, ..] = answer.found.met_above_per_s[..] {
        text += &format!(
            "; {} is met again, so latency does not only grow with load",
            rate(first)
        );
    }
    if answer.is_interrupted {
        text += "; interrupted";
    } else if answer.is_exhausted {
        text += "; no more rates are tried in one search";
    }
    text
}

fn footer(steps: &[LoadStep], form: &LoadForm) -> String {
    let arrivals = match form.is_poisson {
        true => "at random moments (Poisson)",
        false => "evenly",
    };
    let shared = match form.pairs {
        1 => "by one pair".to_owned(),
        pairs => format!("by {pairs} pairs together"),
    };
    let mut text = paragraph(&format!(
        "operations begin {arrivals}, {shared}; latency counts from the intended moment; ± is half the 95 % interval over {} at a rate",
        units::counted(u64::from(form.runs), "run")
    ));
    let late = steps
        .iter()
        .filter(|step| step.generator_lateness_s.as_ref().is_some_and(is_late))
        .max_by(|a, b| {
            let share = |step: &&LoadStep| step.generator_late_share.unwrap_or(0.0);
            share(a).total_cmp(&share(b))
        });
    text += &match late {
        Some(step) => paragraph(&format!(
            "! the generator was late by itself: at {} it began {} of operations more than 100 us late (column generator: p99); that is in the latencies and is not the server's",
            units::per_second(step.offered_per_s),
            percent(step.generator_late_share.unwrap_or(0.0))
        )),
        None => paragraph(
            "the generator was punctual: 99 % of operations began within 100 us (column generator: p99)",
        ),
    };
    if let Some(directory) = &form.directory {
        text += &format!("kept in {directory}\n");
    }
    text
}

fn paragraph(words: &str) -> String {
    let lines = wrap(words, WIDTH);
    lines.into_iter().map(|line| line + "\n").collect()
}

const fn word(verdict: RateVerdict) -> &'static str {
    match verdict {
        RateVerdict::Met => "met",
        RateVerdict::Missed => "missed",
        RateVerdict::Undecided => "undecided",
    }
}

/// A curve for programs.
#[must_use]
pub fn load_curve_json(curve: &LoadCurve, form: &LoadForm) -> Value {
    json!({
        "steps": curve.steps,
        "stop": curve.stop,
        "knee_per_s": knee(&curve.steps).map(|step| step.offered_per_s),
        "closed_per_s": curve.closed_per_s,
        "highest": null,
        "pairs": form.pairs,
        "arrivals": arrivals(form),
        "run": form.directory,
    })
}

/// The highest rate for programs.
#[must_use]
pub fn highest_rate_json(answer: &HighestRate, form: &LoadForm) -> Value {
    let steps: Vec<Value> = answer.tried.iter().map(|tried| json!(tried)).collect();
    json!({
        "steps": steps,
        "stop": null,
        "knee_per_s": null,
        "closed_per_s": null,
        "highest": {
            "expectations": answer.expectations,
            "met_per_s": answer.found.met_per_s,
            "missed_per_s": answer.found.missed_per_s,
            "undecided_per_s": answer.found.undecided_per_s,
            "met_above_per_s": answer.found.met_above_per_s,
            "error_rate": ERROR_RATE,
            "failed": answer.failed.iter().map(|(rate, reason)| json!({"offered_per_s": rate, "reason": reason})).collect::<Vec<_>>(),
            "exhausted": answer.is_exhausted,
        },
        "pairs": form.pairs,
        "arrivals": arrivals(form),
        "run": form.directory,
    })
}

const fn arrivals(form: &LoadForm) -> &'static str {
    match form.is_poisson {
        true => "poisson",
        false => "constant",
    }
}

#[cfg(test)]
mod tests;
