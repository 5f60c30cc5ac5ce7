//! Predictions as text and JSON: a line each, followed by its intermediate values; the assumptions at the end.

use crate::figure;
use crate::grid::{Align, line, widths, wrap};
use crate::json::statistics;
use crate::table::WIDTH;
use serde_json::{Value, json as object};
use stackline_analyze::predicted::{FigureUnit, Predicted, PredictedFigure, PredictionOutcome};
use stackline_core::units;

const VALUES: [Align; 3] = [Align::Left, Align::Right, Align::Left];

/// The predictions as text. With `measured` there are columns for what was measured and for its ratio to the prediction.
#[must_use]
pub fn prediction(predictions: &[Predicted], measured: bool) -> String {
    let mut rows = vec![heading(measured)];
    rows.extend(
        predictions
            .iter()
            .enumerate()
            .map(|(at, predicted)| row(at, predicted, predictions, measured)),
    );
    let widths = widths(&rows);
    let align = vec![Align::Left; widths.len()];
    let mut lines = vec![line(&rows[0], &widths, &align)];
    for (predicted, row) in predictions.iter().zip(&rows[1..]) {
        lines.push(line(row, &widths, &align));
        lines.extend(details(predicted, measured));
    }
    lines.extend(assumed(predictions));
    lines.into_iter().map(|line| line + "\n").collect()
}

fn heading(measured: bool) -> Vec<String> {
    let columns: &[&str] = if measured {
        &[
            "",
            "predicted",
            "limited by",
            "measured",
            "ratio",
            "measurement",
        ]
    } else {
        &["", "predicted", "limited by", "measurement"]
    };
    columns.iter().map(|column| (*column).to_owned()).collect()
}

fn row(at: usize, p: &Predicted, all: &[Predicted], measured: bool) -> Vec<String> {
    let absent = || figure::ABSENT.to_owned();
    let answer = p.prediction.answer().zip(p.metric());
    let mut cells = vec![(at + 1).to_string()];
    cells.push(answer.map_or_else(absent, |(answer, metric)| {
        figure::value(metric, answer.value)
    }));
    cells.push(answer.map_or_else(
        || "not covered".to_owned(),
        |(answer, _)| answer.limit.to_owned(),
    ));
    if measured {
        let known = p.measured.as_ref().zip(p.metric());
        cells.push(known.map_or_else(absent, |(m, metric)| {
            figure::with_half_width(metric, m.statistics.mean, m.statistics.half_width())
        }));
        cells.push(known.and_then(|(m, _)| m.ratio).map_or_else(absent, ratio));
    }
    cells.push(name(p, all));
    cells
}

/// A ratio with enough digits to distinguish values near 1.
fn ratio(ratio: f64) -> String {
    if ratio < 10.0 {
        format!("{ratio:.3}")
    } else {
        units::three_digits(ratio)
    }
}

/// The measurement, with the part if there are several.
fn name(p: &Predicted, all: &[Predicted]) -> String {
    let of_it = all
        .iter()
        .filter(|other| other.prediction.measurement == p.prediction.measurement)
        .count();
    let part = if of_it > 1 {
        format!(": {}", p.prediction.part)
    } else {
        String::new()
    };
    format!("{}{part}", p.prediction.text)
}

fn details(p: &Predicted, measured: bool) -> Vec<String> {
    let mut lines = match &p.prediction.outcome {
        PredictionOutcome::NotCovered(reason) => wrap(reason, WIDTH - 4),
        PredictionOutcome::Predicted(answer) => values(answer),
    };
    if measured && p.measured.is_none() && p.prediction.answer().is_some() {
        lines.push("the run does not have this figure".to_owned());
    }
    lines
        .into_iter()
        .map(|line| format!("    {line}"))
        .collect()
}

