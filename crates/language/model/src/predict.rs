//! A plan to predictions: each measured part across a network, by the forms that cover what it does.
//!
//! Parts that run at once share each link's rate in equal parts; each is taken to want all of its share.

mod bulk;
mod interval;
mod limits;
mod messages;
mod situation;
mod turns;
mod uncovered;

use crate::path::Path;
use crate::prediction::{Answer, Outcome, Prediction, Quantity};
use crate::recognise::{Shape, recognise};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use situation::{Load, Situation};
use stackline_core::catalogue::ClosedForm;
use stackline_core::network::Network;
use stackline_core::plan::{Composer, Measurement, Part, Plan};

/// Predictions for every measured part of a plan, in its order; for `parallel` also one for all measured parts together,
/// for `total` only that, as results are summarised.
#[must_use]
pub fn predict(plan: &Plan) -> Vec<Prediction> {
    plan.measurements
        .iter()
        .enumerate()
        .flat_map(|(index, measurement)| of(plan, index, measurement))
        .collect()
}

fn of(plan: &Plan, index: usize, measurement: &Measurement) -> Vec<Prediction> {
    let network = measurement
        .across
        .as_ref()
        .and_then(|name| plan.networks.iter().find(|n| n.name == *name));
    let load = network
        .map(|network| Load::of(network, measurement))
        .unwrap_or_default();
    let measured = measurement
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| !part.background);
    let mut all: Vec<Prediction> = measured
        .map(|(at, part)| {
            let outcome = outcome(network, measurement, part, &load);
            Prediction {
                part_index: Some(at),
                part: part.text.clone(),
                ..described(index, measurement, &[part], outcome)
            }
        })
        .collect();
    let total = measurement.composer == Composer::Total;
    if total || (measurement.composer == Composer::Parallel && all.len() > 1) {
        let parts: Vec<&Part> = measurement
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

fn described(
    index: usize,
    measurement: &Measurement,
    parts: &[&Part],
    outcome: Outcome,
) -> Prediction {
    Prediction {
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

/// Characters of a measurement's text that a prediction keeps: each of its parts has one.
const LABEL: usize = 1000;

/// A measurement's text, cut where it is long.
fn label(text: &str) -> String {
    match text.char_indices().nth(LABEL) {
        None => text.to_string(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Different texts, each once, in their order.
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
    part: &Part,
    load: &Load,
) -> Outcome {
    match answer(network, measurement, part, load) {
        Ok(answer) => Outcome::Predicted(answer),
        Err(reason) => Outcome::NotCovered(reason),
    }
}

fn answer(
    network: Option<&Network>,
    measurement: &Measurement,
    part: &Part,
    load: &Load,
) -> Result<Answer, String> {
    let network = network.ok_or("it crosses no network: `across NAME` says which")?;
    let (Some(from), Some(to)) = (&part.from, &part.to) else {
        return Err("both ends need a host of the network: `from HOST to HOST`".to_string());
    };
    if part.stack.facts.form == ClosedForm::Messages {
        return messages::predict(network, measurement, part, &recognise(&part.procedure)?);
    }
    if let Some(host) = [from, to].into_iter().find(|name| {
        network
            .host(name)
            .is_some_and(|host| !host.work.is_nothing())
    }) {
        return Err(format!(
            "programs of {host} take its processor's time, and no form says who waits for whom"
        ));
    }
    let way = |a: &str, b: &str| {
        let path = Path::between(network, a, b);
        path.filter(|p| !p.hops.is_empty())
            .ok_or_else(|| format!("no path leads from {a} to {b} in {}", network.name))
    };
    let shape = recognise(&part.procedure)?;
    let situation = Situation::of(measurement, part, way(from, to)?, way(to, from)?, load)?;
    match &shape {
        Shape::Bulk {
            get,
            unit,
            count,
            waits,
            connects,
        } => bulk::predict(
            &situation,
            &bulk::Bulk {
                get: *get,
                unit: *unit,
                count: *count,
                waits,
                connects: *connects,
            },
        ),
        Shape::Calls {
            calls,
            arrival,
            service,
            fresh,
        } => turns::calls(
            &situation,
            &turns::Calls {
                calls,
                arrival: arrival.as_ref(),
                service,
                fresh: *fresh,
            },
        ),
        Shape::Exchange { there, back, waits } => turns::exchange(&situation, *there, *back, waits),
        Shape::Connects { arrival } => turns::connects(&situation, arrival.as_ref()),
    }
}

/// All parts together: their bytes over the longest of their periods.
fn together(parts: &[Prediction]) -> Outcome {
    let moved: Option<Vec<(f64, f64)>> = parts.iter().map(|part| part.answer()?.moved).collect();
    let Some(moved) = moved.filter(|moved| !moved.is_empty()) else {
        return Outcome::NotCovered(
            "not every part moves data units that a form covers, so there is no sum".to_string(),
        );
    };
    let bytes: f64 = moved.iter().map(|(bytes, _)| bytes).sum();
    let longest = moved
        .iter()
        .map(|(_, seconds)| *seconds)
        .fold(0.0, f64::max);
    if longest <= 0.0 {
        return Outcome::NotCovered("nothing on the way takes time".to_string());
    }
    let answers: Vec<&Answer> = parts.iter().filter_map(Prediction::answer).collect();
    let slowest = answers
        .iter()
        .reduce(|a, b| if period(b) > period(a) { b } else { a });
    let mut assumptions: Vec<String> = Vec::new();
    for assumption in answers.iter().flat_map(|answer| &answer.assumptions) {
        if !assumptions.contains(assumption) {
            assumptions.push(assumption.clone());
        }
    }
    assumptions.push(
        "all parts together: the sum of their bytes over the longest of their periods".to_string(),
    );
    Outcome::Predicted(Answer {
        quantity: Quantity::Throughput,
        value: 8.0 * bytes / longest,
        interval: together_within(&answers, longest),
        limit: slowest.map_or("rate", |answer| answer.limit),
        values: vec![],
        assumptions,
        moved: Some((bytes, longest)),
    })
}

/// The sum is as unsure as its parts are.
fn together_within(answers: &[&Answer], longest_s: f64) -> [f64; 2] {
    [0, 1].map(|end| {
        let of = |answer: &&Answer| {
            answer.moved.map_or(0.0, |(bytes, _)| bytes) * answer.interval[end] / answer.value
        };
        8.0 * answers.iter().map(of).sum::<f64>() / longest_s
    })
}

fn period(answer: &Answer) -> f64 {
    answer.moved.map_or(0.0, |(_, seconds)| seconds)
}

#[cfg(test)]
mod tests;
