//! Verdicts that tests report.

use stackline_analyze::{
    ExpectationVerdict, JudgedExpectation, RegressionOutcome, RegressionRule, RunValues, Summary,
    compare, judge_regressions,
};
use stackline_core::expectation::BoundUnit;

/// An expectation of a response time, with its interval.
pub(crate) fn judged(text: &str, verdict: ExpectationVerdict) -> JudgedExpectation {
    JudgedExpectation {
        measurement: 0,
        of: "5 rr 32*1000 over tcp".into(),
        text: text.into(),
        line: 3,
        unit: Some(BoundUnit::Time),
        value: Some(0.0121),
        ci95: Some((0.0119, 0.0123)),
        verdict,
        reason: None,
    }
}

/// A gate between runs with these response times, in seconds.
pub(crate) fn outcome(base: &[f64], new: &[f64]) -> RegressionOutcome {
    let side = |values: &[f64]| Summary {
        text: "5 rr 32*1000 over tcp".into(),
        part: "rr 32*1000 over tcp".into(),
        stack: "tcp".into(),
        run_values: RunValues {
            response_s: values.to_vec(),
            ..RunValues::default()
        },
        ..Summary::default()
    };
    judge_regressions(&compare(&[side(base)], &[side(new)]), RegressionRule::USUAL)
}
