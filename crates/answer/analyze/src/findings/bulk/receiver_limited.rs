//! Receiver-limited: the receiving application does not read while received data waits for it.

use crate::findings::bulk::flow_control_window;
use crate::findings::bulk::shared::buffer_request::SocketBufferSide;
use crate::findings::change::PlanChange;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::followed_units::network;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::{MeasuredPart, opposite_side};
use crate::findings::measured::path::FULL;
use crate::statistics::to_f64;
use stackline_core::units;
use stackline_model::pipe;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "receiver_limited",
    meaning: "the receiving application does not keep up with the data that reaches its host",
    find: &[Find::Run(in_session), Find::Part(find)],
};

/// Finding of a session: a run without measurements, whose units are followed through events.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    network::receiver_limited(&KIND, log)
}

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let by_reports = || {
        if flow_control_window::is_full_first(part) {
            return None;
        }
        by_window(context, part).or_else(|| by_rate(context, part))
    };
    by_events(context, part).or_else(by_reports)
}

/// The finding from events: data waited while the reader was outside its operations.
fn by_events(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let backlog = context.backlog(part)?;
    let own = (backlog.total_s / part.basis_s()).min(1.0);
    // While the link is full, waiting for the reader costs nothing.
    let own = context
        .account(part)
        .map_or(own, |account| account.unread.min(1.0 - account.used));
    let share = own * part.weight;
    if share < LEAST {
        return None;
    }
    let (_, host) = part.ends()?;
    let each = backlog.total_s / to_f64(backlog.times.max(1));
    let sentence = format!(
        "the receiver is the limit: received data waits {} for the application on {host} ({} between its operations)",
        part.of_its_time(own),
        units::format_time(each)
    );
    let what = format!(
        "{}, {} elapsed before {host} took the next data unit",
        units::counted(backlog.times, "time"),
        units::format_time(each)
    );
    let mut finding = KIND
        .finding(context, share, 0.95, sentence)
        .because(context.measurement.log.evidence(what, &backlog.rows));
    if let Some(limits) = part
        .limits()
        .filter(|limits| limits.receive_window >= LEAST)
    {
        let what = format!(
            "the sender waits for the receiver's window {} of the time",
            percent(limits.receive_window)
        );
        finding = finding.because(context.measurement.figure(what));
    }
    Some(tries(finding, part, host))
}

/// The finding from rates: the window is closed although it would allow a much higher rate, so the reader is slow, whatever it does.
fn by_rate(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let limits = part.limits()?;
    let share =
        context.at_most(part, limits.receive_window, |states| states.receive_window) * part.weight;
    let (window, trip) = (part.receive_buffer()?, part.round_trip_s()?);
    let lets = pipe::window_limited_bit_s(to_f64(window), trip)?;
    // Other reasons for a closed window: a loss also closes it until the gap is filled; a processor at its limit is a finding of its own;
    // and if senders report their states and nothing lies unread, the window is too small for a path that queues make longer.
    let small = context.account(part).is_some()
        && context
            .backlog(part)
            .is_some_and(|unread| unread.total_s < LEAST * part.basis_s());
    let other = context.losses.share >= LEAST || !context.processors.is_empty() || small;
    if share < LEAST || other || !part.window_is_closed_by_reader(limits, lets) {
        return None;
    }
    let (_, host) = part.ends()?;
    let sentence = format!(
        "the receiver is the limit: the sender waits {} for the window of {host} and sends at {}, although {} per round trip of {} would allow {}",
        part.of_its_time(limits.receive_window),
        units::format_rate(part.rate_bit_s()),
        units::format_size(window),
        units::format_time(trip),
        units::format_rate(lets)
    );
    let figure = format!(
        "the receiver's window held the sender back {} of the time",
        percent(limits.receive_window)
    );
    Some(tries(
        KIND.finding(context, share, 0.7, sentence)
            .because(context.measurement.figure(figure)),
        part,
        host,
    ))
}

/// The finding without events: the window is closed although it is large enough for the path.
fn by_window(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    if !context.measurement.log.is_empty() {
        return None;
    }
    let own = part.limits()?.receive_window;
    let share = own * part.weight;
    let (window, needed) = (part.receive_buffer()?, part.bandwidth_delay_bytes()?);
    let fullness = context.measurement.fullness(part)?;
    let shared = context
        .measurement
        .fullest()
        .is_some_and(|port| port.streams > 1);
    if share < LEAST || to_f64(window) < needed || shared || fullness >= FULL {
        return None;
    }
    let (_, host) = part.ends()?;
    let sentence = format!(
        "the receiver is the limit: the sender waits {} for the window of {host}, although the buffer of {} there holds as much as the path ({})",
        part.of_its_time(own),
        units::format_size(window),
        units::format_size(needed as u64)
    );
    Some(tries(
        KIND.finding(context, share, 0.7, sentence),
        part,
        host,
    ))
}

fn tries(finding: Finding, part: &MeasuredPart<'_>, host: &str) -> Finding {
    let read = format!(
        "make the application on {host} read in a separate thread, or do less between its reads"
    );
    let finding = match part.work.sender() {
        Some(sender) => finding.attempt_by(
            read,
            PlanChange::NoDelays(part.index, opposite_side(sender)),
        ),
        None => finding.attempt(read),
    };
    finding.attempt(format!(
        "a larger receive buffer ({}), which helps only if the reader catches up later",
        SocketBufferSide::Receive.option(part, None)
    ))
}
