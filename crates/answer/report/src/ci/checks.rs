//! What is reported to continuous integration: one check for each expectation and for each figure of a gate.

use crate::expectations::measured_text;
use crate::regressions::{change, figure_name, regression_word, undecided_reason};
use stackline_analyze::{
    ExpectationVerdict, JudgedExpectation, Label, RegressionOutcome, RegressionVerdict,
};
use stackline_core::plan::Measurement;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CiOutcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It could not be decided.
    Undecided,
}

/// A check with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiCheck {
    /// What it is a check of: the text of a measurement.
    pub of: String,
    /// What is checked: `p99 < 20 ms`.
    pub name: String,
    /// The outcome.
    pub outcome: CiOutcome,
    /// The figures, and the reason of the outcome.
    pub message: String,
    /// The line of the specification that it stands on, counted from 1; absent for checks that are in no file.
    pub line: Option<usize>,
}

/// All checks of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CiReport {
    /// The name of the suite: `stackline run bench.stackline`.
    pub name: String,
    /// The file of the specification; absent where it is not a file.
    pub file: Option<String>,
    /// When the report was made, UTC, ISO 8601 without a zone.
    pub time: String,
    /// The checks.
    pub checks: Vec<CiCheck>,
}

impl CiReport {
    /// Adds the expectations of a run.
    pub fn add_expectations(&mut self, judged: &[JudgedExpectation]) {
        let check = |one: &JudgedExpectation| CiCheck {
            of: one.of.clone(),
            name: one.text.clone(),
            outcome: match one.verdict {
                ExpectationVerdict::Met => CiOutcome::Passed,
                ExpectationVerdict::Missed => CiOutcome::Failed,
                ExpectationVerdict::Undecided => CiOutcome::Undecided,
            },
            message: measured_text(one),
            line: Some(one.line),
        };
        self.checks.extend(judged.iter().map(check));
    }

    /// Adds the figures of a gate against a baseline.
    pub fn add_regressions(&mut self, outcome: &RegressionOutcome) {
        for one in &outcome.figures {
            let reason = undecided_reason(one).map_or_else(String::new, |why| format!(" ({why})"));
            self.checks.push(CiCheck {
                of: one.label.text.clone(),
                name: format!("{} against the baseline", figure_name(one)),
                outcome: match one.verdict {
                    RegressionVerdict::Worse => CiOutcome::Failed,
                    RegressionVerdict::CannotSay => CiOutcome::Undecided,
                    _ => CiOutcome::Passed,
                },
                message: format!("{} {}{reason}", change(one), regression_word(one.verdict)),
                line: None,
            });
        }
        let missing = |label: &Label| CiCheck {
            of: label.text.clone(),
            name: format!("`{}` against the baseline", label.text),
            outcome: CiOutcome::Undecided,
            message: "only the baseline has it".to_owned(),
            line: None,
        };
        self.checks.extend(outcome.missing.iter().map(missing));
    }

    /// Gives checks without a line that of their measurement, by its text.
    pub fn add_lines(&mut self, measurements: &[Measurement]) {
        for check in self.checks.iter_mut().filter(|check| check.line.is_none()) {
            let mut named = measurements.iter();
            check.line = named
                .find(|measurement| measurement.text == check.of)
                .map(|measurement| measurement.line);
        }
    }

    /// The number of checks with an outcome.
    #[must_use]
    pub fn count(&self, outcome: CiOutcome) -> usize {
        let all = self.checks.iter();
        all.filter(|check| check.outcome == outcome).count()
    }
}
