//! What changes in steps: times that begin at zero and ascend, and a period behind the last of them.

use super::figures::number;
use crate::check::evaluate::LONGEST;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{ScheduleItem, SpecValue};
use alloc::format;
use stackline_core::network::StepSchedule;
use stackline_core::time::Duration;

/// The schedule; `value` reads what holds from a step on, and `begin` says what a schedule that does not begin at 0 lacks.
pub(super) fn resolve<T, U>(
    item: &ScheduleItem<T>,
    begin: &str,
    report: &mut DiagnosticReport,
    mut value: impl FnMut(&T, &mut DiagnosticReport) -> Option<U>,
) -> StepSchedule<U> {
    let mut steps = alloc::vec::Vec::new();
    for (from, what) in &item.steps {
        let at = report.keep(next(from, steps.last().map(|(last, _)| *last), begin));
        if let (Some(at), Some(what)) = (at, value(what, report)) {
            steps.push((at, what));
        }
    }
    StepSchedule {
        steps,
        period: item
            .every
            .as_ref()
            .and_then(|every| report.keep(period(every, &item.steps))),
    }
}

/// When a step begins: zero for the first, later than the one before for the others.
fn next(from: &SpecValue, last: Option<Duration>, begin: &str) -> Result<Duration, Diagnostic> {
    let seconds = number(from);
    let at = Duration::from_seconds(seconds);
    if seconds > LONGEST {
        return Err(Diagnostic::error(
            from.span,
            format!("a time must be at most {LONGEST} seconds"),
            "too long",
        ));
    }
    match last {
        None if at != Duration::ZERO => {
            let diagnostic =
                Diagnostic::error(from.span, "a schedule must begin at 0 s", "expected `0 s`");
            Err(diagnostic.hint(begin))
        }
        Some(last) if at <= last => {
            let message = "the times in a schedule must increase";
            Err(
                Diagnostic::error(from.span, message, "not later than the previous one")
                    .hint("order the steps by time"),
            )
        }
        _ => Ok(at),
    }
}

fn period<T>(every: &SpecValue, steps: &[(SpecValue, T)]) -> Result<Duration, Diagnostic> {
    let (seconds, last) = (
        number(every),
        steps.last().map_or(0.0, |(from, _)| number(from)),
    );
    if seconds > LONGEST {
        return Err(Diagnostic::error(
            every.span,
            format!("a time must be at most {LONGEST} seconds"),
            "too long",
        ));
    }
    let period = Duration::from_seconds(seconds);
    if period > Duration::from_seconds(last) {
        return Ok(period);
    }
    let message = "a schedule cannot repeat before its last step";
    Err(Diagnostic::error(
        every.span,
        message,
        format!("expected more than {last} s"),
    ))
}
