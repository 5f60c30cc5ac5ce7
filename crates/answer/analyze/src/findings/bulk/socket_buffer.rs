//! Socket buffer: the send buffer is full with all of its data in flight, so the application cannot hand over more although the path has
//! room.

use crate::findings::bulk::shared::buffer_request::SocketBufferSide;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::followed_units::network;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::answered_time;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use stackline_core::catalogue::FlowControl;
use stackline_core::units;
use stackline_model::pipe;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "socket_buffer",
    meaning: "the sender waits for room in its send buffer, which is smaller than the bandwidth-delay product",
    find: &[Find::Run(in_session), Find::Part(find)],
};

/// Finding of a session: a run without measurements, whose units are followed through events.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    network::socket_buffer(&KIND, log)
}

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    of_calls(context, part).or_else(|| of_bulk(context, part))
}

/// The finding about calls whose messages are longer than the send buffer.
fn of_calls(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let account = context.account(part)?;
    let held = account.most(|states| states.send_buffer)?;
    let (side, own) = (held.side, held.share);
    let share = own * part.weight;
    if !part.work.is_answered() || share < LEAST {
        return None;
    }
    let host = held.hosts(part);
    let buffer = part.setting_of(side, "send_buffer");
    let size = buffer.map_or_else(String::new, |bytes| {
        format!(" of {}", units::format_size(bytes))
    });
    let sentence = format!(
        "messages are longer than the send buffer{size} on {host}: it is full, with all of its data in flight, {}",
        part.of_its_time(own)
    );
    let figure = format!(
        "{host}: limited by its send buffer for {} of the response time",
        percent(own)
    );
    let finding = KIND
        .finding(context, share, account.confidence(0.95), sentence)
        .because(context.measurement.figure(figure));
    let needed = part
        .bandwidth_delay_bytes()
        .map(|bytes| (2.0 * bytes) as u64);
    Some(larger(
        finding,
        part,
        needed,
        format!(
            "a larger send buffer ({})",
            SocketBufferSide::Send.option(part, needed)
        ),
    ))
}

/// The finding about bulk data whose send buffer is smaller than the bandwidth-delay product.
fn of_bulk(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let limits = part.limits()?;
    let reported = limits.send_buffer;
    let waits = uncounted(context, part).map_or(reported, |waits| waits.max(reported));
    let share = context.at_most(part, waits, |states| states.send_buffer) * part.weight;
    // If the buffered data fills the path and its queue, the path is the limit and not the buffer.
    if share < LEAST || context.measurement.is_full(part) {
        return None;
    }
    let (host, _) = part.ends()?;
    let buffer = part.setting_bytes("send_buffer", false);
    let trip = part.round_trip_s()?;
    let size = buffer.map_or_else(String::new, |bytes| {
        format!(" of {}", units::format_size(bytes))
    });
    // A kernel sends segment trains beyond its buffer, and no formula says how many, so for a kernel the sentence gives only what the path
    // holds, and not the rate that the buffer allows.
    let rate = || pipe::window_limited_bit_s(to_f64(buffer?), trip);
    let holds = part.bandwidth_delay_bytes().filter(|_| is_kernels(part));
    let trip_words = units::format_time(trip);
    let lets = match (holds, rate().filter(|_| !is_kernels(part))) {
        (Some(bytes), _) => format!(
            "; the path holds {} in a round trip of {trip_words}",
            units::format_size(bytes as u64)
        ),
        (None, Some(rate)) => format!(
            "; over a round trip of {trip_words} it allows {}",
            units::format_rate(rate)
        ),
        (None, None) => String::new(),
    };
    let sentence = format!(
        "the send buffer{size} on {host} is full, with all of its data in flight, {}{lets}",
        part.of_its_time(waits)
    );
    let blocked = context.measurement.rows("TCP_RCVQ_FULL");
    let sure = if waits > reported { WORKED_OUT } else { 0.95 };
    let mut finding =
        KIND.finding(context, share, sure, sentence)
            .because(context.measurement.figure(format!(
                "limited by the send buffer for {} of the measured time",
                percent(limits.send_buffer)
            )));
    if !blocked.is_empty() {
        finding = finding.because(context.measurement.log.evidence(
            format!(
                "number of times a receive queue was full: {}",
                blocked.len()
            ),
            &blocked,
        ));
    }
    let needed = part
        .bandwidth_delay_bytes()
        .map(|bytes| (2.0 * bytes) as u64);
    let option = SocketBufferSide::Send.option(part, needed);
    let size = needed.map_or_else(
        || "a larger send buffer".into(),
        |needed| format!("a send buffer of {}", units::format_size(needed)),
    );
    Some(larger(finding, part, needed, format!("{size} ({option})")))
}

