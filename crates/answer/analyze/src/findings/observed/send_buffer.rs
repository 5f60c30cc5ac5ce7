//! Observed send buffer: a sender whose buffer was full, so that its program had to wait before it could hand over more, although the
//! receiver had room. Only the kernel knows it; in packets it looks like a program that pauses. The kernel counts a part of that time: it
//! begins to count when a segment leaves and nothing more is queued.

use crate::captured_connections::CapturedConnection;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{
    ObservedConnection, ObservedSymptom, collect_captured, collect_monitored, format_ns,
    is_observed, report_worst_connection,
};
use crate::findings::observed::sender_limits::{SenderLimits, collect_sender_limits};
use crate::findings::observed::transfers::sender_of;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_send_buffer",
    meaning: "in watched connections and traced transfers: the sender's buffer was full and too small for the path, and its program waited",
    find: &[Find::Run(find)],
};

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let of_monitors = collect_monitored(log).into_iter().map(of_monitored);
    let limits = collect_sender_limits(log);
    let of_transfers = collect_captured(log).into_iter().filter_map(|(row, one)| {
        let sender = sender_of(&one)?;
        Some(of_transfer(
            row,
            &one,
            sender,
            limits.get(&one.stream(sender))?,
        ))
    });
    let found = report_worst_connection(&KIND, log, of_monitors.chain(of_transfers))?;
    Some(found.attempt(
        "let the kernel size the send buffer: do not set SO_SNDBUF in the program, and raise the last value of net.ipv4.tcp_wmem if that is reached",
    ))
}

fn of_monitored(one: ObservedConnection<'_>) -> ObservedSymptom {
    let share = one.send_buffer_ns / one.time_ns.max(1.0);
    ObservedSymptom {
        share,
        sentence: format!(
            "the send buffer of {} was full for {} of the watched time while {} had room",
            one.local,
            percent(share),
            one.remote
        ),
        figures: format!(
            "{} > {}: {} limited by the send buffer",
            one.local,
            one.remote,
            format_ns(one.send_buffer_ns)
        ),
        rows: one.rows,
    }
}

fn of_transfer(
    row: u32,
    one: &CapturedConnection,
    sender: usize,
    limits: &SenderLimits,
) -> ObservedSymptom {
    let (who, to) = (one.end_in_words(sender), one.end_in_words(1 - sender));
    let share = limits.share_of_send_buffer();
    let under_way = units::format_size(limits.in_flight_bytes.unsigned_abs());
    let trip = format_ns(limits.round_trip_ns as f64);
    let most = units::format_rate(
        8e9 * limits.in_flight_bytes as f64 / (limits.round_trip_ns as f64).max(1.0),
    );
    ObservedSymptom {
        share,
        sentence: format!(
            "the send buffer of {who} was full for at least {} of its time to {to}: at most {under_way} are under way in a round trip of up to {trip} ({most}), and its program waits to write more",
            percent(share)
        ),
        figures: format!(
            "{who} > {to}: {} with a full send buffer",
            format_ns(limits.send_buffer_ns)
        ),
        rows: std::iter::once(row)
            .chain(limits.rows.iter().copied())
            .collect(),
    }
}
