//! Slow start: a transfer ends, or a message is sent, before the congestion window fills the path.

use crate::findings::calls::connection_per_call;
use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::account::PartTimeShares;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::MeasuredPart;
use crate::findings::measured::path::FULL;
use crate::statistics::to_f64;
use stackline_core::catalogue::FlowControl;
use stackline_core::stack::OptionValue;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "slow_start",
    meaning: "the transfer ends, or the message is sent, before the window fills the path",
    find: &[Find::Part(find)],
};

/// If the unused time of the path is more than this many times that of the closed form, something else is the limit.
const SLACK: f64 = 1.5;

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    match context.account(part) {
        Some(account) => by_states(context, part, account),
        None => by_closed_form(context, part),
    }
}

/// The finding from the senders' states: time in which only a window in slow start kept data from being sent.
fn by_states(
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
    account: &PartTimeShares,
) -> Option<Finding> {
    let held = account.most(|states| states.slow_start)?;
    let own = held.share;
    let share = own * part.weight;
    if share < LEAST {
        return None;
    }
    let (host, initial) = (held.hosts(part), INITIAL);
    let begins = if connection_per_call::comes_and_goes(part) {
        " on each new connection"
    } else {
        ""
    };
    let sentence = if part.work.is_answered() {
        format!(
            "messages are longer than the initial window of {host}{begins}: the window starts at {initial} segments and doubles every round trip, and messages wait for it {}",
            part.of_its_time(own)
        )
    } else {
        format!(
            "the transfer is too short for its path: its window grows from {initial} segments and holds data back {}, while the path is used {} of the time",
            part.of_its_time(own),
            percent(account.used)
        )
    };
    let figure = format!(
        "{host}: {} of the time in slow start with data held back by the window",
        percent(own)
    );
    let finding = KIND
        .finding(context, share, account.confidence(0.9), sentence)
        .because(context.measurement.figure(figure));
    Some(tries(part, finding))
}

/// Adds the advice: keep connections open, and a larger initial window.
fn tries(part: &MeasuredPart<'_>, finding: Finding) -> Finding {
    let again = "keep the connection and reuse it, so that its window is already open";
    let finding = if connection_per_call::comes_and_goes(part) {
        finding.attempt_by(
            connection_per_call::KEEP,
            PlanChange::KeepConnection(part.index),
        )
    } else if part.work.is_answered() {
        finding.attempt(format!(
            "{again}; after a pause, the window shrinks unless `net.ipv4.tcp_slow_start_after_idle = 0`"
        ))
    } else {
        finding.attempt(format!("{again}; larger transfers"))
    };
    let Some((option, value, inside)) = first_window(part) else {
        return finding;
    };
    let advice = format!("a larger initial window ({inside})");
    finding.attempt_by(
        advice,
        PlanChange::Option(part.index, option, OptionValue::Number(value)),
    )
}

/// The stack option for an initial window that holds a message, or twice the bandwidth-delay product if that is less: its name, its
/// value, and how a user sets it. `None` if the stack has no such option.
fn first_window(part: &MeasuredPart<'_>) -> Option<(&'static str, u64, String)> {
    let segment = part.segment_bytes()?.max(1);
    let of_path = part
        .bandwidth_delay_bytes()
        .map_or(u64::MAX, |bytes| (2.0 * bytes) as u64);
    let message = part.longest_message();
    let segments = message.min(of_path).div_ceil(segment).max(2 * INITIAL);
    let stack = &part.plan.stack;
    match stack.facts.flow_control {
        FlowControl::KernelBuffers => Some((
            "first_window",
            segments.min(MOST_SEGMENTS),
            format!("`initcwnd {segments}` of `ip route`"),
        )),
        _ if stack.name == "quic" => {
            // QUIC counts whole packets in its window: a quarter more for headers.
            let bytes = segments * segment * 5 / 4;
            Some((
                "initial_window",
                bytes.min(MOST_BYTES),
                format!("`quic(initial_window = {bytes})`"),
            ))
        }
        _ => None,
    }
}

/// The initial congestion window of a stack, segments.
const INITIAL: u64 = stackline_model::slow_start::INITIAL_SEGMENTS;
/// The greatest value of the option `first_window`, segments.
const MOST_SEGMENTS: u64 = 1 << 16;
/// The greatest value of the option `initial_window`, bytes.
const MOST_BYTES: u64 = 1 << 30;

/// The finding without the senders' states: from the closed form of a window that doubles every round trip.
fn by_closed_form(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let limits = part.limits()?;
    let (fullness, runs) = (
        context.measurement.fullness(part)?,
        to_f64(part.records.len() as u64),
    );
    let expected = part.without_loss_s()?;
    let takes = part.elapsed_s / runs;
    // The finding holds only if the closed form accounts for the time in which the path was not used.
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
        "the transfer is too short for its path: its window grows from {} segments, so in {} the transfer uses only {} of the path's capacity",
        INITIAL,
        units::format_time(takes),
        percent(fullness)
    );
    let figure = format!(
        "a transfer whose window doubles every round trip takes {}; this one took {}",
        units::format_time(expected),
        units::format_time(takes)
    );
    let finding = KIND
        .finding(context, share, 0.85, sentence)
        .because(context.measurement.figure(figure));
    Some(tries(part, finding))
}
