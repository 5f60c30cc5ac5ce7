//! Advice that says what it is worth, followed in runs of other seeds.

use crate::runs::measured;
use stackline_analyze::findings::{Advice, Finding, Gauge};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_truth::judge::seconds_for_all;

/// What an advice said, and what came of it.
pub(crate) struct FollowedAdvice {
    pub(crate) what: String,
    /// How many times as fast, as it said.
    pub(crate) said: f64,
    /// As it was measured.
    pub(crate) came: f64,
}

impl FollowedAdvice {
    /// Whether it came within a third of what was said.
    pub(crate) fn is_near(&self) -> bool {
        (self.came / self.said - 1.0).abs() <= 1.0 / 3.0
    }

    /// Whether it made things worse.
    pub(crate) fn harms(&self) -> bool {
        self.came < 0.97
    }
}

/// Runs with and without, of seeds so far from those it was tried with.
const RUNS: u64 = 3;
const OTHER_SEEDS: u64 = 1_000_000_007;

/// All that these findings advise with a figure.
pub(crate) fn follow(plan: &Plan, findings: &[Finding]) -> Vec<FollowedAdvice> {
    let all = findings.iter().flat_map(|finding| &finding.tries);
    all.filter_map(|advice| follow_one(plan, advice)).collect()
}

fn follow_one(plan: &Plan, advice: &Advice) -> Option<FollowedAdvice> {
    let expected = advice.expected?;
    let changed = advice.change.as_ref()?.applied(plan, 0)?;
    let gain = |run: u64| {
        let seed = plan.seed + OTHER_SEEDS + run;
        let of = |plan: &Plan| Some(seconds(&measured(plan, seed).ok()?, expected.metric));
        Some(of(plan)? / of(&changed)?)
    };
    let mut gains: Vec<f64> = (0..RUNS).filter_map(gain).collect();
    gains.sort_unstable_by(f64::total_cmp);
    Some(FollowedAdvice {
        what: advice.what.clone(),
        said: expected.times_as_fast[0],
        came: *gains.get(gains.len() / 2)?,
    })
}

/// Seconds by what an advice compares.
fn seconds(record: &RunRecord, gauge: Gauge) -> f64 {
    let each = |times: &stackline_core::run_record::Histogram| {
        times.sum as f64 / 1e9 / times.n().max(1) as f64
    };
    match gauge {
        Gauge::Throughput | Gauge::Elapsed => seconds_for_all(record),
        Gauge::Response => each(&record.calls),
        Gauge::Connect => each(&record.connects),
        Gauge::Calls => record.elapsed_ns as f64 / 1e9 / record.calls.n().max(1) as f64,
    }
}
