//! Baselines from kept runs, and a gate of one run against another or against a baseline file.

use crate::assemble::LifelineOptions;
use crate::compare::{compare_by, match_summaries};
use crate::loaded_run::assembly::{MOST_EVENTS, assembled};
use crate::loaded_run::incomplete;
use crate::regression_gate::{RegressionOutcome, RegressionRule, judge_with_segments};
use crate::segment_runs::{SegmentRuns, TracedSide, compared_segments, segment_runs};
use crate::statistics::values_needed;
use crate::summarise::summarise;
use crate::summary::{RunMetric, RunValues, Summary};
use stackline_core::error::{Error, Result};
use stackline_runs::events::read_index;
use stackline_runs::{
    Baseline, BaselineMeasurement, MachineFacts, StoredRun, machines_of, version_of,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The figures of a baseline, by name, and the metrics that they are.
const FIGURES: [(&str, RunMetric); 6] = [
    ("connect_s", RunMetric::Connect),
    ("response_p50_s", RunMetric::ResponseP50),
    ("response_p90_s", RunMetric::ResponseP90),
    ("response_p99_s", RunMetric::ResponseP99),
    ("response_s", RunMetric::Response),
    ("throughput_bit_s", RunMetric::Throughput),
];

/// What a gate judges.
#[derive(Clone, Debug, PartialEq)]
pub struct GateScope {
    /// The metrics of measurements.
    pub metrics: Vec<RunMetric>,
    /// Whether segments of lifelines are judged too.
    pub segments: bool,
}

impl Default for GateScope {
    fn default() -> Self {
        Self {
            metrics: RunMetric::MAIN.to_vec(),
            segments: false,
        }
    }
}

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
/// If one of them cannot be read, they have no figure in common, or one lacks what is to be judged.
pub fn gate_runs(
    base: &Path,
    new: &Path,
    rule: RegressionRule,
    scope: &GateScope,
    warn: &mut dyn FnMut(String),
) -> Result<RegressionOutcome> {
    let [before, after] = [side(base, scope, warn)?, side(new, scope, warn)?];
    if let Some(lacking) = lacking_percentile(&before, &after, scope) {
        return Err(lacking);
    }
    let comparisons = compare_by(&before.summaries, &after.summaries, &scope.metrics);
    let segments = compared_segments(before.traced(), after.traced());
    let mut outcome = judge_with_segments(&comparisons, &segments, rule);
    if outcome.figures.is_empty() {
        let message = format!(
            "{} and {} have no measurement in common",
            base.display(),
            new.display()
        );
        return Err(Error::input(message).hint("measurements are matched by their text, part and stack, else by application type; traces are compared with `stackline compare --fail-above`"));
    }
    if scope.segments && segments.is_empty() {
        let message = format!(
            "{} and {} have no segment in common that both passed in two runs",
            base.display(),
            new.display()
        );
        return Err(Error::input(message)
            .hint("make both with `run --trace` and two or more runs of the same measurement"));
    }
    let differences = differences(&before, &after);
    outcome.caveats.splice(0..0, differences);
    Ok(outcome)
}

/// The error that a percentile is to be judged where one side has response times but not that percentile.
fn lacking_percentile(before: &GateSide, after: &GateSide, scope: &GateScope) -> Option<Error> {
    let asked = scope.metrics.iter().filter(|metric| metric.is_percentile());
    let asked: Vec<RunMetric> = asked.copied().collect();
    let matched = match_summaries(&before.summaries, &after.summaries);
    let sides = matched.iter().filter_map(|one| Some((one.a?, one.b?)));
    let lacks = |summary: &Summary, metric| {
        !summary.values(RunMetric::Response).is_empty() && summary.values(metric).is_empty()
    };
    sides
        .flat_map(|(a, b)| asked.iter().map(move |metric| (a, b, *metric)))
        .find(|(a, b, metric)| lacks(a, *metric) || lacks(b, *metric))
        .map(|(a, b, metric)| {
            let is_base = lacks(a, metric);
            let (side, text) = match is_base {
                true => ("the baseline", &a.text),
                false => ("the new run", &b.text),
            };
            let needed = values_needed(metric.percent().unwrap_or_default());
            let hint = match is_base && before.is_file {
                true => "an older stackline saved the file, or the runs are too short: save it again with `stackline gate --save FILE RUN`".to_owned(),
                false => format!("each run needs {needed} calls for it"),
            };
            let message = format!("{side} has no {} of `{text}`", metric.name());
            Error::input(message).hint(hint)
        })
}

/// One side of a gate.
#[derive(Default)]
struct GateSide {
    is_file: bool,
    summaries: Vec<Summary>,
    segments: Vec<SegmentRuns>,
    machines: BTreeMap<String, MachineFacts>,
    stackline: String,
}

impl GateSide {
    fn traced(&self) -> TracedSide<'_> {
        TracedSide {
            summaries: &self.summaries,
            segments: &self.segments,
        }
    }
}

