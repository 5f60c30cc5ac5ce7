//! Makes summaries of run records: one for each part, and one for all parts of `parallel` and `total` together.
//!
//! Warm-up runs are left out; a summary of all parts together also leaves out runs that lack a part.

use crate::backlog;
use crate::core_sharing::core_sharing;
use crate::costs::costs;
use crate::fairness;
use crate::flags;
use crate::generator_lateness::late_share;
use crate::groups::{GroupRun, SummaryGroup, groups, run_values, work};
use crate::network::summarise_network;
use crate::side_summary::{lost_share, sum_reported, summarise_side};
use crate::statistics::{SampleStatistics, percentile, to_f64};
use crate::summary::{RepeatedWork, RunMetric, SideSummary, Summary};
use stackline_core::plan::{Measurement, MeasurementPart, Plan, Size, UnitCount};
use stackline_core::run_record::{Histogram, RunRecord};
use std::collections::BTreeMap;

/// Seconds in a nanosecond.
const NANO: f64 = 1e-9;

/// Summaries of all measurements of a plan, in its order, including those without a run yet (`runs` = 0).
#[must_use]
pub fn summarise(plan: &Plan, records: &[RunRecord]) -> Vec<Summary> {
    let mut by_measurement: BTreeMap<usize, Vec<&RunRecord>> = BTreeMap::new();
    for record in records {
        let mine = by_measurement.entry(record.measurement).or_default();
        mine.push(record);
    }
    let of = |(index, measurement): (usize, &Measurement)| -> Vec<Summary> {
        let mine = by_measurement.get(&index).map_or(&[][..], Vec::as_slice);
        groups(measurement)
            .iter()
            .map(|group| one(plan, index, group, &group.runs(mine.iter().copied())))
            .collect()
    };
    plan.measurements.iter().enumerate().flat_map(of).collect()
}

fn one(plan: &Plan, index: usize, group: &SummaryGroup<'_>, runs: &[GroupRun<'_>]) -> Summary {
    let measurement = &plan.measurements[index];
    let mut summary = described(index, measurement, group);
    figures(&mut summary, runs);
    summary.is_transfer = is_transfer(group, runs);
    traffic(&mut summary, group, runs);
    summary.network = summarise_network(plan, runs);
    costs(plan, group, &mut summary, runs);
    let records = runs.iter().flat_map(|run| run.records.iter().copied());
    summary.core_sharing = core_sharing(plan, measurement.world, &group.parts, records);
    summary.fairness = fairness::fairness(group, runs);
    summary.backlog_s = backlog::backlog_s(group, &summary);
    summary.flags = flags::flags(plan, measurement, group, runs, &summary);
    summary
}

/// A summary with what the plan says about the measurement, without figures.
fn described(index: usize, measurement: &Measurement, group: &SummaryGroup<'_>) -> Summary {
    let parts = &group.parts;
    let all = |get: fn(&MeasurementPart) -> String| joined(parts.iter().map(|part| get(part)));
    Summary {
        measurement: index,
        part_index: if group.aggregate {
            None
        } else {
            group.indices.first().copied()
        },
        text: measurement.text.clone(),
        part: if group.aggregate {
            "all".to_owned()
        } else {
            all(|part| part.text.clone())
        },
        application: all(|part| part.procedure.name.clone()),
        stack: all(|part| part.stack.to_string()),
        options: parts
            .iter()
            .flat_map(|part| part.stack.options.keys().cloned())
            .collect(),
        world: measurement.world,
        from: all(|part| host(part.from.as_deref())),
        to: all(|part| host(part.to.as_deref())),
        background: group.background(),
        replicas: parts.iter().map(|part| part.replicas).sum(),
        variables: measurement.variables.clone(),
        variable_units: measurement.variable_units.clone(),
        line: measurement.line,
        unit_bytes: same(parts.iter().map(|part| bytes(&part.data.unit))),
        reply_bytes: same(parts.iter().map(|part| bytes(&part.data.reply))),
        ..Summary::default()
    }
}

fn host(name: Option<&str>) -> String {
    name.unwrap_or("local").to_owned()
}

/// Joins different texts, each once, in their order, with ` + ` between.
fn joined(texts: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for text in texts {
        if !different.contains(&text) {
            different.push(text);
        }
    }
    different.join(" + ")
}

/// The value that all have in common, if there is one.
fn same(mut values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to int casts saturate"
)]
fn bytes(size: &Size) -> Option<u64> {
    match size {
        Size::Bytes(bytes) => Some(*bytes),
        Size::Drawn(distribution) => distribution.constant().map(|bytes| bytes.round() as u64),
    }
}

