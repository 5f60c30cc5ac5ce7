//! Baselines from kept runs, and a gate of one run against another or against a baseline file.

use crate::compare::compare;
use crate::loaded_run::incomplete;
use crate::regression_gate::{RegressionOutcome, RegressionRule, judge_regressions};
use crate::summarise::summarise;
use crate::summary::{RunMetric, RunValues, Summary};
use stackline_core::error::{Error, Result};
use stackline_runs::{
    Baseline, BaselineMeasurement, MachineFacts, StoredRun, machines_of, version_of,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The figures of a baseline, by name, and the metrics that they are.
const FIGURES: [(&str, RunMetric); 3] = [
    ("connect_s", RunMetric::Connect),
    ("response_s", RunMetric::Response),
    ("throughput_bit_s", RunMetric::Throughput),
];

/// The baseline of a kept run. `warn` gets what reduces its meaning.
///
/// # Errors
/// If the run cannot be read, or has no figure that a gate judges.
pub fn baseline_of(run: &Path, warn: &mut dyn FnMut(String)) -> Result<Baseline> {
    let run = StoredRun::open(run)?;
    incomplete(&run, "saved").into_iter().for_each(&mut *warn);
    let baseline = saved(&run);
    if baseline.measurements.is_empty() {
        let path = run.path.display();
        let message = format!("{path} has no figure that a gate could judge");
        return Err(Error::input(message).hint("save a run with throughput, calls or connections; traces are compared with `stackline compare --fail-above`"));
    }
    let runs = |one: &BaselineMeasurement| one.figures.values().map(Vec::len).max().unwrap_or(0);
    if baseline.measurements.iter().any(|one| runs(one) < 2) {
        warn("warning: some measurement has only one run, so that no gate can judge by it\nhint: write more runs at the beginning of the measurement, such as `20`".to_owned());
    }
    Ok(baseline)
}

/// Judges a run against another or a baseline file. `warn` gets what reduces the meaning of the comparison.
///
/// # Errors
/// If one of them cannot be read, or they have no figure in common.
pub fn gate_runs(
    base: &Path,
    new: &Path,
    rule: RegressionRule,
    warn: &mut dyn FnMut(String),
) -> Result<RegressionOutcome> {
    let [before, after] = [side(base, warn)?, side(new, warn)?];
    let comparisons = compare(&before.summaries, &after.summaries);
    let mut outcome = judge_regressions(&comparisons, rule);
    if outcome.figures.is_empty() {
        let message = format!(
            "{} and {} have no measurement in common",
            base.display(),
            new.display()
        );
        return Err(Error::input(message).hint("measurements are matched by their text, part and stack, else by application type; traces are compared with `stackline compare --fail-above`"));
    }
    let differences = differences(&before, &after);
    outcome.caveats.splice(0..0, differences);
    Ok(outcome)
}

/// One side of a gate.
struct GateSide {
    summaries: Vec<Summary>,
    machines: BTreeMap<String, MachineFacts>,
    stackline: String,
}

/// Reads a run, or a baseline where the path is a file.
fn side(path: &Path, warn: &mut dyn FnMut(String)) -> Result<GateSide> {
    if path.is_file() {
        let baseline = Baseline::read(path)?;
        return Ok(GateSide {
            summaries: baseline.measurements.iter().map(summary).collect(),
            machines: baseline.machines,
            stackline: baseline.stackline,
        });
    }
    let run = StoredRun::open(path)?;
    incomplete(&run, "judged").into_iter().for_each(&mut *warn);
    Ok(GateSide {
        summaries: summarise(&run.plan, &run.records),
        machines: machines_of(&run),
        stackline: version_of(&run),
    })
}

fn saved(run: &StoredRun) -> Baseline {
    let measured = |summary: &Summary| {
        let figures: BTreeMap<String, Vec<f64>> = FIGURES
            .iter()
            .map(|(name, metric)| ((*name).to_owned(), summary.values(*metric).to_vec()))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        let is_judged = !summary.background && !figures.is_empty();
        is_judged.then(|| BaselineMeasurement {
            application: summary.application.clone(),
            figures,
            part: summary.part.clone(),
            part_index: summary.part_index,
            stack: summary.stack.clone(),
            text: summary.text.clone(),
        })
    };
    let summaries = summarise(&run.plan, &run.records);
    Baseline {
        machines: machines_of(run),
        measurements: summaries.iter().filter_map(measured).collect(),
        stackline: version_of(run),
    }
}

/// A summary with what a baseline holds of it.
fn summary(measurement: &BaselineMeasurement) -> Summary {
    let values = |name: &str| measurement.figures.get(name).cloned().unwrap_or_default();
    let [connect, response, throughput] = FIGURES;
    Summary {
        text: measurement.text.clone(),
        part: measurement.part.clone(),
        part_index: measurement.part_index,
        application: measurement.application.clone(),
        stack: measurement.stack.clone(),
        run_values: RunValues {
            connect_s: values(connect.0),
            response_s: values(response.0),
            throughput_bit_s: values(throughput.0),
            ..RunValues::default()
        },
        ..Summary::default()
    }
}

/// Sentences on machines and versions that differ, each once.
fn differences(before: &GateSide, after: &GateSide) -> Vec<String> {
    let mut found = Vec::new();
    let known = |version: &String| !version.is_empty();
    if before.stackline != after.stackline && known(&before.stackline) && known(&after.stackline) {
        found.push(format!(
            "measured by another version of stackline: {} -> {}",
            before.stackline, after.stackline
        ));
    }
    for (name, machine) in &after.machines {
        let Some(other) = before.machines.get(name) else {
            continue;
        };
        for (fact, now) in machine {
            let Some(then) = other.get(fact).filter(|then| *then != now) else {
                continue;
            };
            let sentence = format!("another machine: {fact} {then} -> {now}");
            if !found.contains(&sentence) {
                found.push(sentence);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(facts: &[(&str, &str)]) -> BTreeMap<String, MachineFacts> {
        let facts = facts
            .iter()
            .map(|(name, fact)| ((*name).to_owned(), (*fact).to_owned()));
        [("local".to_owned(), facts.collect())].into()
    }

    fn on(machines: BTreeMap<String, MachineFacts>, stackline: &str) -> GateSide {
        GateSide {
            summaries: vec![],
            machines,
            stackline: stackline.into(),
        }
    }

    #[test]
    fn other_hardware_is_named_with_what_differs() {
        let old = || on(machine(&[("kernel", "6.1"), ("processor", "X")]), "0.1.0");
        let new = on(
            machine(&[
                ("governor", "performance"),
                ("kernel", "6.1"),
                ("processor", "Y"),
            ]),
            "0.2.0",
        );
        assert_eq!(
            differences(&old(), &new),
            [
                "measured by another version of stackline: 0.1.0 -> 0.2.0",
                "another machine: processor X -> Y"
            ]
        );
        assert!(differences(&old(), &old()).is_empty());
        // What was simulated has no machine.
        assert!(differences(&old(), &on(BTreeMap::new(), "")).is_empty());
    }

    #[test]
    fn a_saved_summary_is_compared_like_the_run() {
        let measured = BaselineMeasurement {
            application: "bulk_put".into(),
            figures: [("throughput_bit_s".to_owned(), vec![1e6, 2e6])].into(),
            part: "bulk_put 1*1".into(),
            part_index: Some(0),
            stack: "tcp".into(),
            text: "2 bulk_put 1*1".into(),
        };
        let back = summary(&measured);
        assert_eq!(back.values(RunMetric::Throughput), [1e6, 2e6]);
        let found = compare(std::slice::from_ref(&back), std::slice::from_ref(&back));
        assert_eq!((found.len(), found[0].metrics.len()), (1, 1));
    }
}
