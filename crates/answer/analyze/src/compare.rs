//! Compares the summaries of two runs, metric by metric: the ratio of their means with its 95 % interval, and a verdict that claims
//! no more than the interval allows.

use crate::core_sharing::unlike_placement;
use crate::log_ratio::LogRatio;
use crate::statistics::{SampleStatistics, t_quantile};
use crate::summary::{RunMetric, Summary};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a comparison of two sets of runs claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The second is faster, and the interval does not include 1.
    Faster,
    /// The second is slower, and the interval does not include 1.
    Slower,
    /// The second costs less, and the interval does not include 1.
    Less,
    /// The second costs more, and the interval does not include 1.
    More,
    /// The interval includes 1.
    NoDifferenceSeen,
    /// There are too few runs for an interval.
    CannotTell,
}

impl ComparisonVerdict {
    /// Whether it claims a difference.
    #[must_use]
    pub const fn claims(self) -> bool {
        !matches!(self, Self::NoDifferenceSeen | Self::CannotTell)
    }
}

/// By what two summaries were paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// Same measurement, part and stack.
    Same,
    /// Not paired by [`Pairing::Same`]: the same application type and part index; also stacks compared within one run.
    Position,
    /// Only one of the two runs has it.
    Alone,
}

/// What a summary is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    /// The measurement as written.
    pub text: String,
    /// The part as written; `all` for all parts together.
    pub part: String,
    /// The stack with its options.
    pub stack: String,
}

impl MetricComparison {
    /// By what share the second is worse (slower or more costly), if the verdict claims that: 0.05 is 5 %.
    #[must_use]
    pub fn worse_by(&self) -> Option<f64> {
        match self.verdict {
            ComparisonVerdict::Slower if self.metric.more_is_faster() => Some(1.0 - self.ratio),
            ComparisonVerdict::Slower | ComparisonVerdict::More => Some(self.ratio - 1.0),
            _ => None,
        }
    }

    /// By what share the second may be worse: the worse end of the 95 % interval. Negative if even that end is better.
    #[must_use]
    pub fn possibly_worse_by(&self) -> Option<f64> {
        let (low, high) = self.ci95?;
        Some(if self.metric.more_is_faster() {
            1.0 - low
        } else {
            high - 1.0
        })
    }
}

impl Label {
    pub(crate) fn from_summary(summary: &Summary) -> Self {
        Self {
            text: summary.text.clone(),
            part: summary.part.clone(),
            stack: summary.stack.clone(),
        }
    }
}

/// One metric in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricComparison {
    /// The metric.
    pub metric: RunMetric,
    /// Statistics over the counted runs of the first: in bit/s, seconds, CPU seconds per GB, or CPU microseconds per call or connection.
    pub a: SampleStatistics,
    /// Statistics over the counted runs of the second.
    pub b: SampleStatistics,
    /// Mean of the second over mean of the first.
    pub ratio: f64,
    /// The 95 % interval of the ratio.
    pub ci95: Option<(f64, f64)>,
    /// What the interval allows to claim.
    pub verdict: ComparisonVerdict,
    /// Why there is no interval; absent if there is one.
    pub reason: Option<String>,
}

/// One measurement (or one part of it) in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasurementComparison {
    /// Its label in the first run.
    pub a: Option<Label>,
    /// Its label in the second run.
    pub b: Option<Label>,
    /// By what the two were paired.
    pub pairing: Pairing,
    /// The metrics that both have.
    pub metrics: Vec<MetricComparison>,
    /// A sentence on how the ends shared cores, if the two differ in that.
    pub unlike_placement: Option<String>,
    /// Sentences on other differences, certain or possible, that the intervals do not cover.
    pub caveats: Vec<String>,
}

/// Two summaries that belong together, or one alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchedSummaries<'s> {
    /// That of the first run.
    pub(crate) a: Option<&'s Summary>,
    /// That of the second run.
    pub(crate) b: Option<&'s Summary>,
    /// By what they were paired.
    pub(crate) pairing: Pairing,
}

impl MatchedSummaries<'_> {
    /// Their comparison by these metrics.
    pub(crate) fn compared(&self, metrics: &[RunMetric]) -> MeasurementComparison {
        match (self.a, self.b) {
            (Some(a), Some(b)) => pair(a, b, self.pairing, metrics),
            (a, b) => alone(a, b),
        }
    }
}

