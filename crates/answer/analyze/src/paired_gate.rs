//! Judges pairs of runs, one of each side made shortly after the other, so that what changes slowly on a machine falls out of their
//! ratio. The judgement may be made after each pair: its error rate holds for all looks together.
//!
//! The rule is that of [`crate::regression_gate`]; only the evidence is another one, by [`crate::anytime_interval`]. Because a
//! probability there bounds all looks, Holm's procedure over all figures holds at any look, too.

use crate::anytime_interval::AnytimeMean;
use crate::compare::{MatchedSummaries, match_summaries};
use crate::gate::GateVerdict;
use crate::regression_gate::{
    ComparedFigure, GateFigure, JudgedFigure, RatioEvidence, RegressionOutcome, RegressionRule,
    RegressionVerdict, judge_figures, more_needed, outcome,
};
use crate::statistics::SampleStatistics;
use crate::summary::{RunMetric, Summary};

/// A figure of both sides, run by run.
struct PairedFigure {
    compared: ComparedFigure,
    /// The logarithms of the pairs' ratios, above 0 where the new side is worse; else why there are none.
    logs: Result<AnytimeMean, String>,
}

/// Judges the pairs made so far: the first run of each side is a pair, and so on. Throughput, response time and connect time are
/// judged, and of percentiles those in `metrics`.
#[must_use]
pub fn judge_pairs(
    base: &[Summary],
    new: &[Summary],
    metrics: &[RunMetric],
    rule: RegressionRule,
) -> RegressionOutcome {
    let matched = match_summaries(base, new);
    let comparisons: Vec<_> = matched.iter().map(|one| one.compared(metrics)).collect();
    let paired: Vec<PairedFigure> = matched
        .iter()
        .flat_map(|one| metrics.iter().filter_map(|metric| paired(one, *metric)))
        .collect();
    let count = paired.len();
    let (figures, logs): (Vec<ComparedFigure>, Vec<Result<AnytimeMean, String>>) = paired
        .into_iter()
        .map(|one| (one.compared, one.logs))
        .unzip();
    let evidence: Vec<Result<RatioEvidence, String>> = logs
        .iter()
        .map(|logs| {
            logs.as_ref()
                .map(|logs| evidence(logs, rule))
                .map_err(Clone::clone)
        })
        .collect();
    let more = |at: usize| more_pairs(logs[at].as_ref().ok()?, rule, count);
    let judged = judge_figures(figures, &evidence, rule, more);
    outcome(&comparisons, judged, rule)
}

/// Whether no further pair is needed: something is worse, or each figure is better or the same. What is only known not to be worse
/// may still turn out to be better.
#[must_use]
pub fn is_decided(outcome: &RegressionOutcome) -> bool {
    let is_half = |figure: &JudgedFigure| figure.verdict == RegressionVerdict::NotWorse;
    match outcome.verdict {
        GateVerdict::Worse => true,
        GateVerdict::Passed => !outcome.figures.iter().any(is_half),
        GateVerdict::Undecided => false,
    }
}

/// A metric of two summaries that belong together; `None` where one of them does not have it.
fn paired(matched: &MatchedSummaries<'_>, metric: RunMetric) -> Option<PairedFigure> {
    let (base, new) = (matched.a?, matched.b?);
    let (a, b) = (base.values(metric), new.values(metric));
    let compared = ComparedFigure {
        label: matched.compared(&[]).b?,
        figure: GateFigure::Metric(metric),
        base: SampleStatistics::from_values(a)?,
        new: SampleStatistics::from_values(b)?,
    };
    let runs = base.runs.max(new.runs) as usize;
    let sign = if metric.more_is_faster() { -1.0 } else { 1.0 };
    let logs = match a.len() == runs && b.len() == runs {
        false => Err("a run of some pair does not have it".to_owned()),
        true if a.iter().chain(b).any(|value| *value <= 0.0) => {
            Err("a value is zero, so no ratio can be formed".to_owned())
        }
        true => {
            let logs = a.iter().zip(b).map(|(a, b)| sign * (b / a).ln());
            Ok(AnytimeMean::from_values(&logs.collect::<Vec<f64>>()))
        }
    };
    Some(PairedFigure { compared, logs })
}

fn evidence(logs: &AnytimeMean, rule: RegressionRule) -> RatioEvidence {
    let tolerated = rule.tolerance.ln_1p();
    // The evidence is against one mean; on the other side of it, nothing is shown.
    let chance = |hypothesis: f64, is_beyond: bool| match is_beyond {
        true => logs.chance_of(hypothesis),
        false => 1.0,
    };
    RatioEvidence {
        log: logs.mean,
        bounds: logs.interval(rule.error_rate),
        p_worse: chance(tolerated, logs.mean > tolerated),
        p_better: chance(0.0, logs.mean < 0.0),
    }
}

