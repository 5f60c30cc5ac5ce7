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

use crate::compare::{Label, MeasurementComparison, MetricComparison, Pairing};
use crate::gate::GateVerdict;
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

/// A figure of both sides with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedFigure {
    /// What it is of, in the new run.
    pub label: Label,
    /// Which figure it is.
    pub metric: RunMetric,
    /// Statistics over the counted runs of the baseline.
    pub base: SampleStatistics,
    /// Statistics over the counted runs of the new run.
    pub new: SampleStatistics,
    /// Mean of the new run over that of the baseline.
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

/// The logarithm of a ratio, above 0 where the new run is worse, and its standard error.
struct WorseLog {
    log: f64,
    error: f64,
    freedom: f64,
}

/// Judges all comparisons of measurements by their main figures: throughput, response time, connect time.
#[must_use]
pub fn judge_regressions(
    comparisons: &[MeasurementComparison],
    rule: RegressionRule,
) -> RegressionOutcome {
    let is_main = |one: &&MetricComparison| RunMetric::MAIN.contains(&one.metric);
    let pairs: Vec<(&Label, &MetricComparison)> = comparisons
        .iter()
        .filter_map(|one| Some((one.b.as_ref()?, one)))
        .flat_map(|(label, one)| one.metrics.iter().filter(is_main).map(move |m| (label, m)))
        .collect();
    let logs: Vec<Result<WorseLog, String>> =
        pairs.iter().map(|(_, metric)| worse_log(metric)).collect();
    let (worse, better) = (
        shown(&logs, rule, |one| one.log - rule.tolerance.ln_1p()),
        shown(&logs, rule, |one| -one.log),
    );
    let figures: Vec<JudgedFigure> = pairs
        .iter()
        .zip(&logs)
        .zip(worse.into_iter().zip(better))
        .map(|(((label, metric), log), (worse, better))| {
            judge_one(label, metric, log, &[worse, better], rule, logs.len())
        })
        .collect();
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

fn whole(figures: &[JudgedFigure], is_missing: bool) -> GateVerdict {
    let has = |verdict| figures.iter().any(|figure| figure.verdict == verdict);
    if has(RegressionVerdict::Worse) {
        GateVerdict::Worse
    } else if is_missing || figures.is_empty() || has(RegressionVerdict::CannotSay) {
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

/// The ratio of a figure as a logarithm, by the delta method; else why there is none.
fn worse_log(metric: &MetricComparison) -> Result<WorseLog, String> {
    let (a, b) = (&metric.a, &metric.b);
    let (Some(sd_a), Some(sd_b)) = (a.sd, b.sd) else {
        return Err(format!(
            "{} and {} counted runs, but each side needs two",
            a.n, b.n
        ));
    };
    if a.mean <= 0.0 || b.mean <= 0.0 {
        return Err("a mean is zero, so no ratio can be formed".to_owned());
    }
    let variance = |s: &SampleStatistics, sd: f64| (sd / s.mean).powi(2) / to_f64(s.n);
    let log = (b.mean / a.mean).ln();
    Ok(WorseLog {
        log: if metric.metric.more_is_faster() {
            -log
        } else {
            log
        },
        error: (variance(a, sd_a) + variance(b, sd_b)).sqrt(),
        freedom: to_f64(a.n.min(b.n) - 1),
    })
}

/// Of which figures `excess` is shown to be above 0, by the step-down procedure of Holm, and the probability of each.
fn shown(
    logs: &[Result<WorseLog, String>],
    rule: RegressionRule,
    excess: impl Fn(&WorseLog) -> f64,
) -> Vec<ShownFigure> {
    let probability =
        |one: &Result<WorseLog, String>| one.as_ref().ok().map(|log| chance(log, excess(log)));
    let mut found: Vec<ShownFigure> = logs
        .iter()
        .map(|one| ShownFigure {
            probability: probability(one),
            is_shown: false,
        })
        .collect();
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.retain(|at| found[*at].probability.is_some());
    order.sort_by(|a, b| {
        let of = |at: &usize| found[*at].probability.unwrap_or(1.0);
        of(a).total_cmp(&of(b))
    });
    let count = order.len();
    for (rank, at) in order.into_iter().enumerate() {
        let level = rule.error_rate / to_f64((count - rank) as u64);
        if found[at].probability.is_none_or(|p| p > level) {
            break;
        }
        found[at].is_shown = true;
    }
    found
}

/// The probability of a figure under the hypothesis, and whether the hypothesis is rejected.
#[derive(Clone, Copy)]
struct ShownFigure {
    probability: Option<f64>,
    is_shown: bool,
}

/// The probability that a logarithm is above its bound by `excess` or more, where it is equal to the bound.
fn chance(log: &WorseLog, excess: f64) -> f64 {
    if log.error <= 0.0 {
        return if excess > ROUNDING { 0.0 } else { 1.0 };
    }
    let t = StudentsT::new(0.0, 1.0, log.freedom.max(1.0));
    t.map_or(1.0, |t| t.sf(excess / log.error))
}

/// Equal runs of a simulation differ by no more than this.
const ROUNDING: f64 = 1e-9;

fn judge_one(
    label: &Label,
    metric: &MetricComparison,
    log: &Result<WorseLog, String>,
    shown: &[ShownFigure; 2],
    rule: RegressionRule,
    figures: usize,
) -> JudgedFigure {
    let [worse, better] = shown;
    let mut judged = JudgedFigure {
        label: label.clone(),
        metric: metric.metric,
        base: metric.a,
        new: metric.b,
        ratio: metric.ratio,
        bounds: None,
        p_worse: worse.probability,
        verdict: RegressionVerdict::CannotSay,
        reason: None,
        more_runs: None,
    };
    let log = match log {
        Ok(log) => log,
        Err(reason) => {
            judged.reason = Some(reason.clone());
            return judged;
        }
    };
    let half = quantile(log.freedom, rule.error_rate) * log.error;
    let (low, high) = (log.log - half, log.log + half);
    let is_worse_up = !metric.metric.more_is_faster();
    judged.bounds = Some(if is_worse_up {
        (low.exp(), high.exp())
    } else {
        ((-high).exp(), (-low).exp())
    });
    let margin = rule.margin.ln_1p();
    judged.verdict = match (worse.is_shown, better.is_shown, high < margin) {
        (true, ..) => RegressionVerdict::Worse,
        (_, true, _) => RegressionVerdict::Better,
        (_, _, true) if low > -margin => RegressionVerdict::Same,
        (_, _, true) => RegressionVerdict::NotWorse,
        _ => RegressionVerdict::CannotSay,
    };
    if judged.verdict == RegressionVerdict::CannotSay {
        judged.reason = Some(format!(
            "it may be up to {:.1} % worse, and chance alone may do that",
            high.exp_m1() * 100.0
        ));
        judged.more_runs = more_runs(log, rule, figures, metric.a.n.min(metric.b.n));
    }
    judged
}

/// Most runs that are worth a proposal.
const MOST_RUNS: u64 = 1_000_000;

/// About how many more runs of each side show that a figure is worse, or that it is not worse by the margin, whichever takes fewer,
/// if mean and spread stay as they are.
fn more_runs(log: &WorseLog, rule: RegressionRule, figures: usize, runs: u64) -> Option<u64> {
    let (to_margin, to_worse) = (
        rule.margin.ln_1p() - log.log,
        log.log - rule.tolerance.ln_1p(),
    );
    let is_enough = |n: u64| {
        let error = log.error * (to_f64(runs) / to_f64(n)).sqrt();
        let shows = |distance: f64, rate: f64| distance > quantile(to_f64(n - 1), rate) * error;
        shows(to_margin, rule.error_rate)
            || shows(to_worse, rule.error_rate / to_f64(figures.max(1) as u64))
    };
    let mut enough = runs + 1;
    while !is_enough(enough) {
        enough = enough.saturating_mul(2);
        if enough > MOST_RUNS {
            return None;
        }
    }
    let (mut few, mut enough) = (runs, enough);
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
    use super::quantile;

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
}