fn values(answer: &PredictedFigure) -> Vec<String> {
    let [least, greatest] = answer
        .interval
        .map(|value| with_unit(value, answer.quantity.unit()));
    let row = |v: &stackline_analyze::predicted::IntermediateValue| {
        vec![
            v.name.to_owned(),
            with_unit(v.value, v.unit),
            format!("({})", v.source),
        ]
    };
    let rows: Vec<Vec<String>> = answer.values.iter().map(row).collect();
    let widths = widths(&rows);
    let what = vec![format!(
        "{}, from {least} to {greatest} in nine of ten runs:",
        answer.quantity.name()
    )];
    what.into_iter()
        .chain(
            rows.iter()
                .map(|row| format!("  {}", line(row, &widths, &VALUES))),
        )
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes, not below zero"
)]
fn with_unit(value: f64, unit: FigureUnit) -> String {
    match unit {
        FigureUnit::BitPerSecond => units::format_rate(value),
        FigureUnit::Seconds => units::format_time(value),
        FigureUnit::Bytes => units::format_size(value.round() as u64),
        FigureUnit::Share if value > 0.0 && value < 1e-4 => format!("{value:.1e}"),
        FigureUnit::Share => figure::percent(value),
        FigureUnit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        FigureUnit::Count => units::three_digits(value),
    }
}

/// The assumptions, each once, with the numbers of its lines if it does not hold for all.
fn assumed(predictions: &[Predicted]) -> Vec<String> {
    let answers: Vec<(usize, &PredictedFigure)> = predictions
        .iter()
        .enumerate()
        .filter_map(|(at, p)| Some((at + 1, p.prediction.answer()?)))
        .collect();
    let mut said: Vec<(&str, Vec<usize>)> = Vec::new();
    for (number, text) in answers
        .iter()
        .flat_map(|(number, answer)| answer.assumptions.iter().map(|a| (*number, a)))
    {
        match said.iter_mut().find(|(known, _)| known == text) {
            Some((_, numbers)) => numbers.push(number),
            None => said.push((text, vec![number])),
        }
    }
    if said.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "assumed:".to_owned()];
    for (text, numbers) in said {
        let about = if numbers.len() == answers.len() {
            String::new()
        } else {
            format!(
                " ({})",
                numbers
                    .iter()
                    .map(usize::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        };
        let wrapped = wrap(&format!("{text}{about}"), WIDTH - 2)
            .into_iter()
            .enumerate();
        lines.extend(wrapped.map(|(at, line)| {
            if at == 0 {
                format!("- {line}")
            } else {
                format!("  {line}")
            }
        }));
    }
    lines
}

/// The predictions as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn prediction_json(predictions: &[Predicted]) -> Value {
    object!({ "predictions": predictions.iter().map(one).collect::<Vec<_>>() })
}

fn one(p: &Predicted) -> Value {
    let answer = p.prediction.answer();
    let reason = match &p.prediction.outcome {
        PredictionOutcome::NotCovered(reason) => Some(reason),
        PredictionOutcome::Predicted(_) => None,
    };
    let values: Vec<Value> = answer
        .iter()
        .flat_map(|answer| &answer.values)
        .map(|v| object!({ "name": v.name, "value": v.value, "unit": v.unit.name(), "source": v.source }))
        .collect();
    object!({
        "measurement": p.prediction.measurement,
        "text": p.prediction.text,
        "part": p.prediction.part,
        "application": p.prediction.application,
        "stack": p.prediction.stack,
        "world": p.prediction.world.to_string(),
        "network": p.prediction.network,
        "metric": p.metric(),
        "interval": answer.map(|answer| answer.interval),
        "predicted": answer.map(|answer| answer.value),
        "unit": answer.map(|answer| answer.quantity.unit().name()),
        "limit": answer.map(|answer| answer.limit),
        "values": values,
        "assumptions": answer.map(|answer| &answer.assumptions).unwrap_or(&Vec::new()),
        "not_covered": reason,
        "measured": statistics(p.measured.as_ref().map(|m| &m.statistics)),
        "ratio": p.measured.as_ref().and_then(|m| m.ratio),
    })
}

#[cfg(test)]
mod tests;