/// About how many more pairs decide, if mean and spread of the ratios stay.
fn more_pairs(logs: &AnytimeMean, rule: RegressionRule, figures: usize) -> Option<u64> {
    let rate = rule.error_rate / figures.max(1) as f64;
    // One pair has no spread that could stay.
    let known = (logs.n > 1).then_some(logs)?;
    more_needed(known.n, |n| {
        let then = known.extended_to(n);
        then.interval(rule.error_rate).1 < rule.margin.ln_1p()
            || then.interval(rate).0 > rule.tolerance.ln_1p()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::RunValues;
    use stackline_core::distribution::Distribution;
    use stackline_core::random::Seed;

    fn summary(response_s: Vec<f64>) -> Summary {
        Summary {
            text: "rr".into(),
            part: "rr".into(),
            stack: "tcp".into(),
            runs: response_s.len() as u32,
            run_values: RunValues {
                response_s,
                ..RunValues::default()
            },
            ..Summary::default()
        }
    }

    fn judged(base: &[f64], new: &[f64]) -> RegressionOutcome {
        let [base, new] = [base, new].map(|values| [summary(values.to_vec())]);
        judge_pairs(&base, &new, &RunMetric::MAIN, RegressionRule::USUAL)
    }

    /// The verdict at the first look that decides, of at most 200, and how many pairs it took; both sides share a slow drift.
    fn stopped(sequence: u64, change: f64) -> (RegressionVerdict, usize) {
        let mut generator = Seed::root(43).child("ab").index(sequence).generator();
        let spread = Distribution::build("normal", &[1.0, 0.01]).unwrap();
        let (mut base, mut new) = (Vec::new(), Vec::new());
        for pair in 1..=200 {
            let drift = 1.0 + 0.001 * pair as f64;
            base.push(drift * spread.draw(&mut generator));
            new.push(drift * change * spread.draw(&mut generator));
            let outcome = judged(&base, &new);
            if is_decided(&outcome) {
                return (outcome.figures[0].verdict, pair);
            }
        }
        (RegressionVerdict::CannotSay, 200)
    }

    #[test]
    fn equal_programs_are_the_same_and_slower_ones_worse_after_a_few_pairs() {
        let equal: Vec<_> = (0..200).map(|at| stopped(at, 1.0)).collect();
        let same = |(verdict, _): &&(RegressionVerdict, usize)| *verdict == RegressionVerdict::Same;
        // At most 1 % says better or worse; all others are the same, since the margin is five times the spread.
        assert!(equal.iter().filter(same).count() >= 198, "{equal:?}");
        let slower: Vec<_> = (0..200).map(|at| stopped(at, 1.05)).collect();
        let is_worse = |(verdict, pairs): &(RegressionVerdict, usize)| {
            *verdict == RegressionVerdict::Worse && *pairs <= 25
        };
        assert!(slower.iter().all(is_worse), "{slower:?}");
        let faster = stopped(1, 0.95);
        assert_eq!(faster.0, RegressionVerdict::Better);
    }

    #[test]
    fn too_few_pairs_say_nothing_and_how_many_more_would_decide() {
        let one = judged(&[1.0], &[1.1]);
        assert_eq!(one.verdict, GateVerdict::Undecided);
        let figure = &one.figures[0];
        assert_eq!((figure.bounds, figure.more_runs), (None, None));
        assert_eq!(
            figure.reason.as_deref(),
            Some("too few pairs for any bound")
        );
        let noisy = |n: usize| -> Vec<f64> {
            let value = |at: usize| if at.is_multiple_of(2) { 1.1 } else { 0.9 };
            (0..n).map(value).collect()
        };
        let open = judged(&noisy(20), &[1.0; 20]);
        let more = open.figures[0].more_runs.unwrap() as usize;
        assert!(more > 10, "{open:?}");
        let enough = (20 + more).next_multiple_of(2);
        let then = judged(&noisy(enough), &vec![1.0; enough]);
        assert_eq!(then.figures[0].verdict, RegressionVerdict::Same);
    }

    #[test]
    fn less_throughput_is_worse_and_a_run_without_a_value_is_named() {
        let rates = |values: &[f64]| {
            let runs = values.len() as u32;
            let run_values = RunValues {
                throughput_bit_s: values.to_vec(),
                ..RunValues::default()
            };
            [Summary {
                runs,
                run_values,
                ..summary(vec![])
            }]
        };
        let [fast, slow] = [rates(&[2e6; 8]), rates(&[1e6; 8])];
        let judge = |a: &[Summary], b: &[Summary]| {
            judge_pairs(a, b, &RunMetric::MAIN, RegressionRule::USUAL)
        };
        let slower = judge(&fast, &slow);
        assert_eq!(slower.verdict, GateVerdict::Worse);
        assert!((slower.figures[0].ratio - 0.5).abs() < 1e-12);
        assert_eq!(judge(&slow, &fast).verdict, GateVerdict::Passed);
        let mut lacking = slow.clone();
        lacking[0].runs = 9;
        let open = judge(&fast, &lacking);
        assert_eq!(open.verdict, GateVerdict::Undecided);
        assert!(
            open.figures[0]
                .reason
                .as_ref()
                .unwrap()
                .contains("some pair")
        );
    }
}