/// Reads a run, or a baseline where the path is a file.
fn side(path: &Path, scope: &GateScope, warn: &mut dyn FnMut(String)) -> Result<GateSide> {
    if path.is_file() {
        let baseline = Baseline::read(path)?;
        if scope.segments {
            let message = format!(
                "{} is a baseline file, which has no segments",
                path.display()
            );
            return Err(Error::input(message)
                .hint("judge segments by a run that was made with `run --trace`"));
        }
        return Ok(GateSide {
            is_file: true,
            summaries: baseline.measurements.iter().map(summary).collect(),
            machines: baseline.machines,
            stackline: baseline.stackline,
            ..GateSide::default()
        });
    }
    let run = match scope.segments {
        true => StoredRun::open_events(path)?,
        false => StoredRun::open(path)?,
    };
    incomplete(&run, "judged").into_iter().for_each(&mut *warn);
    Ok(GateSide {
        is_file: false,
        summaries: summarise(&run.plan, &run.records),
        segments: match scope.segments {
            true => segments_of(&run, warn)?,
            false => Vec::new(),
        },
        machines: machines_of(&run),
        stackline: version_of(&run),
    })
}

/// The segments of a traced run, run by run.
fn segments_of(run: &StoredRun, warn: &mut dyn FnMut(String)) -> Result<Vec<SegmentRuns>> {
    let index = read_index(&run.path)?.filter(|index| !index.flows.is_empty());
    let Some(index) = index else {
        let message = format!("{} has no events of its measurements", run.path.display());
        return Err(Error::input(message).hint("make it with `run --trace`"));
    };
    let options = LifelineOptions::default();
    let (lifelines, note) = assembled(&run.path, Some(&index), &options, MOST_EVENTS)?;
    note.iter().for_each(|note| warn(format!("note: {note}")));
    Ok(segment_runs(&lifelines, &index))
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
    let of = |metric: RunMetric| {
        let name = FIGURES.iter().find(|(_, known)| *known == metric);
        name.map_or_else(Vec::new, |(name, _)| values(name))
    };
    Summary {
        text: measurement.text.clone(),
        part: measurement.part.clone(),
        part_index: measurement.part_index,
        application: measurement.application.clone(),
        stack: measurement.stack.clone(),
        run_values: RunValues {
            connect_s: of(RunMetric::Connect),
            response_s: of(RunMetric::Response),
            throughput_bit_s: of(RunMetric::Throughput),
            response_percentiles_s: RunMetric::PERCENTILES.map(of),
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
            machines,
            stackline: stackline.into(),
            ..GateSide::default()
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
        let found = compare_by(
            std::slice::from_ref(&back),
            std::slice::from_ref(&back),
            &RunMetric::ALL,
        );
        assert_eq!((found.len(), found[0].metrics.len()), (1, 1));
    }
}
