//! Observed loss: segments of any program that were retransmitted, according to a monitor or a capture, and packets that a QUIC log
//! declares lost.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, counted, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{
    ObservedSymptom, collect_captured, collect_monitored, is_observed, report_worst_connection,
};
use crate::findings::observed::quic::{LoggedQuic, collect_logged};
use stackline_core::units;
use std::collections::BTreeMap;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_loss",
    meaning: "in watched or captured connections: at least 1 % of the segments, or at least five and at least 0.1 %, were retransmitted (or lost); the share counts one round trip for each and is between 0.05 and 1",
    find: &[Find::Run(find)],
};

/// Below this share of retransmitted segments, losses are usual.
const LEAST_RATE: f64 = 0.001;
/// Between [`LEAST_RATE`] and [`ENOUGH_RATE`] at least this many segments must have been retransmitted, as probes of a closed window are
/// retransmitted too.
const FEWEST_SEGMENTS: f64 = 5.0;
/// From this share of retransmitted segments on, losses are a finding whatever their number.
const ENOUGH_RATE: f64 = 0.01;
/// The types of QUIC packets.
const PACKET_TYPES: [&str; 4] = ["1RTT", "0RTT", "handshake", "initial"];
/// The size of a segment's data where it is not known, bytes: Ethernet's MTU minus IPv4 and TCP headers with timestamps.
const SEGMENT: f64 = 1448.0;

/// A connection, and what was retransmitted on it.
struct Resent<'c> {
    /// Its two ends.
    ends: (&'c str, &'c str),
    /// The number of retransmitted segments.
    again: u64,
    /// The number of these whose first copy was lost before the place of the capture: only the second one was seen.
    late: u64,
    /// The number of new bytes.
    bytes: u64,
    /// The size of a segment, bytes.
    segment: f64,
    /// Its round trip.
    round_trip_ns: u64,
    /// How long it was seen.
    time_ns: f64,
    rows: Vec<u32>,
}

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let (watched, captured) = (collect_monitored(log), collect_captured(log));
    let of_monitors = watched.iter().map(|one| Resent {
        ends: (one.local, one.remote),
        again: one.retransmits.unsigned_abs(),
        late: 0,
        bytes: one.acked_bytes.unsigned_abs(),
        segment: if one.segment_bytes > 0 {
            one.segment_bytes as f64
        } else {
            SEGMENT
        },
        round_trip_ns: one.round_trip_ns.unsigned_abs(),
        time_ns: one.time_ns,
        rows: one.rows.clone(),
    });
    let late = count_lost_before(log);
    let of_captures = captured.iter().map(|(row, one)| Resent {
        ends: (&one.initiator, &one.responder),
        again: one.again.iter().sum(),
        late: late.get(&one.flow).copied().unwrap_or(0),
        bytes: one.bytes.iter().sum(),
        segment: SEGMENT,
        // From the place of the capture, the delays of both sides' acknowledgements add up to a round trip.
        round_trip_ns: one
            .handshake_ns
            .unwrap_or_else(|| one.ack_ns.iter().flatten().sum()),
        time_ns: one.duration_ns as f64,
        rows: vec![*row],
    });
    let found = report_worst_connection(
        &KIND,
        log,
        of_monitors
            .chain(of_captures)
            .filter_map(|one| resent(&one))
            .chain(collect_logged(log).iter().filter_map(lost)),
    )?;
    Some(
        found
            .attempt("find the cause: full queues, a bad link, or reordering that looks like loss"),
    )
}

/// The symptom of a QUIC log with many lost packets: how many were lost and how that was detected.
fn lost(one: &LoggedQuic<'_>) -> Option<ObservedSymptom> {
    let trips = one.lost as f64 * one.round_trip_ns as f64 / (one.time_ns as f64).max(1.0);
    // If no reason is given, `causes` has the type of the packet instead.
    let is_reason = |cause: &str| !cause.is_empty() && !PACKET_TYPES.contains(&cause);
    let named = one.causes.iter().filter(|(cause, _)| is_reason(cause));
    let causes: Vec<String> = named
        .map(|(cause, count)| format!("{count} by {cause}"))
        .collect();
    let causes = match causes.is_empty() {
        true => String::new(),
        false => format!(" ({})", causes.join(", ")),
    };
    let (host, share) = (one.host, percent(one.share_lost()));
    let sentence = if one.sent >= one.lost {
        let of = counted(one.sent, "packet");
        format!(
            "lost: {} of {of} that {host} sent, {share}{causes}",
            one.lost
        )
    } else {
        let lost = counted(one.lost, "packet");
        format!("{host} logged {lost} as lost, but did not log sending most of them{causes}")
    };
    let figures = format!("{host}: {}{causes}", counted(one.lost, "lost packet"));
    // A full congestion window is small because of these losses, so that time is their cost.
    let full = if one.has_window {
        one.share_full()
    } else {
        0.0
    };
    let sentence = match full >= LEAST {
        true => format!(
            "{sentence}; the congestion window, reduced by these losses, was full for {} of the connection time",
            percent(full)
        ),
        false => sentence,
    };
    let found = ObservedSymptom {
        share: trips.max(full).clamp(LEAST, 1.0),
        sentence,
        figures,
        rows: one.lost_rows.clone(),
    };
    one.loses_many().then_some(found)
}

/// The number of segments by flow of which only the second copy was captured.
fn count_lost_before(log: &FindingEventLog<'_>) -> BTreeMap<i64, u64> {
    let mut counts = BTreeMap::new();
    for row in log.rows("TCP_RETRANSMIT") {
        if log.text(*row, "cause") == Some("lost before the capture")
            && let Some(stream) = log.number(*row, "stream")
        {
            *counts.entry(stream >> 1).or_default() += 1;
        }
    }
    counts
}

/// The symptom of a connection with many retransmissions. Packets do not show what these cost, so one round trip is counted for each: the
/// time to detect and repair a loss.
fn resent(one: &Resent<'_>) -> Option<ObservedSymptom> {
    let again = one.again as f64;
    let rate = again / (one.bytes as f64 / one.segment + again).max(1.0);
    let trips = again * one.round_trip_ns as f64 / one.time_ns.max(1.0);
    (rate >= ENOUGH_RATE || again >= FEWEST_SEGMENTS && rate >= LEAST_RATE).then(|| {
        let (from, to) = one.ends;
        let segments = counted(one.again, "segment");
        let were = if one.again == 1 { "was" } else { "were" };
        let of = units::format_size(one.bytes);
        let before = match one.late {
            0 => String::new(),
            late if late == one.again => ": every loss occurred before the capture point".to_owned(),
            late => format!(": {late} of the losses occurred before the capture point"),
        };
        let sentence = format!(
            "{segments} between {from} and {to} {were} retransmitted, in addition to {of} of new data{before}"
        );
        ObservedSymptom {
            share: trips.clamp(LEAST, 1.0),
            sentence,
            figures: format!("{from} > {to}: {segments} retransmitted"),
            rows: one.rows.clone(),
        }
    })
}
