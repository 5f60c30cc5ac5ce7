//! Judges whether a run is worse than a baseline, with a stated error rate: each figure is better, the same, worse, or not to be
//! said.
//!
//! The rule, for the ratio of means of each figure, so taken that above 1 is worse:
//!
//! - *worse*: the ratio is shown to be above 1 (or above `1 + tolerance`). Over all figures of a gate together, the rate of such
//!   claims where nothing is worse is at most the error rate (Holm 1979).
//! - *same*, *not worse*: the ratio is shown to be below `1 + margin`; for *same* also above `1 / (1 + margin)` (two one-sided tests,
//!   Schuirmann 1987). The gate passes only if all figures pass, so that no correction is needed (Berger 1982).
//! - *cannot say*: neither is shown; then the runs are too few for the margin, and the number that would decide is estimated.
//!
//! A one-sided bound is the mean of logarithms plus or minus Student's t, with the degrees of freedom of the smaller side. This is
//! never less than Welch's interval, whatever the two spreads are (Hsu 1938), so that the rate holds.
//!
//! Segments of lifelines are judged with the figures, as one family. One that is worse fails the gate; one that cannot be said does
//! not leave the gate undecided, because the times of whole calls bound what all segments together may cost.

use crate::compare::{Label, MeasurementComparison, MetricComparison, Pairing};
use crate::gate::GateVerdict;
use crate::log_ratio::LogRatio;
use crate::statistics::{SampleStatistics, to_f64};
use crate::summary::RunMetric;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// When something counts as worse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RegressionRule {
    /// The worsening that must not be missed, as a share: 0.05 is 5 %. A gate passes only if more than this is excluded.
    pub margin: f64,
    /// The most gates of equal programs that fail, and the most gates that miss the margin, as a share.
    pub error_rate: f64,
    /// A worsening that is no reason to fail, as a share; less than `margin`.
    pub tolerance: f64,
}

impl RegressionRule {
    /// Worse by 5 % is never missed, 1 of 100 gates errs, and nothing is tolerated.
    pub const USUAL: Self = Self {
        margin: 0.05,
        error_rate: 0.01,
        tolerance: 0.0,
    };
}

/// What is shown of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegressionVerdict {
    /// It is better.
    Better,
    /// It differs by less than the margin.
    Same,
    /// It is not worse by the margin; it may be better.
    NotWorse,
    /// It is worse.
    Worse,
    /// The runs do not decide.
    CannotSay,
}

/// What a gate judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateFigure {
    /// A metric of a measurement.
    Metric(RunMetric),
    /// The mean time of a segment of lifelines in a run, in seconds, by the segment's name.
    Segment(String),
}

impl GateFigure {
    /// Its name in a sentence.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Metric(metric) => metric.name(),
            Self::Segment(name) => name,
        }
    }

    /// Whether more of it is faster.
    #[must_use]
    pub const fn more_is_faster(&self) -> bool {
        matches!(self, Self::Metric(metric) if metric.more_is_faster())
    }

    /// The least difference of logarithms that counts where no run differs from another: times of percentiles have three digits, and
    /// other figures of equal runs of a simulation differ by rounding alone.
    const fn resolution(&self) -> f64 {
        match self {
            Self::Metric(metric) if metric.is_percentile() => 0.0101,
            _ => 1e-9,
        }
    }
}

/// A figure of both sides, to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedFigure {
    /// What it is of, in the new run.
    pub label: Label,
    /// Which figure it is.
    pub figure: GateFigure,
    /// Statistics over the counted runs of the baseline.
    pub base: SampleStatistics,
    /// Statistics over the counted runs of the new run.
    pub new: SampleStatistics,
}

impl ComparedFigure {
    fn from_metric(label: &Label, metric: &MetricComparison) -> Self {
        Self {
            label: label.clone(),
            figure: GateFigure::Metric(metric.metric),
            base: metric.a,
            new: metric.b,
        }
    }
}

/// A figure of both sides with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedFigure {
    /// What it is of, in the new run.
    pub label: Label,
    /// Which figure it is.
    pub figure: GateFigure,
    /// Statistics over the counted runs of the baseline.
    pub base: SampleStatistics,
    /// Statistics over the counted runs of the new run.
    pub new: SampleStatistics,
    /// Mean of the new run over that of the baseline; of pairs, the geometric mean of their ratios.
    pub ratio: f64,
    /// The one-sided bounds of the ratio at the error rate, each by itself; absent without spread on either side.
    pub bounds: Option<(f64, f64)>,
    /// The probability of such a figure where nothing is worse.
    pub p_worse: Option<f64>,
    /// What is shown.
    pub verdict: RegressionVerdict,
    /// Why nothing can be said; absent where something is shown.
    pub reason: Option<String>,
    /// About how many more runs of each side would decide, if the means stay as they are.
    pub more_runs: Option<u64>,
}

