//! The figures of a run that an experiment analyses as responses.

use stackline_analyze::Summary;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_report::factors::ResponseUnit;
use std::collections::BTreeMap;

/// A response: a figure by which the runs of an experiment are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunResponse {
    /// Throughput, bit/s.
    Throughput,
    /// Mean response time.
    Response,
    /// Median response time.
    Median,
    /// 99th percentile of response times.
    P99,
    /// Mean time of connects and disconnects.
    Connect,
    /// Time of the run.
    Elapsed,
    /// CPU seconds of both ends.
    Cpu,
}

stackline_core::named_values!(RunResponse, Throughput = "throughput", "bit/s"; Response = "response", "Mean response time"; Median = "median", "Median response time"; P99 = "p99", "99th percentile of response times"; Connect = "connect", "Mean time to connect and disconnect"; Elapsed = "elapsed", "Run duration"; Cpu = "cpu", "CPU seconds of both ends");

impl RunResponse {
    /// The unit of its values.
    #[must_use]
    pub const fn unit(self) -> ResponseUnit {
        match self {
            Self::Throughput => ResponseUnit::BitPerSecond,
            _ => ResponseUnit::Seconds,
        }
    }

    /// Whether a higher value is better.
    #[must_use]
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput)
    }
}

/// All figures of a run.
pub type ResponseFigures = BTreeMap<RunResponse, f64>;

/// The figures and flags of one run of a plan with one measurement. Over the measured parts, throughputs are summed, times averaged;
/// of 99th percentiles and elapsed times the largest counts.
#[must_use]
pub fn figures(plan: &Plan, records: &[RunRecord]) -> (ResponseFigures, Vec<String>) {
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
        RunResponse::Throughput,
        each(&|one| one.run_values.throughput_bit_s.first().copied()),
        sum,
    );
    put(
        RunResponse::Response,
        each(&|one| one.run_values.response_s.first().copied()),
        mean,
    );
    put(
        RunResponse::Median,
        each(&|one| Some(one.response_s.as_ref()?.median)),
        mean,
    );
    put(
        RunResponse::P99,
        each(&|one| Some(one.response_s.as_ref()?.p99)),
        most,
    );
    put(
        RunResponse::Connect,
        each(&|one| one.run_values.connect_s.first().copied()),
        mean,
    );
    put(
        RunResponse::Elapsed,
        each(&|one| Some(one.elapsed_s.as_ref()?.mean)),
        most,
    );
    let cpu = each(&|one| Some(one.initiator.usage.cpu_s() + one.responder.usage.cpu_s()))
        .iter()
        .sum::<f64>();
    if cpu > 0.0 {
        all.insert(RunResponse::Cpu, cpu);
    }
    let flags = measured
        .iter()
        .flat_map(|summary| summary.flags.iter().cloned());
    // These flags say that one run has no interval; here the interval comes from the experiment's runs.
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
