//! The rate of a link: constant, a schedule, a trace of moments.

use super::{number, positive_rate};
use crate::check::Files;
use crate::check::evaluate::LONGEST;
use crate::diagnostic::{Diagnostic, Report, Span};
use crate::tree::{RateItem, Value, Word};
use alloc::format;
use stackline_core::network::{DeliveryTrace, Rate, RateSchedule};
use stackline_core::time::Duration;

pub(super) fn resolve(item: &RateItem, report: &mut Report, files: &mut Files<'_>) -> Rate {
    match item {
        RateItem::Unlimited => Rate::Unlimited,
        RateItem::Constant(value) => {
            let hint = "write `unlimited` for a link that takes no time to send";
            let rate = positive_rate(value, "the rate of a link", "nothing would ever arrive", hint);
            report.keep(rate).map_or(Rate::Unlimited, Rate::Constant)
        }
        RateItem::Schedule(steps, every, span) => Rate::Schedule(schedule(steps, every.as_ref(), *span, report)),
        RateItem::Trace(file) => report.keep(trace(file, files)).map_or(Rate::Unlimited, Rate::Trace),
    }
}

fn schedule(steps: &[(Value, Value)], every: Option<&Value>, span: Span, report: &mut Report) -> RateSchedule {
    let mut schedule = RateSchedule::default();
    for (from, rate) in steps {
        if let Some(at) = report.keep(next(from, schedule.steps.last().map(|(last, _)| *last))) {
            schedule.steps.push((at, number(rate)));
        }
    }
    if steps.iter().all(|(_, rate)| number(rate) <= 0.0) {
        let diagnostic = Diagnostic::error(span, "every rate of the schedule is zero", "nothing would ever arrive");
        report.push(diagnostic.hint("give it at least one rate above zero"));
    } else if let (Some((from, rate)), None) = (steps.last(), every)
        && number(rate) <= 0.0
    {
        let message = format!("nothing leaves from {} s on", number(from));
        let diagnostic = Diagnostic::warning(rate.span, message, "the last rate goes on for ever");
        report.push(diagnostic.hint("add a later step, or let it begin again: `schedule(...) every 10 s`"));
    }
    schedule.period = every.and_then(|every| report.keep(period(every, steps)));
    schedule
}

/// When a step begins: zero for the first, later than the one before for the others.
fn next(from: &Value, last: Option<Duration>) -> Result<Duration, Diagnostic> {
    let seconds = number(from);
    let at = Duration::from_seconds(seconds);
    if seconds > LONGEST {
        return Err(Diagnostic::error(from.span, format!("a time may be at most {LONGEST} seconds"), "too long"));
    }
    match last {
        None if at != Duration::ZERO => {
            let diagnostic = Diagnostic::error(from.span, "a schedule begins at 0 s", "expected `0 s`");
            Err(diagnostic.hint("say how fast the link is at the beginning, as in `schedule(0 s 1 Mbit/s, ...)`"))
        }
        Some(last) if at <= last => {
            let message = "the times of a schedule have to ascend";
            Err(Diagnostic::error(from.span, message, "not later than the one before")
                .hint("order the steps by their times"))
        }
        _ => Ok(at),
    }
}

fn period(every: &Value, steps: &[(Value, Value)]) -> Result<Duration, Diagnostic> {
    let (seconds, last) = (number(every), steps.last().map_or(0.0, |(from, _)| number(from)));
    if seconds > LONGEST {
        return Err(Diagnostic::error(every.span, format!("a time may be at most {LONGEST} seconds"), "too long"));
    }
    let period = Duration::from_seconds(seconds);
    if period > Duration::from_seconds(last) {
        return Ok(period);
    }
    let message = "a schedule cannot begin again before its last step";
    Err(Diagnostic::error(every.span, message, format!("expected more than {last} s")))
}

fn trace(file: &Word, files: &mut Files<'_>) -> Result<DeliveryTrace, Diagnostic> {
    let opportunities_ms = files.moments(file)?;
    files.take_room(opportunities_ms.len(), file.span)?;
    Ok(DeliveryTrace { file: file.text.clone(), opportunities_ms })
}
