//! Predictions for a plan: for each measured part across a network, by the formulas that cover its workload.
//!
//! Parts that run at the same time share each link's rate equally; each is assumed to use all of its share.

mod bulk;
mod error_interval;
mod flow_limits;
mod imp_messages;
mod request_response;
mod situation;
mod transfer_estimate;
mod uncovered;

use crate::path::PathModel;
use crate::prediction::{PartPrediction, PredictedFigure, PredictedQuantity, PredictionOutcome};
use crate::workload_pattern::{WorkloadPattern, recognise};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use situation::{LinkFlowCounts, Situation};
use stackline_core::catalogue::ClosedForm;
use stackline_core::network::Network;
use stackline_core::plan::{Composer, Measurement, MeasurementPart, Plan};

/// Predictions for every measured part of a plan, in its order; for `parallel` also one for all measured parts
/// together, for `total` only that one. This matches how results are summarised.
#[must_use]
pub fn predict(plan: &Plan) -> Vec<PartPrediction> {
    plan.measurements
        .iter()
        .enumerate()
        .flat_map(|(index, measurement)| predict_plan(plan, index, measurement))
        .collect()
}

/// The predictions for one measurement.
fn predict_plan(plan: &Plan, index: usize, measurement: &Measurement) -> Vec<PartPrediction> {
    let network = measurement
        .across
        .as_ref()
        .and_then(|name| plan.networks.iter().find(|n| n.name == *name));
    let load = network
        .map(|network| LinkFlowCounts::from_network(network, measurement))
        .unwrap_or_default();
    let measured = measurement
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| !part.background);
    let mut all: Vec<PartPrediction> = measured
        .map(|(at, part)| {
            let outcome = outcome(network, measurement, part, &load);
            PartPrediction {
                part_index: Some(at),
                part: part.text.clone(),
                ..described(index, measurement, &[part], outcome)
            }
        })
        .collect();
    let total = measurement.composer == Composer::Total;
    if total || (measurement.composer == Composer::Parallel && all.len() > 1) {
        let parts: Vec<&MeasurementPart> = measurement
            .parts
            .iter()
            .filter(|part| !part.background)
            .collect();
        let together = described(index, measurement, &parts, together(&all));
        all = if total {
            vec![together]
        } else {
            all.into_iter().chain([together]).collect()
        };
    }
    all
}

/// A prediction for these parts of a measurement, with its labels.
fn described(
    index: usize,
    measurement: &Measurement,
    parts: &[&MeasurementPart],
    outcome: PredictionOutcome,
) -> PartPrediction {
    PartPrediction {
        measurement: index,
        part_index: None,
        text: label(&measurement.text),
        part: "all".to_string(),
        application: joined(parts.iter().map(|part| part.procedure.name.clone())),
        stack: joined(parts.iter().map(|part| part.stack.to_string())),
        world: measurement.world,
        network: measurement.across.clone(),
        outcome,
    }
}

/// Longest text of a measurement that a prediction keeps, in characters: each of its parts has a copy.
const LABEL: usize = 1000;