/// Sets the measured figures, and the metric by which the runs are judged.
fn figures(summary: &mut Summary, runs: &[GroupRun<'_>]) {
    let over_runs = |get: fn(&GroupRun<'_>) -> Option<f64>| {
        SampleStatistics::from_values(&runs.iter().filter_map(get).collect::<Vec<_>>())
    };
    let of_runs = |get: fn(&RunRecord) -> &Histogram| -> Vec<Histogram> {
        let each = runs.iter().map(|run| run.merged(get));
        each.filter(|run| !run.counts.is_empty()).collect()
    };
    let pooled = |runs: &[Histogram]| SampleStatistics::from_runs(runs, NANO);
    let mut values = run_values(runs);
    summary.runs = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    summary.units =
        to_f64(runs.iter().map(GroupRun::units).sum()) / to_f64(runs.len().max(1) as u64);
    summary.elapsed_s = over_runs(|run| Some(run.elapsed_s()));
    summary.throughput_bit_s = SampleStatistics::from_values(&values.throughput_bit_s);
    summary.response_run_ns = of_runs(|record| &record.calls);
    summary.connect_run_ns = of_runs(|record| &record.connects);
    summary.response_s = pooled(&summary.response_run_ns);
    values.response_percentiles_s = RunMetric::PERCENTILES.map(|metric| {
        let percent = metric.percent().unwrap_or_default();
        let each = summary.response_run_ns.iter();
        let each = each.map(|run| percentile(run, percent));
        each.collect::<Option<Vec<f64>>>().unwrap_or_default()
    });
    summary.response_ns = Histogram::merged(&summary.response_run_ns);
    summary.connect_ns = Histogram::merged(&summary.connect_run_ns);
    summary.response_run_s = SampleStatistics::from_values(&values.response_s);
    summary.connect_s = pooled(&summary.connect_run_ns);
    summary.connect_run_s = SampleStatistics::from_values(&values.connect_s);
    summary.rate_of = work(runs);
    let rates = runs
        .iter()
        .filter_map(|run| run.rate_per_s(summary.rate_of?));
    summary.rate_per_s = SampleStatistics::from_values(&rates.collect::<Vec<_>>());
    summary.transaction_s = over_runs(|run| run.transaction_s());
    summary.transactions_per_s = over_runs(|run| {
        run.transaction_s()
            .and_then(|_| run.rate_per_s(RepeatedWork::Connection))
    });
    summary.lateness_s = pooled(&of_runs(|record| &record.lateness));
    let own_lateness = of_runs(|record| &record.own_lateness);
    summary.generator_lateness_s = pooled(&own_lateness);
    summary.generator_late_share = late_share(&Histogram::merged(&own_lateness));
    summary.marks = marks(runs);
    summary.main = values.main();
    let main = values
        .main()
        .and_then(|metric| SampleStatistics::from_values(values.values_of(metric)));
    summary.normalised_sd = main.and_then(|statistics| statistics.normalised_sd());
    summary.run_values = values;
}

/// Whether each part moves one amount of data, uncut by a time limit, and makes no calls.
fn is_transfer(group: &SummaryGroup<'_>, runs: &[GroupRun<'_>]) -> bool {
    let whole = |part: &&MeasurementPart| {
        matches!(
            part.data.count,
            UnitCount::Amount(_) | UnitCount::WholeFile | UnitCount::Units(1)
        )
    };
    let mut records = runs.iter().flat_map(|run| &run.records);
    group.parts.iter().all(whole)
        && records.all(|record| !record.limited && record.calls.n() == 0 && record.data_bytes() > 0)
}

/// Statistics of each mark; a name that both sides use is one mark.
fn marks(runs: &[GroupRun<'_>]) -> BTreeMap<String, SampleStatistics> {
    let mut all: BTreeMap<String, Vec<Histogram>> = BTreeMap::new();
    for run in runs {
        let mut mine: BTreeMap<&str, Histogram> = BTreeMap::new();
        for (name, times) in run.sides().flat_map(|side| &side.marks) {
            mine.entry(name).or_default().merge(times);
        }
        for (name, times) in mine {
            all.entry(name.to_owned()).or_default().push(times);
        }
    }
    all.into_iter()
        .filter_map(|(name, runs)| Some((name, SampleStatistics::from_runs(&runs, NANO)?)))
        .collect()
}

/// Sets the summaries of both sides, and what was lost, duplicated or reordered between them.
fn traffic(summary: &mut Summary, group: &SummaryGroup<'_>, runs: &[GroupRun<'_>]) {
    summary.initiator = summarise_side(group, runs, |record| &record.initiator);
    summary.responder = summarise_side(group, runs, |record| &record.responder);
    summary.lost = sum_reported(runs, |side| side.lost);
    summary.lost_share = lost_share(runs);
    summary.duplicated = sum_reported(runs, |side| side.duplicated);
    summary.reordered = sum_reported(runs, |side| side.reordered);
    let absent = runs
        .iter()
        .flat_map(|run| &run.records)
        .flat_map(|record| &record.absent);
    summary.absent = absent
        .map(|(name, reason)| (name.clone(), reason.clone()))
        .collect();
    of_hosts(summary);
}

/// Adds why figures of the hosts are absent: once if both sides have the same reason, else with the side's name.
fn of_hosts(summary: &mut Summary) {
    let reasons = |side: &SideSummary| {
        side.host
            .as_ref()
            .map(|host| host.absent.clone())
            .unwrap_or_default()
    };
    let (initiator, responder) = (reasons(&summary.initiator), reasons(&summary.responder));
    for (mine, other, side) in [
        (&initiator, &responder, "initiator"),
        (&responder, &initiator, "responder"),
    ] {
        for (name, reason) in mine {
            let name = if other.get(name) == Some(reason) {
                name.clone()
            } else {
                format!("{side} {name}")
            };
            summary.absent.insert(name, reason.clone());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