/// Pairs two sets of summaries. Those of the same measurement, part and stack are paired first; of the others, those with the same
/// application type and part index, in their order; the rest stand alone. Background load is left out.
pub(crate) fn match_summaries<'s>(a: &'s [Summary], b: &'s [Summary]) -> Vec<MatchedSummaries<'s>> {
    let measured = |s: &&Summary| !s.background;
    let first: Vec<&Summary> = a.iter().filter(measured).collect();
    let mut second: Vec<Option<&Summary>> = b.iter().filter(measured).map(Some).collect();
    let same: Vec<Option<&Summary>> = first.iter().map(|a| take(&mut second, a)).collect();
    let mut left: Vec<&Summary> = second.into_iter().flatten().collect();
    let mut out: Vec<MatchedSummaries<'s>> = Vec::new();
    for (a, same) in first.into_iter().zip(same) {
        let alike = |b: &&Summary| b.application == a.application && b.part_index == a.part_index;
        let (b, pairing) = match (same, left.iter().position(alike)) {
            (Some(b), _) => (Some(b), Pairing::Same),
            (None, Some(at)) => (Some(left.remove(at)), Pairing::Position),
            (None, None) => (None, Pairing::Alone),
        };
        out.push(MatchedSummaries {
            a: Some(a),
            b,
            pairing,
        });
    }
    out.extend(left.into_iter().map(|b| MatchedSummaries {
        a: None,
        b: Some(b),
        pairing: Pairing::Alone,
    }));
    out
}

/// Compares two sets of summaries. Those of the same measurement, part and stack are paired first; of the others, those with the
/// same application type and part index, in their order; the rest are listed alone. Background load is not compared.
#[must_use]
pub fn compare(a: &[Summary], b: &[Summary]) -> Vec<MeasurementComparison> {
    compare_by(a, b, &RunMetric::ALL)
}

/// The same by these metrics alone.
#[must_use]
pub fn compare_by(
    a: &[Summary],
    b: &[Summary],
    metrics: &[RunMetric],
) -> Vec<MeasurementComparison> {
    let matched = match_summaries(a, b);
    matched.iter().map(|one| one.compared(metrics)).collect()
}

/// Compares the stacks within one set of summaries: of the measurements that differ only in the stack, each with the first.
#[must_use]
pub fn compare_stacks(summaries: &[Summary]) -> Vec<MeasurementComparison> {
    let mut firsts: BTreeMap<(String, Option<usize>), &Summary> = BTreeMap::new();
    let measured = summaries.iter().filter(|summary| !summary.background);
    let others = measured.filter_map(|summary| {
        let first = *firsts.entry(apart_from_stack(summary)).or_insert(summary);
        (first.stack != summary.stack)
            .then(|| pair(first, summary, Pairing::Position, &RunMetric::ALL))
    });
    others.collect()
}

/// Groups the measured summaries (without background load) that differ only in the stack. One without such others is a group of
/// one.
#[must_use]
pub fn rows_by_measurement(summaries: &[Summary]) -> Vec<Vec<&Summary>> {
    let mut rows: BTreeMap<(String, Option<usize>), Vec<&Summary>> = BTreeMap::new();
    for summary in summaries.iter().filter(|summary| !summary.background) {
        rows.entry(apart_from_stack(summary))
            .or_default()
            .push(summary);
    }
    rows.into_values().collect()
}

/// Identifies a measurement's part without its stack.
fn apart_from_stack(summary: &Summary) -> (String, Option<usize>) {
    (summary.text_without_stack(), summary.part_index)
}

/// Takes the first summary with the same label out of `from`.
fn take<'s>(from: &mut [Option<&'s Summary>], like: &Summary) -> Option<&'s Summary> {
    let same = |s: &Summary| s.text == like.text && s.part == like.part && s.stack == like.stack;
    from.iter_mut().find(|slot| slot.is_some_and(same))?.take()
}

fn alone(a: Option<&Summary>, b: Option<&Summary>) -> MeasurementComparison {
    MeasurementComparison {
        a: a.map(Label::from_summary),
        b: b.map(Label::from_summary),
        pairing: Pairing::Alone,
        metrics: vec![],
        unlike_placement: None,
        caveats: vec![],
    }
}

