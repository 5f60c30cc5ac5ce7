//! Judges what a specification expects of its results (`expect p99 < 20 ms`): met, missed, or undecided.
//!
//! A figure with a 95 % interval is undecided while the bound lies inside the interval. A figure without one (a single run, a
//! least or largest value, a share of losses) is compared as it is, and the result says so.

use crate::findings::Finding;
use crate::statistics::{SampleStatistics, to_f64, value_at_rank, values_needed};
use crate::summary::{RunMetric, Summary};
use serde::Serialize;
use stackline_core::expectation::{
    BoundUnit, Expectation, ExpectedCondition, ExpectedFigure, FigureBound,
};
use stackline_core::plan::{Plan, World};
use stackline_core::run_record::Histogram;

/// What is known of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectationVerdict {
    /// It holds.
    Met,
    /// It does not hold.
    Missed,
    /// The results do not say.
    Undecided,
}

/// An expectation with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedExpectation {
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// The measurement as written; of several parts, the part.
    pub of: String,
    /// The expectation as written.
    pub text: String,
    /// The line of the specification that it stands on, counted from 1.
    pub line: usize,
    /// The unit of the figure; absent for findings.
    pub unit: Option<BoundUnit>,
    /// What was measured, in the base unit of the figure; absent for findings, and where it is not known.
    pub value: Option<f64>,
    /// The 95 % interval; its upper end is infinite where too few values lie above it.
    pub ci95: Option<(f64, f64)>,
    /// The verdict.
    pub verdict: ExpectationVerdict,
    /// Why it is undecided, or what the verdict is based on; absent where value and interval say it.
    pub reason: Option<String>,
}

/// What was found of a run.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosedFindings<'f> {
    /// The findings.
    pub findings: &'f [Finding],
    /// Whether the run has events, so that what was not found is not there.
    pub has_events: bool,
}

/// A finding that is less sure than this neither meets nor misses an expectation.
pub(crate) const SURE: f64 = 0.5;
/// The share of a bound that rounding of times in ns to seconds may add or take.
const ROUNDING: f64 = 1e-12;

/// Whether a plan expects or excludes findings, so that [`judge_expectations`] needs them.
#[must_use]
pub fn expects_findings(plan: &Plan) -> bool {
    let all = plan.measurements.iter().flat_map(|one| &one.expectations);
    all.into_iter()
        .any(|one| !matches!(one.condition, ExpectedCondition::Figure(..)))
}

/// Judges all expectations of a plan, in its order. `found` may be absent where [`expects_findings`] is false.
#[must_use]
pub fn judge_expectations(
    plan: &Plan,
    summaries: &[Summary],
    found: Option<DiagnosedFindings<'_>>,
) -> Vec<JudgedExpectation> {
    let of_measurement = |(index, expectation): (usize, &Expectation)| {
        let mine = |summary: &&Summary| summary.measurement == index;
        let is_of_part = |summary: &&Summary| summary.part_index == expectation.part;
        let summary = summaries.iter().filter(mine).find(is_of_part);
        let measurement = &plan.measurements[index];
        let part = expectation.part.and_then(|at| measurement.parts.get(at));
        let of = match part {
            Some(part) if measurement.parts.len() > 1 => &part.text,
            _ => &measurement.text,
        };
        let mut judged = JudgedExpectation {
            measurement: index,
            of: of.clone(),
            text: expectation.text.clone(),
            line: expectation.line,
            unit: None,
            value: None,
            ci95: None,
            verdict: ExpectationVerdict::Undecided,
            reason: None,
        };
        let is_made = summaries
            .iter()
            .filter(mine)
            .any(|summary| summary.runs > 0);
        match &expectation.condition {
            _ if !is_made => judged.reason = Some("no run was completed".to_owned()),
            ExpectedCondition::Figure(figure, bound) => {
                judge_figure(&mut judged, summary, *figure, *bound);
            }
            ExpectedCondition::Finding(kind) => judge_finding(&mut judged, kind, true, found),
            ExpectedCondition::NoFinding(kind) => judge_finding(&mut judged, kind, false, found),
        }
        judged
    };
    let each = plan.measurements.iter().enumerate();
    each.flat_map(|(index, one)| one.expectations.iter().map(move |e| (index, e)))
        .map(of_measurement)
        .collect()
}