/// The most that a kernel sends beyond its send buffer, bytes: two segment trains of 64 KiB.
const TRAINS: u64 = 128 << 10;
/// A kernel counts a full send buffer only while nothing else is left to send: from this share of the time on, the uncounted rest is
/// attributed to the buffer too.
const COUNTED: f64 = 0.1;
/// Confidence if that rest is included.
const WORKED_OUT: f64 = 0.75;

fn is_kernels(part: &MeasuredPart<'_>) -> bool {
    part.plan.stack.facts.flow_control == FlowControl::KernelBuffers
}

/// The share of the time that a kernel's full send buffer takes, which the kernel counts only in part: all time in which the path was not
/// used. `None` if something was retransmitted, the receiver's window limited, or neither the kernel's count, nor what it had in flight
/// from time to time, shows the buffer as the limit.
fn uncounted(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<f64> {
    let limits = part.limits()?;
    let apart = context.account(part).is_some() || !is_kernels(part);
    if apart || part.retransmits()? > 0 || !context.processors.is_empty() {
        return None;
    }
    let away = part.work.sender()?;
    let away = context.outside_share(part.index, away);
    let left = 1.0 - context.measurement.fullness(part)? - away - answered_time::trips(part);
    if limits.send_buffer >= COUNTED && limits.receive_window < LEAST {
        let held = to_f64(part.setting_bytes("send_buffer", false)? + TRAINS);
        let most = pipe::window_limited_bit_s(held, part.round_trip_s()?)?;
        return (part.pair_bit_s() <= most).then_some(left.max(0.0));
    }
    // Windows that are still small have taken their part.
    let others = limits.receive_window + opening_share(context, part)?;
    sends_all_it_has(context, part).then_some((left - others).max(0.0))
}

/// The share of the time that the closed form of slow start takes beyond the time at the path's rate.
fn opening_share(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<f64> {
    let runs = to_f64(part.records.len() as u64);
    let sent = to_f64(part.bytes()) / runs / part.replicas();
    let at_rate = 8.0 * sent / context.measurement.fair_bit_s(part)?;
    Some((part.without_loss_s()? - at_rate).max(0.0) / (part.elapsed_s / runs))
}

/// Samples of a connection that are enough to say how it mostly was.
const SAMPLES: usize = 3;
/// The share of the samples with data in flight that have to show it.
const MOSTLY: f64 = 0.5;
/// Less than this share of a window in flight: the window has room.
const ROOM: f64 = 0.9;

/// Whether samples of the kernel show a small send buffer that was asked for as the limit: the sender mostly had nothing left to send,
/// although its windows had room. That its program was not away, but waited to hand over more, the caller knows.
fn sends_all_it_has(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> bool {
    // Samples of a host are of all its connections.
    let is_alone = context.measurement.plan.parts.len() == 1;
    if part.plan.stack.number("send_buffer").is_none() || !is_alone {
        return false;
    }
    let Some((host, _)) = part.ends() else {
        return false;
    };
    let log = context.measurement.log;
    let number = |row: u32, field: &str| log.number(row, field).unwrap_or(0).max(0) as f64;
    let samples: Vec<u32> = context
        .measurement
        .rows_within("TCP_INFO")
        .filter(|row| log.host(*row) == host && number(*row, "in_flight_bytes") > 0.0)
        .collect();
    let has_room = |row: &&u32| {
        let windows = [
            number(**row, "cwnd_bytes"),
            number(**row, "send_window_bytes"),
        ];
        let least = windows.into_iter().fold(f64::MAX, f64::min);
        number(**row, "unsent_bytes") == 0.0 && number(**row, "in_flight_bytes") < ROOM * least
    };
    let shown = samples.iter().filter(has_room).count();
    samples.len() >= SAMPLES && to_f64(shown as u64) >= MOSTLY * to_f64(samples.len() as u64)
}

fn larger(
    finding: Finding,
    part: &MeasuredPart<'_>,
    needed: Option<u64>,
    advice: String,
) -> Finding {
    match needed {
        Some(needed) => finding.attempt_by(advice, SocketBufferSide::Send.change(part, needed)),
        None => finding.attempt(advice),
    }
}
