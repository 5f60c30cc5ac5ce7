//! Expectations with their verdicts, as lines below the results and as JSON.

use crate::grid::wrap;
use crate::table::WIDTH;
use serde_json::{Value, json as object};
use stackline_analyze::{ExpectationVerdict, JudgedExpectation};
use stackline_core::expectation::BoundUnit;
use stackline_core::units;

/// A line for each expectation: its verdict, its text, what was measured, and why it is undecided. Empty without expectations.
#[must_use]
pub fn expectations(judged: &[JudgedExpectation]) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let several = judged.iter().any(|one| one.of != judged[0].of);
    let column = judged.iter().map(|one| one.text.chars().count()).max();
    let column = column.unwrap_or(0).min(WIDTH / 2);
    let mut out = format!("\n{}\n", expectation_counts(judged));
    let mut last = "";
    for one in judged {
        if several && one.of != last {
            out.push_str(&hanging(&one.of, 2));
            last = &one.of;
        }
        let line = format!(
            "{:<9}  {:<column$}  {}",
            verdict_word(one.verdict),
            one.text,
            measured_text(one)
        );
        out.push_str(&hanging(line.trim_end(), if several { 4 } else { 2 }));
    }
    out
}

/// How many expectations are met, missed and undecided, in a sentence.
#[must_use]
pub fn expectation_counts(judged: &[JudgedExpectation]) -> String {
    let count = |verdict| judged.iter().filter(|one| one.verdict == verdict).count();
    let all = [
        ExpectationVerdict::Met,
        ExpectationVerdict::Missed,
        ExpectationVerdict::Undecided,
    ];
    let said: Vec<String> = all
        .into_iter()
        .map(|verdict| (count(verdict), verdict_word(verdict).to_lowercase()))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    format!("expectations: {}", said.join(", "))
}

const fn verdict_word(verdict: ExpectationVerdict) -> &'static str {
    match verdict {
        ExpectationVerdict::Met => "met",
        ExpectationVerdict::Missed => "MISSED",
        ExpectationVerdict::Undecided => "undecided",
    }
}

/// What was measured, its interval, and what the verdict is based on: `12.1 ms (95 %: 11.9 ms..12.3 ms)`.
pub(crate) fn measured_text(one: &JudgedExpectation) -> String {
    let unit = one.unit.unwrap_or(BoundUnit::Plain);
    let value = one.value.map(|value| figure_text(unit, value));
    let interval = one.ci95.map(|(low, high)| {
        let low = figure_text(unit, low.max(0.0));
        match high.is_finite() {
            true => format!("(95 %: {low}..{})", figure_text(unit, high)),
            false => format!("(95 %: from {low})"),
        }
    });
    let reason = one.reason.clone().map(|reason| match one.value {
        Some(_) => format!("({reason})"),
        None => reason,
    });
    let parts: Vec<String> = [value, interval, reason].into_iter().flatten().collect();
    parts.join(" ")
}

/// A figure in the unit in which it is written in a specification.
fn figure_text(unit: BoundUnit, value: f64) -> String {
    match unit {
        BoundUnit::Time => units::format_time(value),
        BoundUnit::Rate => units::format_rate(value),
        BoundUnit::PerSecond => format!("{}/s", units::three_digits(value)),
        BoundUnit::Share => crate::figure::percent(value),
        BoundUnit::Plain if value.fract() == 0.0 => format!("{value}"),
        BoundUnit::Plain => units::three_digits(value),
    }
}

/// A text in lines of the table's width, indented; further lines a little more.
fn hanging(text: &str, indent: usize) -> String {
    let lines = wrap(text, WIDTH - indent - 2).into_iter().enumerate();
    lines
        .map(|(at, line)| {
            let more = if at == 0 { 0 } else { 2 };
            format!("{}{}\n", " ".repeat(indent + more), line.trim_end())
        })
        .collect()
}

/// The expectations as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn expectations_json(judged: &[JudgedExpectation]) -> Value {
    let one = |one: &JudgedExpectation| {
        object!({
            "measurement": one.measurement,
            "of": one.of,
            "expectation": one.text,
            "line": one.line,
            "verdict": one.verdict,
            "value": one.value,
            // No figure is below zero; infinite is null.
            "ci95": one.ci95.map(|(low, high)| (low.max(0.0), high)),
            "reason": one.reason,
        })
    };
    judged.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_units() {
        let text = |unit, value| figure_text(unit, value);
        assert_eq!(text(BoundUnit::Rate, 9.0e7), "90.0 Mbit/s");
        assert_eq!(text(BoundUnit::PerSecond, 1234.0), "1234/s");
        assert_eq!(text(BoundUnit::Share, 0.012), "1.20 %");
        assert_eq!(text(BoundUnit::Plain, 3.0), "3");
        assert_eq!(text(BoundUnit::Plain, 0.925), "0.93");
    }
}
