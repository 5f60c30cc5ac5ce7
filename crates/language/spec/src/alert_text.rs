//! Alerts of a probe as text: `p99 > 50 ms for 5m`, `failures > 10 %`, `finding queue_drop`.

use crate::check;
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextOrigin, TextSpan};
use crate::parse;
use crate::token;
use crate::token_layout::Marked;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use stackline_core::expectation::{ExpectedCondition, FigureBound};
use stackline_core::quantity::parse_duration;

/// What an alert states.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertText {
    /// Its text as written.
    pub text: String,
    /// The state that is bad.
    pub condition: AlertTextCondition,
    /// How long it has to last; zero if the text says nothing.
    pub hold: Duration,
}

/// A bad state.
#[derive(Clone, Debug, PartialEq)]
pub enum AlertTextCondition {
    /// A figure is within a bound, or a finding is made or not made, as specifications expect it.
    Expected(ExpectedCondition),
    /// The share of probes that failed, 0 to 1, is within this bound.
    Failures(FigureBound),
}

/// Parses an alert: a condition as after `expect`, or of `failures`, and perhaps `for` with how long it has to last.
///
/// # Errors
/// Its mistakes, with their places in the text.
pub fn alert_text(text: &str) -> Result<AlertText, Vec<Diagnostic>> {
    let (condition, hold) = match text.rsplit_once(" for ") {
        Some((condition, hold)) => (condition, Some(hold)),
        None => (text, None),
    };
    let mut report = DiagnosticReport::default();
    let tokens = token::lex(condition, TextOrigin::File, &mut report);
    let mut marked = Marked::new(condition, &tokens);
    let item = parse::parse_condition(&mut marked, &mut report);
    report.begin_meaning();
    let condition = item.and_then(|item| report.keep(check::alert_condition(&item)));
    let hold = hold.map_or(Ok(Duration::ZERO), |hold| {
        parse_duration(hold.trim()).map_err(|label| {
            let span = TextSpan {
                start: text.len() - hold.len(),
                end: text.len(),
                ..TextSpan::default()
            };
            Diagnostic::error(span, "an alert lasts for a time", label)
                .hint("write `for 5m` or `for 30s`")
        })
    });
    let hold = report.keep(hold);
    match (condition, hold) {
        (Some(condition), Some(hold)) if report.errors() == 0 => Ok(AlertText {
            text: text.trim().to_string(),
            condition,
            hold,
        }),
        _ => Err(report.finish()),
    }
}