/// The result of a gate against a baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct RegressionOutcome {
    /// Passed, worse or undecided.
    pub verdict: GateVerdict,
    /// By what rule.
    pub rule: RegressionRule,
    /// The figures, in the order of the baseline.
    pub figures: Vec<JudgedFigure>,
    /// Measurements that only the baseline has: the gate cannot decide about them.
    pub missing: Vec<Label>,
    /// Measurements that only the new run has: they have nothing to be judged by.
    pub added: Vec<Label>,
    /// Other differences that the figures do not show.
    pub caveats: Vec<String>,
}

/// What the values of a figure say of its ratio. Logarithms are above 0 where the new run is worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RatioEvidence {
    /// The logarithm of the ratio.
    pub(crate) log: f64,
    /// The one-sided bounds of that logarithm at the error rate.
    pub(crate) bounds: (f64, f64),
    /// The probability of such values where the ratio is not above that of the tolerance.
    pub(crate) p_worse: f64,
    /// The probability of such values where the ratio is not below 1.
    pub(crate) p_better: f64,
}

/// Judges all comparisons of measurements by their figures that are no costs: throughput, response time, connect time and, where
/// compared, percentiles.
#[must_use]
pub fn judge_regressions(
    comparisons: &[MeasurementComparison],
    rule: RegressionRule,
) -> RegressionOutcome {
    judge_with_segments(comparisons, &[], rule)
}

/// The same, with segments of lifelines.
#[must_use]
pub fn judge_with_segments(
    comparisons: &[MeasurementComparison],
    segments: &[ComparedFigure],
    rule: RegressionRule,
) -> RegressionOutcome {
    let of_measurement = |one: &MeasurementComparison| -> Vec<ComparedFigure> {
        let judged = one.metrics.iter().filter(|metric| !metric.metric.is_cost());
        let label = one.b.as_ref();
        label.map_or_else(Vec::new, |label| {
            judged
                .map(|metric| ComparedFigure::from_metric(label, metric))
                .collect()
        })
    };
    let of_runs = comparisons.iter().flat_map(of_measurement);
    let figures: Vec<ComparedFigure> = of_runs.chain(segments.iter().cloned()).collect();
    let evidence: Vec<Result<RatioEvidence, String>> = figures
        .iter()
        .map(|figure| evidence_of_runs(figure, rule))
        .collect();
    let all = figures.clone();
    let more = |at: usize| more_runs(&all[at], rule, all.len());
    let judged = judge_figures(figures, &evidence, rule, more);
    outcome(comparisons, judged, rule)
}

/// The outcome of judged figures of these measurements.
pub(crate) fn outcome(
    comparisons: &[MeasurementComparison],
    figures: Vec<JudgedFigure>,
    rule: RegressionRule,
) -> RegressionOutcome {
    let alone = |is_of: fn(&MeasurementComparison) -> Option<&Label>| -> Vec<Label> {
        let all = comparisons
            .iter()
            .filter(|one| one.pairing == Pairing::Alone);
        all.filter_map(is_of).cloned().collect()
    };
    let missing = alone(|one| one.a.as_ref());
    RegressionOutcome {
        verdict: whole(&figures, !missing.is_empty()),
        rule,
        missing,
        added: alone(|one| one.b.as_ref()),
        caveats: caveats(comparisons),
        figures,
    }
}

/// Gives each figure its verdict by its evidence, which may be absent with a reason. `more` estimates, for the figure with an index,
/// how many more runs would decide.
pub(crate) fn judge_figures(
    figures: Vec<ComparedFigure>,
    evidence: &[Result<RatioEvidence, String>],
    rule: RegressionRule,
    more: impl Fn(usize) -> Option<u64>,
) -> Vec<JudgedFigure> {
    let shown = |probability: fn(&RatioEvidence) -> f64| {
        let all = evidence.iter();
        let all: Vec<Option<f64>> = all.map(|one| one.as_ref().ok().map(probability)).collect();
        rejected(&all, rule.error_rate)
    };
    let (worse, better) = (shown(|one| one.p_worse), shown(|one| one.p_better));
    let shown = worse.into_iter().zip(better);
    let all = figures.into_iter().zip(evidence).zip(shown).enumerate();
    all.map(|(at, ((figure, evidence), (is_worse, is_better)))| {
        let mut judged = judge_one(figure, evidence, is_worse, is_better, rule);
        if judged.verdict == RegressionVerdict::CannotSay && evidence.is_ok() {
            judged.more_runs = more(at);
        }
        judged
    })
    .collect()
}