/// A measurement's text, cut when it is too long.
fn label(text: &str) -> String {
    match text.char_indices().nth(LABEL) {
        None => text.to_string(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// The different texts, each once, in their order.
fn joined(texts: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for text in texts {
        if !distinct.contains(&text) {
            distinct.push(text);
        }
    }
    distinct.join(" + ")
}

fn outcome(
    network: Option<&Network>,
    measurement: &Measurement,
    part: &MeasurementPart,
    load: &LinkFlowCounts,
) -> PredictionOutcome {
    match answer(network, measurement, part, load) {
        Ok(answer) => PredictionOutcome::Predicted(answer),
        Err(reason) => PredictionOutcome::NotCovered(reason),
    }
}

fn answer(
    network: Option<&Network>,
    measurement: &Measurement,
    part: &MeasurementPart,
    load: &LinkFlowCounts,
) -> Result<PredictedFigure, String> {
    let network = network.ok_or("the measurement crosses no network: add `across NAME`")?;
    let (Some(from), Some(to)) = (&part.from, &part.to) else {
        return Err("both ends must be hosts of the network: `from HOST to HOST`".to_string());
    };
    if part.stack.facts.form == ClosedForm::Messages {
        return imp_messages::predict(network, measurement, part, &recognise(&part.procedure)?);
    }
    if let Some(host) = [from, to].into_iter().find(|name| {
        network
            .host(name)
            .is_some_and(|host| !host.work.is_nothing())
    }) {
        return Err(format!(
            "programs on {host} use its processor, and no closed-form formula gives their waiting times"
        ));
    }
    let path = |a: &str, b: &str| {
        let path = PathModel::between(network, a, b);
        path.filter(|p| !p.hops.is_empty())
            .ok_or_else(|| format!("{} has no path from {a} to {b}", network.name))
    };
    let shape = recognise(&part.procedure)?;
    let situation =
        Situation::from_measurement(measurement, part, path(from, to)?, path(to, from)?, load)?;
    match &shape {
        WorkloadPattern::Bulk {
            get,
            unit,
            count,
            waits,
            connects,
        } => bulk::predict(
            &situation,
            &bulk::BulkTransfer {
                get: *get,
                unit: *unit,
                count: *count,
                waits,
                connects: *connects,
            },
        ),
        WorkloadPattern::Calls {
            calls,
            arrival,
            service,
            fresh,
        } => request_response::calls(
            &situation,
            &request_response::CallLoop {
                calls,
                arrival: arrival.as_ref(),
                service,
                fresh: *fresh,
            },
        ),
        WorkloadPattern::Exchange { there, back, waits } => {
            request_response::exchange(&situation, *there, *back, waits)
        }
        WorkloadPattern::Connects { arrival } => {
            request_response::connects(&situation, arrival.as_ref())
        }
    }
}

/// The prediction for all parts together: their bytes divided by the longest of their times.
fn together(parts: &[PartPrediction]) -> PredictionOutcome {
    let moved: Option<Vec<(f64, f64)>> = parts.iter().map(|part| part.answer()?.moved).collect();
    let Some(moved) = moved.filter(|moved| !moved.is_empty()) else {
        return PredictionOutcome::NotCovered(
            "a part moves no data units or is not covered by a formula, so no total can be given"
                .to_string(),
        );
    };
    let bytes: f64 = moved.iter().map(|(bytes, _)| bytes).sum();
    let longest = moved
        .iter()
        .map(|(_, seconds)| *seconds)
        .fold(0.0, f64::max);
    if longest <= 0.0 {
        return PredictionOutcome::NotCovered("nothing on the path takes time".to_string());
    }
    let answers: Vec<&PredictedFigure> = parts.iter().filter_map(PartPrediction::answer).collect();
    let slowest = answers
        .iter()
        .reduce(|a, b| if period(b) > period(a) { b } else { a });
    let mut assumptions: Vec<String> = Vec::new();
    for assumption in answers.iter().flat_map(|answer| &answer.assumptions) {
        if !assumptions.contains(assumption) {
            assumptions.push(assumption.clone());
        }
    }
    assumptions.push("all parts together: total bytes divided by the longest period".to_string());
    PredictionOutcome::Predicted(PredictedFigure {
        quantity: PredictedQuantity::Throughput,
        value: 8.0 * bytes / longest,
        interval: together_within(&answers, longest),
        limit: slowest.map_or("rate", |answer| answer.limit),
        values: vec![],
        assumptions,
        moved: Some((bytes, longest)),
    })
}

/// The interval of the sum: each part contributes in proportion to its own interval.
fn together_within(answers: &[&PredictedFigure], longest_s: f64) -> [f64; 2] {
    [0, 1].map(|end| {
        let of = |answer: &&PredictedFigure| {
            answer.moved.map_or(0.0, |(bytes, _)| bytes) * answer.interval[end] / answer.value
        };
        8.0 * answers.iter().map(of).sum::<f64>() / longest_s
    })
}

/// The time of the part's transfer, s.
fn period(answer: &PredictedFigure) -> f64 {
    answer.moved.map_or(0.0, |(_, seconds)| seconds)
}

#[cfg(test)]
mod tests;
