//! A transfer that is over before its window fills the path.

use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::account::PartTimeShares;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::{MeasuredPart, PartWorkload};
use crate::findings::measured::path::FULL;
use crate::statistics::to_f64;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "slow_start",
    meaning: "the transfer is over, or the message is sent, before the window fills the path",
    find: &[Find::Part(find)],
};

/// Beyond this times the closed form, something else is in the way.
const SLACK: f64 = 1.5;

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    match context.account(part) {
        Some(account) => by_states(context, part, account),
        None => by_closed_form(context, part),
    }
}

/// By the senders' own account: the time in which nothing but a window that still doubles kept data from leaving.
fn by_states(
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
    account: &PartTimeShares,
) -> Option<Finding> {
    let (side, own) = account.most(|states| states.slow_start)?;
    let share = own * part.weight;
    if share < LEAST {
        return None;
    }
    let (host, initial) = (
        part.host(side),
        stackline_model::slow_start::INITIAL_SEGMENTS,
    );
    let sentence = match part.work {
        PartWorkload::Calls => format!(
            "messages are longer than the window that {host} begins with: it grows from {initial} segments by a factor of two in each round trip, and {} a message waits for it",
            part.of_its_time(own)
        ),
        _ => format!(
            "the transfer is too short for its path: its window grows from {initial} segments, and {} it was what kept data from leaving, while the path was used {} of the time",
            part.of_its_time(own),
            percent(account.used)
        ),
    };
    let figure = format!(
        "{host}: {} in slow start with data that the window kept back",
        percent(own)
    );
    let finding = KIND
        .finding(context, share, 0.9, sentence)
        .because(context.measurement.figure(figure));
    let again = "keep the connection and use it again, so that its window is open already";
    Some(finding.attempt(match part.work {
        PartWorkload::Calls => format!("{again}: after a pause it shrinks (`net.ipv4.tcp_slow_start_after_idle = 0`); a larger first window (`initcwnd`)"),
        _ => format!("{again}; larger transfers"),
    }))
}

/// Without the senders' account: by what a window that doubles can have left unused.
fn by_closed_form(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let limits = part.limits()?;
    let (fullness, runs) = (
        context.measurement.fullness(part)?,
        to_f64(part.records.len() as u64),
    );
    let expected = part.without_loss_s()?;
    let takes = part.elapsed_s / runs;
    // The closed form has to account for the time that the path was not used.
    let at_rate = 8.0 * to_f64(part.bytes())
        / runs
        / part.replicas()
        / context.measurement.fair_bit_s(part)?;
    let opening = (expected - at_rate).max(0.0) + 2.0 * part.round_trip_s()?;
    let accounts = takes * (1.0 - fullness) <= SLACK * opening;
    let others = limits.receive_window + limits.send_buffer + context.losses.share;
    let share = (1.0 - fullness - others).max(0.0) * part.weight;
    if fullness >= FULL || share < LEAST || !accounts || !context.processors.is_empty() {
        return None;
    }
    let sentence = format!(
        "the transfer is too short for its path: its window grows from {} segments, and in {} it fills {} of it",
        stackline_model::slow_start::INITIAL_SEGMENTS,
        units::format_time(takes),
        percent(fullness)
    );
    let figure = format!(
        "a transfer that doubles its window each round trip takes {}, this one {}",
        units::format_time(expected),
        units::format_time(takes)
    );
    let finding = KIND
        .finding(context, share, 0.85, sentence)
        .because(context.measurement.figure(figure));
    Some(finding.attempt("keep the connection and use it again, so that its window is open already; larger transfers"))
}