fn whole(figures: &[JudgedFigure], is_missing: bool) -> GateVerdict {
    let is_segment = |figure: &JudgedFigure| matches!(figure.figure, GateFigure::Segment(_));
    let is_open = |figure: &JudgedFigure| figure.verdict == RegressionVerdict::CannotSay;
    let is_worse = |figure: &JudgedFigure| figure.verdict == RegressionVerdict::Worse;
    if figures.iter().any(is_worse) {
        GateVerdict::Worse
    } else if is_missing
        || figures.iter().all(is_segment)
        || figures.iter().any(|one| is_open(one) && !is_segment(one))
    {
        GateVerdict::Undecided
    } else {
        GateVerdict::Passed
    }
}

/// Other differences of both sides, each once: of texts, placement and settings.
fn caveats(comparisons: &[MeasurementComparison]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for one in comparisons {
        let unlike = (one.pairing == Pairing::Position)
            .then(|| Some((&one.a.as_ref()?.text, &one.b.as_ref()?.text)))
            .flatten()
            .map(|(a, b)| format!("the texts differ: `{b}` is judged by `{a}`"));
        let others = one.unlike_placement.iter().chain(&one.caveats).cloned();
        for caveat in unlike.into_iter().chain(others) {
            if !out.contains(&caveat) {
                out.push(caveat);
            }
        }
    }
    out
}

/// The ratio of the means of both sides, above 1 where the new run is worse.
fn worse_ratio(compared: &ComparedFigure) -> Result<LogRatio, String> {
    let (base, new) = (&compared.base, &compared.new);
    match compared.figure.more_is_faster() {
        true => LogRatio::new(new, base),
        false => LogRatio::new(base, new),
    }
}

/// What the runs of both sides say of a figure; else why they say nothing.
fn evidence_of_runs(
    compared: &ComparedFigure,
    rule: RegressionRule,
) -> Result<RatioEvidence, String> {
    let ratio = worse_ratio(compared)?;
    let log = ratio.log;
    let freedom = ratio.smaller_freedom();
    let half = quantile(freedom, rule.error_rate) * ratio.error;
    let resolution = compared.figure.resolution();
    let chance = |excess: f64| {
        if ratio.error > 0.0 {
            let t = StudentsT::new(0.0, 1.0, freedom.max(1.0));
            t.map_or(1.0, |t| t.sf(excess / ratio.error))
        } else if excess > resolution {
            0.0
        } else {
            1.0
        }
    };
    Ok(RatioEvidence {
        log,
        bounds: (log - half, log + half),
        p_worse: chance(log - rule.tolerance.ln_1p()),
        p_better: chance(-log),
    })
}

/// Which hypotheses are rejected, all together with at most this rate of errors, by the step-down procedure of Holm. One without a
/// probability is not tested.
fn rejected(probabilities: &[Option<f64>], rate: f64) -> Vec<bool> {
    let mut tested: Vec<(usize, f64)> = probabilities
        .iter()
        .enumerate()
        .filter_map(|(at, probability)| Some((at, (*probability)?)))
        .collect();
    tested.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let (count, mut found) = (tested.len(), vec![false; probabilities.len()]);
    for (rank, (at, probability)) in tested.into_iter().enumerate() {
        if probability > rate / to_f64((count - rank) as u64) {
            break;
        }
        found[at] = true;
    }
    found
}

