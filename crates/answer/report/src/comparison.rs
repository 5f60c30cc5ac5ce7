//! The comparison of two runs as text and as JSON.

mod segments;

pub use segments::{request_comparison, segment_comparison, segment_comparison_json};

use crate::figure;
use crate::grid::{Align, line, widths, wrap};
use crate::json::statistics;
use serde_json::{Value, json as object};
use stackline_analyze::compared_runs::RunComparison;
use stackline_analyze::{
    ComparisonVerdict, GateOutcome, GateVerdict, Label, MeasurementComparison, MetricComparison,
    Pairing, WorseBy,
};
use stackline_core::units::three_digits;
use stackline_runs::short_digest;

/// Alignment of the columns: metric, first mean, second mean, ratio, interval, verdict.
const ALIGN: [Align; 6] = [
    Align::Left,
    Align::Right,
    Align::Left,
    Align::Right,
    Align::Left,
    Align::Left,
];

/// The column of the interval.
const INTERVAL: usize = 4;

/// The comparison as text: what was measured, then a line for each metric: both means, their ratio with its 95 %
/// interval, and the verdict on the second.
#[must_use]
pub fn comparison(comparisons: &[MeasurementComparison]) -> String {
    comparison_of(comparisons, false)
}

/// The comparison as text; `same` if all results are the same to the last bit, which the verdicts then say.
fn comparison_of(comparisons: &[MeasurementComparison], same: bool) -> String {
    if comparisons.is_empty() {
        return "nothing to compare\n".to_owned();
    }
    let rows: Vec<Vec<String>> = comparisons
        .iter()
        .flat_map(|c| &c.metrics)
        .map(|metric| row(metric, same))
        .collect();
    let widths = columns(&rows);
    let mut rows = rows.iter();
    let mut out = String::new();
    for comparison in comparisons {
        heading(comparison, comparisons)
            .iter()
            .for_each(|text| out.push_str(&format!("{text}\n")));
        let mine = rows.by_ref().take(comparison.metrics.len());
        mine.for_each(|row| out.push_str(&format!("  {}\n", line(row, &widths, &ALIGN))));
    }
    footer(comparisons)
        .iter()
        .for_each(|text| out.push_str(&format!("{text}\n")));
    out
}

/// The widths of the columns. The reason why there is no interval begins in the interval's column and may be wider than it.
fn columns(rows: &[Vec<String>]) -> Vec<usize> {
    let cells = |row: &Vec<String>| {
        row[..if row.len() < ALIGN.len() {
            INTERVAL
        } else {
            ALIGN.len()
        }]
            .to_vec()
    };
    let mut widths = widths(&rows.iter().map(cells).collect::<Vec<_>>());
    widths.resize(ALIGN.len(), 0);
    widths
}

/// What the intervals do not cover, once for all comparisons, and only if a difference is claimed.
fn footer(comparisons: &[MeasurementComparison]) -> Vec<String> {
    let claims = |c: &&MeasurementComparison| c.metrics.iter().any(|m| m.verdict.claims());
    let claimed: Vec<&MeasurementComparison> = comparisons.iter().filter(claims).collect();
    if claimed.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    if claimed
        .iter()
        .flat_map(|c| &c.metrics)
        .any(|m| !is_deterministic(m))
    {
        lines.push(
            "An interval covers variation within each run, not changes between the runs."
                .to_owned(),
        );
    }
    for caveat in claimed.iter().flat_map(|c| &c.caveats) {
        let caveat = format!("- {caveat}");
        if !lines.contains(&caveat) {
            lines.push(caveat);
        }
    }
    if lines.len() == 1 {
        return Vec::new();
    }
    lines
}

fn heading(comparison: &MeasurementComparison, all: &[MeasurementComparison]) -> Vec<String> {
    let text = |label: &Option<Label>| {
        label
            .as_ref()
            .map(|label| name(label, all))
            .unwrap_or_default()
    };
    let (a, b) = (text(&comparison.a), text(&comparison.b));
    let nothing = comparison.metrics.is_empty() && comparison.pairing != Pairing::Alone;
    let mut lines = match comparison.pairing {
        Pairing::Same => vec![a],
        Pairing::Position => vec![format!("A: {a}"), format!("B: {b}")],
        Pairing::Alone if comparison.b.is_none() => vec![a, "  only in the first run".to_owned()],
        Pairing::Alone => vec![b, "  only in the second run".to_owned()],
    };
    if nothing {
        lines.push("  the two runs have no metric in common".to_owned());
    }
    if let Some(unlike) = &comparison.unlike_placement {
        lines.extend(
            wrap(&format!("! {unlike}"), 78)
                .into_iter()
                .map(|line| format!("  {line}")),
        );
    }
    lines
}

/// The measurement, with the part if there are several, and the stack if the text does not name it.
fn name(label: &Label, all: &[MeasurementComparison]) -> String {
    let several = all
        .iter()
        .flat_map(|c| [&c.a, &c.b])
        .flatten()
        .any(|other| other.text == label.text && other.part != label.part);
    let part = match several {
        true => format!(": {}", label.part),
        false => String::new(),
    };
    let stack = match label.text.contains(" over ") {
        true => String::new(),
        false => format!(" over {}", label.stack),
    };
    format!("{}{part}{stack}", label.text)
}