fn pair(
    a: &Summary,
    b: &Summary,
    pairing: Pairing,
    metrics: &[RunMetric],
) -> MeasurementComparison {
    let metric = |metric: &RunMetric| compare_values(*metric, a.values(*metric), b.values(*metric));
    let metrics = metrics.iter().filter_map(metric).collect();
    MeasurementComparison {
        a: Some(Label::from_summary(a)),
        b: Some(Label::from_summary(b)),
        pairing,
        metrics,
        unlike_placement: unlike_placement(a.core_sharing, b.core_sharing),
        caveats: caveats(a, b),
    }
}

/// Differences between the two sets of runs: the interval covers only what varied from run to run within each set.
fn caveats(a: &Summary, b: &Summary) -> Vec<String> {
    let mut out: Vec<String> = overloaded("first", a)
        .into_iter()
        .chain(overloaded("second", b))
        .collect();
    let placements =
        [&a.initiator, &a.responder, &b.initiator, &b.responder].map(|side| side.placement);
    if placements
        .iter()
        .flatten()
        .any(|placement| !placement.pinned)
    {
        out.push("threads were not pinned, so their cores may differ".to_owned());
    }
    out.extend(different(
        "initiator",
        &a.initiator.settings,
        &b.initiator.settings,
    ));
    out.extend(different(
        "responder",
        &a.responder.settings,
        &b.responder.settings,
    ));
    out
}

/// A caveat if the emulator was overloaded in some runs: these measure the machine, whatever the interval says.
fn overloaded(which: &str, summary: &Summary) -> Option<String> {
    let (n, runs) = (summary.overloaded(), summary.runs);
    let text = format!(
        "in the {which} set of runs, the emulator was overloaded in {n} of {runs}, so those figures reflect the machine, not the network"
    );
    (n > 0).then_some(text)
}

/// Sentences on settings that both have and that differ. Sizes in bytes are left out: the kernel may tune them.
fn different(
    side: &str,
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
) -> Vec<String> {
    let both = a
        .iter()
        .filter_map(|(name, before)| Some((name, before, b.get(name)?)));
    let changed = both.filter(|(_, before, after)| before != after && !after.ends_with(" B"));
    changed
        .map(|(name, before, after)| format!("{side}: {name} {before} -> {after}"))
        .collect()
}

/// Compares a metric, given one value per run of each; `None` if one of them has no runs.
fn compare_values(metric: RunMetric, a: &[f64], b: &[f64]) -> Option<MetricComparison> {
    let (a, b) = (
        SampleStatistics::from_values(a)?,
        SampleStatistics::from_values(b)?,
    );
    let ratio = b.mean / a.mean;
    let (ci95, reason) = match interval(&a, &b) {
        Ok(interval) => (Some(interval), None),
        Err(reason) => (None, Some(reason)),
    };
    let verdict = ci95.map_or(ComparisonVerdict::CannotTell, |ci95| {
        judge(metric, ci95.0, ci95.1)
    });
    Some(MetricComparison {
        metric,
        a,
        b,
        ratio,
        ci95,
        verdict,
        reason,
    })
}

/// The 95 % interval of the ratio of the means: Welch's interval of the difference of their logarithms. Else the reason why there is
/// none.
fn interval(a: &SampleStatistics, b: &SampleStatistics) -> Result<(f64, f64), String> {
    let ratio = LogRatio::new(a, b)?;
    let half = match ratio.error > 0.0 {
        true => t_quantile(ratio.welch_freedom()) * ratio.error,
        false => 0.0,
    };
    Ok(((ratio.log - half).exp(), (ratio.log + half).exp()))
}

