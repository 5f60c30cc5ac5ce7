//! Judges a comparison of two runs against a limit, for use in CI: it passes if nothing is shown to be worse by more than the limit.

use crate::compare::{ComparisonVerdict, MeasurementComparison, MetricComparison};
use crate::compare_segments::SegmentComparison;
use serde::Serialize;

/// The result of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// Nothing is shown to be worse by more than the limit.
    Passed,
    /// Something is worse by more than the limit, and its 95 % interval excludes chance.
    Worse,
    /// Something could not be compared.
    Undecided,
}

/// One figure and by how much it is worse: 0.05 is 5 %.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorseBy {
    /// `response time of rr 32*1000 over tcp`, or the name of a request or of the whole way.
    pub name: String,
    /// By what share it is worse.
    pub by: f64,
}

/// What a gate found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateOutcome {
    /// The result.
    pub verdict: GateVerdict,
    /// By what share something may be worse: 0.05 is 5 %.
    pub limit: f64,
    /// The figure that is shown to be worst, if any is shown to be worse at all, within the limit or not.
    pub worst: Option<WorseBy>,
    /// The figure whose 95 % interval reaches furthest beyond the limit, whether that is shown or not.
    pub possible: Option<WorseBy>,
    /// Why it is undecided, each reason once.
    pub reasons: Vec<String>,
}

/// Judges comparisons of measurements and, for runs without measurements, `decisive`: the comparisons of traces that count, which
/// are the requests by name or else the whole way of units. `limit` is a share: 0.05 is 5 %.
#[must_use]
pub fn judge_gate(
    comparisons: &[MeasurementComparison],
    decisive: &[SegmentComparison],
    limit: f64,
) -> GateOutcome {
    let metrics = || {
        let named = |c: &MeasurementComparison| c.b.as_ref().map(|b| b.part.clone());
        comparisons.iter().flat_map(move |c| {
            let part = named(c).unwrap_or_default();
            c.metrics.iter().map(move |m| (part.clone(), m))
        })
    };
    let shown = metrics()
        .filter_map(|(part, m)| Some(worse(&part, m, m.worse_by()?)))
        .chain(decisive.iter().filter_map(shown_slower));
    let may_be = metrics()
        .filter_map(|(part, m)| Some(worse(&part, m, m.possibly_worse_by()?)))
        .chain(decisive.iter().filter_map(possibly_slower));
    let worst = most(shown);
    let possible = most(may_be).filter(|one| one.by > limit);
    let reasons = undecided(comparisons, decisive);
    let verdict = match &worst {
        Some(worst) if worst.by > limit => GateVerdict::Worse,
        _ if reasons.is_empty() => GateVerdict::Passed,
        _ => GateVerdict::Undecided,
    };
    GateOutcome {
        verdict,
        limit,
        worst,
        possible,
        reasons,
    }
}

fn worse(part: &str, metric: &MetricComparison, by: f64) -> WorseBy {
    let name = format!("{} of `{part}`", metric.metric.name());
    WorseBy { name, by }
}

fn shown_slower(one: &SegmentComparison) -> Option<WorseBy> {
    let by = one
        .ratio
        .filter(|_| one.verdict == ComparisonVerdict::Slower)?
        - 1.0;
    let name = format!("`{}`", one.name);
    Some(WorseBy { name, by })
}

fn possibly_slower(one: &SegmentComparison) -> Option<WorseBy> {
    let by = one.ci95?.1 - 1.0;
    let name = format!("`{}`", one.name);
    Some(WorseBy { name, by })
}

fn most(all: impl Iterator<Item = WorseBy>) -> Option<WorseBy> {
    all.max_by(|a, b| a.by.total_cmp(&b.by))
}

/// Reasons why the gate cannot decide: figures without an interval, and measurements that only one run has.
fn undecided(comparisons: &[MeasurementComparison], decisive: &[SegmentComparison]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for comparison in comparisons {
        if comparison.metrics.is_empty() {
            let label = comparison.a.as_ref().or(comparison.b.as_ref());
            let text = label.map_or("", |label| label.text.as_str());
            reasons.push(format!("`{text}`: the runs have no measurement in common"));
        }
        // A metric that is zero in both has no ratio, but it is not worse.
        let open = comparison.metrics.iter().filter(|m| {
            m.verdict == ComparisonVerdict::CannotTell && (m.a.mean, m.b.mean) != (0.0, 0.0)
        });
        for metric in open {
            let reason = metric.reason.as_deref().unwrap_or("too few runs to decide");
            let reason = format!("{}: {reason}", metric.metric.name());
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    let is_open = |one: &SegmentComparison| one.verdict == ComparisonVerdict::CannotTell;
    let is_undecided = !decisive.is_empty() && decisive.iter().all(is_open);
    reasons.extend(is_undecided.then(|| "fewer than six units, or negative times".to_owned()));
    reasons
}