fn row(m: &MetricComparison, same: bool) -> Vec<String> {
    let mean = |s: &stackline_analyze::SampleStatistics| figure::value(m.metric, s.mean);
    let ratio = if m.ratio.is_finite() {
        format!("x {}", digits(m.ratio))
    } else {
        figure::ABSENT.to_owned()
    };
    let mut cells = vec![
        m.metric.name().to_owned(),
        mean(&m.a),
        format!("-> {}", mean(&m.b)),
        ratio,
    ];
    cells.extend(m.ci95.map(|(low, high)| match is_deterministic(m) {
        true => "(deterministic)".to_owned(),
        false => format!("(95 %: {}..{})", digits(low), digits(high)),
    }));
    cells.push(if same {
        "the same".to_owned()
    } else {
        verdict(m)
    });
    cells
}

/// Whether all runs of each side have equal values, as simulated runs without randomness have.
fn is_deterministic(m: &MetricComparison) -> bool {
    [&m.a, &m.b]
        .iter()
        .all(|side| side.n > 1 && side.min >= side.max)
}

/// A ratio with enough digits to distinguish values near 1.
fn digits(ratio: f64) -> String {
    if ratio < 10.0 {
        format!("{ratio:.3}")
    } else {
        three_digits(ratio)
    }
}

fn verdict(m: &MetricComparison) -> String {
    match m.verdict {
        ComparisonVerdict::Faster => "faster".to_owned(),
        ComparisonVerdict::Slower => "slower".to_owned(),
        ComparisonVerdict::Less => "less".to_owned(),
        ComparisonVerdict::More => "more".to_owned(),
        ComparisonVerdict::NoDifferenceSeen => "no difference seen".to_owned(),
        ComparisonVerdict::CannotTell => format!(
            "cannot tell: {}",
            m.reason.as_deref().unwrap_or("too few runs to decide")
        ),
    }
}

/// The comparison as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn comparison_json(comparisons: &[MeasurementComparison]) -> Value {
    object!({ "comparisons": comparisons.iter().map(one).collect::<Vec<_>>() })
}

/// Measurements, requests and segments that were compared, each as text.
#[must_use]
pub fn compared_runs(compared: &RunComparison) -> String {
    let RunComparison {
        measurements,
        requests,
        segments,
        same_digest,
    } = compared;
    let mut texts = Vec::new();
    texts.extend(same_digest.as_ref().map(|digest| {
        let digest = short_digest(digest);
        format!("The results of both runs are the same to the last bit (digest {digest}).\n")
    }));
    let same = same_digest.is_some();
    texts.extend((!measurements.is_empty()).then(|| comparison_of(measurements, same)));
    texts.extend((!requests.is_empty()).then(|| request_comparison(requests)));
    texts.extend((!segments.is_empty()).then(|| segment_comparison(segments)));
    texts.join("\n")
}

/// The same as JSON, with the result of a gate if there was one.
#[must_use]
pub fn compared_runs_json(compared: &RunComparison, gate: Option<&GateOutcome>) -> Value {
    let mut json = comparison_json(&compared.measurements);
    json["segments"] = segment_comparison_json(&compared.segments);
    json["same"] = compared.same_digest.is_some().into();
    json["digest"] = compared.same_digest.clone().into();
    if !compared.requests.is_empty() {
        json["requests"] = segment_comparison_json(&compared.requests);
    }
    if let Some(gate) = gate {
        json["gate"] = gate_json(gate);
    }
    json
}

/// The result of a gate as sentences.
#[must_use]
pub fn gate_lines(gate: &GateOutcome) -> Vec<String> {
    let limit = gate.limit * 100.0;
    match (gate.verdict, &gate.worst) {
        (GateVerdict::Worse, Some(worst)) => vec![format!(
            "failed: {} is worse by {:.1} %, over the {limit:.1} % limit",
            worst.name,
            worst.by * 100.0
        )],
        (GateVerdict::Undecided, _) => vec![format!(
            "cannot decide whether anything is worse by more than {limit:.1} %: {}",
            gate.reasons.join("; ")
        )],
        _ => {
            let passed = format!("passed: nothing is shown to be worse by more than {limit:.1} %");
            let possible = gate.possible.as_ref().map(|possible| {
                format!(
                    "note: {} may be up to {:.0} % worse (95 % confidence): more runs would narrow this",
                    possible.name,
                    possible.by * 100.0
                )
            });
            [passed].into_iter().chain(possible).collect()
        }
    }
}

/// The result of a gate as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn gate_json(gate: &GateOutcome) -> Value {
    let worse = |one: &Option<WorseBy>| {
        one.as_ref()
            .map(|one| object!({ "name": one.name, "by": one.by }))
    };
    object!({
        "verdict": gate.verdict,
        "limit": gate.limit,
        "worst": worse(&gate.worst),
        "possible": worse(&gate.possible),
        "reasons": gate.reasons,
    })
}

fn one(c: &MeasurementComparison) -> Value {
    let metrics: Vec<Value> = c.metrics.iter().map(metric).collect();
    let caveats: Vec<&String> = c.unlike_placement.iter().chain(&c.caveats).collect();
    object!({ "a": c.a, "b": c.b, "pairing": c.pairing, "metrics": metrics, "caveats": caveats })
}

fn metric(m: &MetricComparison) -> Value {
    object!({
        "metric": m.metric,
        "a": statistics(Some(&m.a)),
        "b": statistics(Some(&m.b)),
        "ratio": m.ratio,
        "ci95": m.ci95,
        "verdict": m.verdict,
        "reason": m.reason,
    })
}

#[cfg(test)]
mod tests;