/// The verdict for an interval. Rounding errors are no difference: simulated runs repeat their figures exactly, without spread.
fn judge(metric: RunMetric, low: f64, high: f64) -> ComparisonVerdict {
    const ROUNDING: f64 = 1e-9;
    let (more, less) = (low > 1.0 + ROUNDING, high < 1.0 - ROUNDING);
    match (more, less) {
        (false, false) => ComparisonVerdict::NoDifferenceSeen,
        (true, _) if metric.is_cost() => ComparisonVerdict::More,
        _ if metric.is_cost() => ComparisonVerdict::Less,
        (more, _) if more == metric.more_is_faster() => ComparisonVerdict::Faster,
        _ => ComparisonVerdict::Slower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RepeatedWork;
    use proptest::prelude::*;

    fn judged(metric: RunMetric, a: &[f64], b: &[f64]) -> MetricComparison {
        compare_values(metric, a, b).unwrap()
    }

    #[test]
    fn clear_differences_have_a_direction() {
        let (slow, fast) = ([10.0, 10.1, 9.9], [20.0, 20.2, 19.8]);
        assert_eq!(
            judged(RunMetric::Throughput, &slow, &fast).verdict,
            ComparisonVerdict::Faster
        );
        assert_eq!(
            judged(RunMetric::Throughput, &fast, &slow).verdict,
            ComparisonVerdict::Slower
        );
        assert_eq!(
            judged(RunMetric::Response, &slow, &fast).verdict,
            ComparisonVerdict::Slower
        );
        assert_eq!(
            judged(RunMetric::Connect, &fast, &slow).verdict,
            ComparisonVerdict::Faster
        );
        let c = judged(RunMetric::Throughput, &slow, &fast);
        assert!((c.ratio - 2.0).abs() < 1e-12);
        // By hand: sqrt(0.01^2/3 + 0.01^2/3) = 0.008165, 4 degrees of freedom, t = 2.776.
        let (low, high) = c.ci95.unwrap();
        assert!(
            (low - 2.0 * (-0.022_67_f64).exp()).abs() < 1e-4
                && (high - 2.0 * 0.022_67_f64.exp()).abs() < 1e-4
        );
    }

    #[test]
    fn how_much_worse_is_said_only_where_it_is_claimed() {
        let (slow, fast) = ([10.0, 10.1, 9.9], [20.0, 20.2, 19.8]);
        let worse = |metric, a: &[f64], b: &[f64]| judged(metric, a, b).worse_by();
        assert!((worse(RunMetric::Throughput, &fast, &slow).unwrap() - 0.5).abs() < 1e-9);
        assert!((worse(RunMetric::Response, &slow, &fast).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(worse(RunMetric::Throughput, &slow, &fast), None);
        assert_eq!(worse(RunMetric::Throughput, &fast, &fast), None);
        assert_eq!(worse(RunMetric::Throughput, &[20.0], &[10.0]), None);
    }

    #[test]
    fn costs_are_less_or_more() {
        let (cheap, dear) = ([0.10, 0.11, 0.10], [0.20, 0.21, 0.20]);
        for metric in [
            RunMetric::CpuPerGb,
            RunMetric::CpuPerCall,
            RunMetric::CpuPerConnection,
        ] {
            assert_eq!(
                judged(metric, &cheap, &dear).verdict,
                ComparisonVerdict::More
            );
            assert_eq!(
                judged(metric, &dear, &cheap).verdict,
                ComparisonVerdict::Less
            );
            assert_eq!(
                judged(metric, &cheap, &cheap).verdict,
                ComparisonVerdict::NoDifferenceSeen
            );
        }
    }

    #[test]
    fn costs_are_compared_of_the_same_work_only() {
        let costing = |rate_of| {
            let cpu_us_per_call = vec![1.0, 1.1];
            let run_values = crate::RunValues {
                cpu_us_per_call,
                ..crate::RunValues::default()
            };
            Summary {
                rate_of: Some(rate_of),
                run_values,
                ..summary("x", "tcp")
            }
        };
        let metrics = |a, b| -> Vec<RunMetric> {
            compare(&[costing(a)], &[costing(b)])
                .remove(0)
                .metrics
                .iter()
                .map(|m| m.metric)
                .collect()
        };
        assert_eq!(
            metrics(RepeatedWork::Call, RepeatedWork::Call),
            [RunMetric::CpuPerCall]
        );
        assert_eq!(
            metrics(RepeatedWork::Connection, RepeatedWork::Connection),
            [RunMetric::CpuPerConnection]
        );
        assert_eq!(metrics(RepeatedWork::Call, RepeatedWork::Connection), []);
    }

    #[test]
    fn noise_is_no_difference() {
        assert_eq!(
            judged(RunMetric::Throughput, &[10.0, 12.0], &[11.0, 10.5]).verdict,
            ComparisonVerdict::NoDifferenceSeen
        );
        assert_eq!(
            judged(RunMetric::Throughput, &[10.0, 10.0], &[10.0, 10.0]).verdict,
            ComparisonVerdict::NoDifferenceSeen
        );
    }

    #[test]
    fn one_run_gives_no_verdict() {
        let c = judged(RunMetric::Response, &[1.0], &[2.0, 2.1]);
        assert_eq!((c.verdict, c.ci95), (ComparisonVerdict::CannotTell, None));
        assert_eq!(
            c.reason.unwrap(),
            "1 and 2 counted runs, but each side needs two"
        );
        assert_eq!(compare_values(RunMetric::Response, &[], &[1.0]), None);
    }

    fn summary(text: &str, stack: &str) -> Summary {
        Summary {
            text: text.into(),
            part: text.into(),
            stack: stack.into(),
            ..Summary::default()
        }
    }

    #[test]
    fn pairs_by_label_then_by_position() {
        let a = [
            summary("x", "tcp"),
            summary("y", "tcp"),
            summary("z", "tcp"),
        ];
        let b = [summary("y", "tcp"), summary("x", "quic")];
        let pairs: Vec<Pairing> = compare(&a, &b).iter().map(|c| c.pairing).collect();
        assert_eq!(pairs, [Pairing::Position, Pairing::Same, Pairing::Alone]);
        assert_eq!(compare(&[], &b).len(), 2);
        let other = Summary {
            application: "bulk_get".into(),
            ..summary("x", "quic")
        };
        assert_eq!(
            compare(&a[..1], &[other]).len(),
            2,
            "different applications are not compared"
        );
    }

    #[test]
    fn other_differences_are_caveats() {
        let with = |congestion: &str, pinned| {
            let mut s = summary("x", "tcp");
            let settings = [
                ("congestion", congestion),
                ("receive_buffer", if pinned { "1 B" } else { "2 B" }),
            ];
            s.initiator.settings = settings
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
            s.initiator.placement = Some(crate::ThreadPlacement {
                start: 0,
                end: 0,
                pinned,
            });
            s
        };
        let caveats = |a, b| compare(&[a], &[b]).remove(0).caveats;
        assert!(caveats(with("bbr", true), with("bbr", true)).is_empty());
        let found = caveats(with("cubic", true), with("bbr", false));
        assert_eq!(
            found,
            [
                "threads were not pinned, so their cores may differ",
                "initiator: congestion cubic -> bbr"
            ]
        );
    }

    #[test]
    fn unlike_placement_is_said_whatever_the_verdict() {
        use crate::CoreSharing::{self, Changing, CoreEach, OneCore};
        let with = |core_sharing: Option<CoreSharing>| Summary {
            core_sharing,
            ..summary("x", "tcp")
        };
        let unlike = |a, b| compare(&[with(a)], &[with(b)]).remove(0).unlike_placement;
        assert_eq!(unlike(Some(OneCore), Some(OneCore)), None);
        assert_eq!(unlike(Some(CoreEach), None), None, "between machines");
        assert_eq!(
            unlike(Some(OneCore), Some(CoreEach)).unwrap(),
            "different placement: A had both ends on one core, B one core for each end, which affects times as much as the choice of stack"
        );
        assert!(unlike(Some(Changing), Some(Changing)).is_some());
    }

    #[test]
    fn overload_of_either_is_a_caveat() {
        let with = |overloaded| {
            let emulation = Some(crate::EmulationSummary {
                overloaded,
                ..Default::default()
            });
            let network = Some(crate::NetworkSummary {
                emulation,
                ..Default::default()
            });
            Summary {
                network,
                runs: 3,
                ..summary("x", "tcp")
            }
        };
        let caveats = |a, b| compare(&[a], &[b]).remove(0).caveats;
        assert!(caveats(with(0), summary("x", "tcp")).is_empty());
        let expected = "in the second set of runs, the emulator was overloaded in 2 of 3, so those figures reflect the machine, not the network";
        assert_eq!(caveats(with(0), with(2)), [expected]);
    }

    proptest! {
        #[test]
        fn never_a_difference_when_the_interval_includes_one(
            a in proptest::collection::vec(1.0..100.0_f64, 1..8),
            b in proptest::collection::vec(1.0..100.0_f64, 1..8),
        ) {
            let c = judged(RunMetric::Throughput, &a, &b);
            let includes = c.ci95.is_none_or(|(low, high)| low <= 1.0 && 1.0 <= high);
            prop_assert!(!(includes && c.verdict.claims()), "{:?}", c);
            prop_assert!(c.ci95.is_none_or(|(low, high)| low <= c.ratio * 1.000_001 && c.ratio <= high * 1.000_001));
        }
    }
}
