//! Checks the rate of a link: constant, a schedule, or a trace.

use super::figures::{number, positive_rate};
use super::schedule;
use crate::check::referenced_files::SpecFiles;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{RateItem, ScheduleItem, SpecValue, Word};
use alloc::format;
use stackline_core::network::{DeliveryTrace, LinkRate, RateSchedule};

pub(super) fn resolve(
    item: &RateItem,
    report: &mut DiagnosticReport,
    files: &mut SpecFiles<'_>,
) -> LinkRate {
    match item {
        RateItem::Unlimited => LinkRate::Unlimited,
        RateItem::Constant(value) => {
            let hint = "write `unlimited` for a link with no transmission time, or `loss 100%` for one that delivers nothing";
            let rate = positive_rate(
                value,
                "the rate of a link",
                "nothing would ever arrive",
                hint,
            );
            report
                .keep(rate)
                .map_or(LinkRate::Unlimited, LinkRate::Constant)
        }
        RateItem::Schedule(item) => LinkRate::Schedule(schedule(item, report)),
        RateItem::Trace(file) => report
            .keep(trace(file, files))
            .map_or(LinkRate::Unlimited, LinkRate::Trace),
    }
}

fn schedule(item: &ScheduleItem<SpecValue>, report: &mut DiagnosticReport) -> RateSchedule {
    let begin = "specify the initial rate, as in `schedule(0 s 1 Mbit/s, ...)`";
    let schedule = schedule::resolve(item, begin, report, |rate, _| Some(number(rate)));
    if item.steps.iter().all(|(_, rate)| number(rate) <= 0.0) {
        let diagnostic = Diagnostic::error(
            item.span,
            "every rate in the schedule is zero",
            "nothing would ever arrive",
        );
        report.push(diagnostic.hint("include at least one rate above zero"));
    } else if let (Some((from, rate)), None) = (item.steps.last(), &item.every)
        && number(rate) <= 0.0
    {
        let message = format!("nothing is sent from {} s onwards", number(from));
        let diagnostic = Diagnostic::warning(rate.span, message, "the last rate lasts forever");
        report.push(
            diagnostic
                .hint("add a later step, or make the schedule repeat: `schedule(...) every 10 s`"),
        );
    }
    schedule
}

fn trace(file: &Word, files: &mut SpecFiles<'_>) -> Result<DeliveryTrace, Diagnostic> {
    let opportunities_ms = files.moments(file)?;
    files.take_room(opportunities_ms.len(), file.span)?;
    Ok(DeliveryTrace {
        file: file.text.clone(),
        opportunities_ms,
    })
}