fn judge_one(
    compared: ComparedFigure,
    evidence: &Result<RatioEvidence, String>,
    is_worse: bool,
    is_better: bool,
    rule: RegressionRule,
) -> JudgedFigure {
    let more_is_faster = compared.figure.more_is_faster();
    let mut judged = JudgedFigure {
        ratio: compared.new.mean / compared.base.mean,
        label: compared.label,
        figure: compared.figure,
        base: compared.base,
        new: compared.new,
        bounds: None,
        p_worse: None,
        verdict: RegressionVerdict::CannotSay,
        reason: None,
        more_runs: None,
    };
    let evidence = match evidence {
        Ok(evidence) => evidence,
        Err(reason) => {
            judged.reason = Some(reason.clone());
            return judged;
        }
    };
    let (low, high) = evidence.bounds;
    (judged.ratio, judged.bounds) = match more_is_faster {
        false => (evidence.log.exp(), Some((low.exp(), high.exp()))),
        true => ((-evidence.log).exp(), Some(((-high).exp(), (-low).exp()))),
    };
    judged.bounds = judged
        .bounds
        .filter(|(low, high)| *low > 0.0 && high.is_finite());
    judged.p_worse = Some(evidence.p_worse);
    let margin = rule.margin.ln_1p();
    judged.verdict = match (is_worse, is_better, high < margin) {
        (true, ..) => RegressionVerdict::Worse,
        (_, true, _) => RegressionVerdict::Better,
        (_, _, true) if low > -margin => RegressionVerdict::Same,
        (_, _, true) => RegressionVerdict::NotWorse,
        _ => RegressionVerdict::CannotSay,
    };
    if judged.verdict == RegressionVerdict::CannotSay {
        let reason = match high.is_finite() {
            true => format!(
                "it may be up to {:.1} % worse, and chance alone may do that",
                high.exp_m1() * 100.0
            ),
            false => "too few pairs for any bound".to_owned(),
        };
        judged.reason = Some(reason);
    }
    judged
}

/// Most runs that are worth a proposal.
const MOST_RUNS: u64 = 1_000_000;

/// About how many more runs of each side show that a figure is worse, or that it is not worse by the margin, whichever takes fewer,
/// if mean and spread stay as they are.
fn more_runs(compared: &ComparedFigure, rule: RegressionRule, figures: usize) -> Option<u64> {
    let ratio = worse_ratio(compared).ok()?;
    let runs = compared.base.n.min(compared.new.n);
    let (to_margin, to_worse) = (
        rule.margin.ln_1p() - ratio.log,
        ratio.log - rule.tolerance.ln_1p(),
    );
    more_needed(runs, |n| {
        let error = ratio.error * (to_f64(runs) / to_f64(n)).sqrt();
        let shows = |distance: f64, rate: f64| distance > quantile(to_f64(n - 1), rate) * error;
        shows(to_margin, rule.error_rate)
            || shows(to_worse, rule.error_rate / to_f64(figures.max(1) as u64))
    })
}

/// How many more runs are needed, if more is never worse; `None` beyond [`MOST_RUNS`].
pub(crate) fn more_needed(runs: u64, is_enough: impl Fn(u64) -> bool) -> Option<u64> {
    let mut enough = runs + 1;
    while !is_enough(enough) {
        enough = enough.saturating_mul(2);
        if enough > MOST_RUNS {
            return None;
        }
    }
    let mut few = runs;
    while enough - few > 1 {
        let middle = u64::midpoint(few, enough);
        if is_enough(middle) {
            enough = middle;
        } else {
            few = middle;
        }
    }
    Some(enough - runs)
}

/// The value that Student's t exceeds with this probability, from 0 to 0.5.
fn quantile(freedom: f64, probability: f64) -> f64 {
    let Ok(t) = StudentsT::new(0.0, 1.0, freedom.max(1.0)) else {
        return f64::INFINITY;
    };
    let (mut low, mut high) = (0.0, 1.0);
    while t.sf(high) > probability && high < 1e9 {
        high *= 2.0;
    }
    // Each step halves what is left of at most 1e9: 100 steps leave nothing of a double's digits.
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if t.sf(middle) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::{quantile, rejected};

    #[test]
    fn quantiles_are_those_of_tables() {
        // Tables of Student's t: 4 degrees of freedom, 2.5 % and 1 %; 19, 1 %; the normal distribution.
        for (freedom, probability, value) in [
            (4.0, 0.025, 2.776),
            (4.0, 0.01, 3.747),
            (19.0, 0.01, 2.539),
            (1e6, 0.01, 2.326),
        ] {
            let found = quantile(freedom, probability);
            assert!((found - value).abs() < 1e-3, "{freedom}: {found}");
        }
    }

    #[test]
    fn holm_rejects_from_the_least_probability_on() {
        // 0.01 / 3, 0.01 / 2, 0.01 / 1: the third of Holm's levels is not reached behind one that is not rejected.
        let found = rejected(&[Some(0.004), None, Some(0.003), Some(0.5)], 0.01);
        assert_eq!(found, [true, false, true, false]);
        let found = rejected(&[Some(0.004), Some(0.006), Some(0.005)], 0.01);
        assert_eq!(found, [false, false, false]);
    }
}
