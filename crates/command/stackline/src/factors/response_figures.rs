//! What a run is looked at for: figures out of its records. It decides nothing about factors.

use crate::flags::ResponseFlag;
use clap::ValueEnum;
use stackline_analyze::Summary;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use std::collections::BTreeMap;

/// Every figure that a run has.
pub(super) type ResponseFigures = BTreeMap<ResponseFlag, f64>;

/// The figures of one run of a plan of one measurement: sums of throughputs, means of times over its measured parts, the worst 99th
/// percentile.
pub(super) fn figures(plan: &Plan, records: &[RunRecord]) -> (ResponseFigures, Vec<String>) {
    let summaries = stackline_analyze::summarise(plan, records);
    let measured: Vec<&Summary> = summaries
        .iter()
        .filter(|summary| !summary.background && summary.part_index.is_some())
        .collect();
    let mut all = ResponseFigures::new();
    let mut put = |name, values: Vec<f64>, joined: fn(&[f64]) -> f64| {
        if !values.is_empty() && values.iter().all(|value| value.is_finite()) {
            all.insert(name, joined(&values));
        }
    };
    let each = |of: &dyn Fn(&Summary) -> Option<f64>| {
        measured
            .iter()
            .filter_map(|summary| of(summary))
            .collect::<Vec<_>>()
    };
    put(
        ResponseFlag::Throughput,
        each(&|one| one.run_values.throughput_bit_s.first().copied()),
        sum,
    );
    put(
        ResponseFlag::Response,
        each(&|one| one.run_values.response_s.first().copied()),
        mean,
    );
    put(
        ResponseFlag::Median,
        each(&|one| Some(one.response_s.as_ref()?.median)),
        mean,
    );
    put(
        ResponseFlag::P99,
        each(&|one| Some(one.response_s.as_ref()?.p99)),
        most,
    );
    put(
        ResponseFlag::Connect,
        each(&|one| one.run_values.connect_s.first().copied()),
        mean,
    );
    put(
        ResponseFlag::Elapsed,
        each(&|one| Some(one.elapsed_s.as_ref()?.mean)),
        most,
    );
    let cpu = each(&|one| Some(one.initiator.usage.cpu_s() + one.responder.usage.cpu_s()))
        .iter()
        .sum::<f64>();
    if cpu > 0.0 {
        all.insert(ResponseFlag::Cpu, cpu);
    }
    let flags = measured
        .iter()
        .flat_map(|summary| summary.flags.iter().cloned());
    // One run has no interval of its own, which every experiment is about.
    (
        all,
        flags
            .filter(|flag| {
                !["one run", "interval from calls"].contains(&flag.as_str())
                    && !flag.starts_with("congestion")
            })
            .collect(),
    )
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len() as f64
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Its name on the command line and in JSON.
pub(super) const fn name(response: ResponseFlag) -> &'static str {
    match response {
        ResponseFlag::Throughput => "throughput",
        ResponseFlag::Response => "response",
        ResponseFlag::Median => "median",
        ResponseFlag::P99 => "p99",
        ResponseFlag::Connect => "connect",
        ResponseFlag::Elapsed => "elapsed",
        ResponseFlag::Cpu => "cpu",
    }
}

/// The response of that name.
pub(super) fn named(text: &str) -> Option<ResponseFlag> {
    ResponseFlag::value_variants()
        .iter()
        .copied()
        .find(|response| name(*response) == text)
}

/// bit/s, or s.
pub(super) const fn unit(response: ResponseFlag) -> stackline_report::factors::ResponseUnit {
    match response {
        ResponseFlag::Throughput => stackline_report::factors::ResponseUnit::BitPerSecond,
        _ => stackline_report::factors::ResponseUnit::Seconds,
    }
}

/// Whether more of it is better.
pub(super) const fn more_is_better(response: ResponseFlag) -> bool {
    matches!(response, ResponseFlag::Throughput)
}