/// A figure as it was measured.
pub(crate) struct MeasuredFigure {
    pub(crate) value: f64,
    /// Absent for a single figure.
    ci95: Option<(f64, f64)>,
}

fn judge_figure(
    judged: &mut JudgedExpectation,
    summary: Option<&Summary>,
    figure: ExpectedFigure,
    bound: FigureBound,
) {
    judged.unit = Some(figure.unit());
    let measured = match summary {
        Some(summary) => measured(summary, figure),
        None => Err("this part has no result of its own".to_owned()),
    };
    let measured = match measured {
        Ok(measured) => measured,
        Err(reason) => {
            judged.reason = Some(reason);
            return;
        }
    };
    let is_exact = summary.is_some_and(is_deterministic);
    let (low, high) = match measured.ci95 {
        Some(interval) if !is_exact => interval,
        _ => (measured.value, measured.value),
    };
    judged.value = Some(measured.value);
    judged.ci95 = measured.ci95.filter(|_| !is_exact);
    judged.verdict = within(bound, low, high);
    judged.reason = match (is_exact, judged.ci95, judged.verdict) {
        (true, ..) => Some("deterministic: all runs are equal".to_owned()),
        (_, None, _) => Some("a single figure, without an interval".to_owned()),
        (_, Some((_, high)), ExpectationVerdict::Undecided) if high.is_infinite() => {
            Some("too few values lie above it; more runs or calls would decide".to_owned())
        }
        (_, Some(_), ExpectationVerdict::Undecided) => {
            Some("the bound lies inside the 95 % interval; more runs would decide".to_owned())
        }
        _ => None,
    };
}

/// A bound that figures are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredBound(pub(crate) FigureBound);

impl MeasuredBound {
    /// The verdict on a figure that lies from `low` to `high`.
    pub(crate) fn verdict(self, low: f64, high: f64) -> ExpectationVerdict {
        within(self.0, low, high)
    }
}

/// A figure of a summary in its base unit; else why it is absent.
pub(crate) fn figure_of(summary: &Summary, figure: ExpectedFigure) -> Result<f64, String> {
    measured(summary, figure).map(|measured| measured.value)
}

/// The verdict on a figure that lies from `low` to `high`.
pub(crate) fn within(bound: FigureBound, low: f64, high: f64) -> ExpectationVerdict {
    // A figure is equal to its bound if only rounding differs.
    let is_below = |value: f64, bound: f64| value < bound - bound.abs() * ROUNDING;
    let is_above = |value: f64, bound: f64| value > bound + bound.abs() * ROUNDING;
    let (is_met, is_missed) = match bound {
        FigureBound::Below(bound) => (is_below(high, bound), !is_below(low, bound)),
        FigureBound::AtMost(bound) => (!is_above(high, bound), is_above(low, bound)),
        FigureBound::Above(bound) => (is_above(low, bound), !is_above(high, bound)),
        FigureBound::AtLeast(bound) => (!is_below(low, bound), is_below(high, bound)),
        FigureBound::Within(least, most) => (
            !is_below(low, least) && !is_above(high, most),
            is_below(high, least) || is_above(low, most),
        ),
    };
    match (is_met, is_missed) {
        (true, _) => ExpectationVerdict::Met,
        (_, true) => ExpectationVerdict::Missed,
        _ => ExpectationVerdict::Undecided,
    }
}

/// Whether all runs are equal, as those of a simulation without chance are.
fn is_deterministic(summary: &Summary) -> bool {
    let values = summary.main.map(|metric| summary.values(metric));
    let values = values.unwrap_or_default();
    summary.world == World::Simulated
        && values.len() > 1
        && values
            .iter()
            .all(|value| value.to_bits() == values[0].to_bits())
}

/// A figure of a summary; else why it is absent.
pub(crate) fn measured(
    summary: &Summary,
    figure: ExpectedFigure,
) -> Result<MeasuredFigure, String> {
    use ExpectedFigure as Figure;
    let single = |value: Option<f64>| value.map(|value| MeasuredFigure { value, ci95: None });
    // One run has an interval of its calls only, which are not independent.
    let mean = |statistics: Option<SampleStatistics>| {
        statistics.map(|s| MeasuredFigure {
            value: s.mean,
            ci95: s.ci95.filter(|_| summary.runs > 1),
        })
    };
    let times = summary.response_s.or(summary.connect_s);
    let count = |value: Option<u64>| single(value.map(to_f64));
    let cost = |metric, factor: f64| {
        let values: Vec<f64> = summary.values(metric).iter().map(|v| v * factor).collect();
        mean(SampleStatistics::from_values(&values))
    };
    let found = match figure {
        Figure::Percentile(percent) => return percentile(summary, percent),
        Figure::Mean => mean(times),
        Figure::Min => single(times.map(|times| times.min)),
        Figure::Max => single(times.map(|times| times.max)),
        Figure::Throughput => mean(summary.throughput_bit_s),
        Figure::Rate => mean(summary.rate_per_s),
        Figure::Connect => mean(summary.connect_s),
        Figure::Transaction => mean(summary.transaction_s),
        Figure::Transactions => mean(summary.transactions_per_s),
        Figure::Elapsed => mean(summary.elapsed_s),
        Figure::Loss => single(summary.lost_share),
        Figure::Lost => count(summary.lost),
        Figure::Duplicated => count(summary.duplicated),
        Figure::Reordered => count(summary.reordered),
        Figure::Fairness => mean(summary.fairness),
        Figure::Lateness => mean(summary.lateness_s),
        Figure::CpuPerGb => cost(RunMetric::CpuPerGb, 1.0),
        Figure::CpuPerCall => {
            cost(RunMetric::CpuPerCall, 1e-6).or_else(|| cost(RunMetric::CpuPerConnection, 1e-6))
        }
    };
    found.ok_or_else(|| {
        let known = summary.absent.get(&figure.name());
        known.map_or_else(|| "it was not measured".to_owned(), Clone::clone)
    })
}

/// A percentile of the calls of all runs, else of the connects, with its interval by order statistics (as if calls were
/// independent of each other).
fn percentile(summary: &Summary, percent: f64) -> Result<MeasuredFigure, String> {
    let (metric, times) = match summary.response_s {
        Some(_) => (RunMetric::Response, &summary.response_ns),
        None => (RunMetric::Connect, &summary.connect_ns),
    };
    let n = times.n();
    let value = summary.percentile(metric, percent).ok_or_else(|| {
        let needed = values_needed(percent);
        format!("{needed} values are needed, but only {n} were measured")
    })?;
    let ci95 = Some(interval_by_rank(times, n, percent / 100.0));
    Ok(MeasuredFigure { value, ci95 })
}

/// The 95 % interval of a percentile of `n` times in ns, in seconds: the values at the ranks `n p` plus and minus 1.96 standard
/// deviations of the binomial distribution (Conover, "Practical Nonparametric Statistics", section 3.2).
fn interval_by_rank(times: &Histogram, n: u64, p: f64) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    let (center, total) = (to_f64(n) * p, to_f64(n));
    let half = Z * (total * p * (1.0 - p)).sqrt();
    let at = |rank: f64| to_f64(value_at_rank(times, n, rank / total)) * 1e-9;
    let low = (center - half).floor().max(1.0);
    let high = (center + half).ceil() + 1.0;
    let upper = if high > total {
        f64::INFINITY
    } else {
        at(high)
    };
    (at(low), upper)
}

fn judge_finding(
    judged: &mut JudgedExpectation,
    kind: &str,
    is_expected: bool,
    found: Option<DiagnosedFindings<'_>>,
) {
    let Some(found) = found else {
        judged.reason = Some("the run was not diagnosed".to_owned());
        return;
    };
    let is_mine = |finding: &&Finding| {
        let place = finding
            .measurement
            .is_none_or(|index| index == judged.measurement);
        finding.kind == kind && place
    };
    let all = found.findings.iter().filter(is_mine);
    let surest = all.max_by(|a, b| a.confidence.total_cmp(&b.confidence));
    let is_found = match surest {
        Some(finding) if finding.confidence >= SURE => {
            judged.reason = Some(finding.sentence.clone());
            true
        }
        Some(finding) => {
            let sure = (finding.confidence * 100.0).round();
            judged.reason = Some(format!("only {sure:.0} % sure: {}", finding.sentence));
            return;
        }
        None if found.has_events => false,
        None => {
            let reason =
                "not found in the records alone: `run --trace` keeps the events that would show it";
            judged.reason = Some(reason.to_owned());
            return;
        }
    };
    judged.verdict = if is_found == is_expected {
        ExpectationVerdict::Met
    } else {
        ExpectationVerdict::Missed
    };
    if !is_found {
        judged.reason = Some("not found".to_owned());
    }
}
