//! Segments of any program that were sent again, by a monitor or a capture.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, counted};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{
    collect_captured, collect_monitored, is_observed, report_worst_connection,
};
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_loss",
    meaning: "of connections that were watched or captured: more than 0.1 % of segments, and five, or 1 % were sent again; its share is a round trip for each, at least 0.05, at most 1",
    find: &[Find::Run(find)],
};

/// Less is usual; of so little it takes some, as probes of a closed window are sent again too.
const LITTLE: f64 = 0.001;
const SOME: f64 = 5.0;
/// This is much, of however few.
const MUCH: f64 = 0.01;
/// The data of a segment, where it is not known.
const SEGMENT: f64 = 1448.0;

/// A connection, and what was sent again on it.
struct Resent<'c> {
    ends: (&'c str, &'c str),
    again: u64,
    /// Of these, those that were lost before the place of the capture: only the second copy was seen.
    late: u64,
    /// New bytes, and those of a segment.
    bytes: u64,
    segment: f64,
    round_trip_ns: u64,
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
    let of_captures = captured.iter().map(|(row, one)| Resent {
        ends: (&one.initiator, &one.responder),
        again: one.again.iter().chain(&one.late).sum(),
        late: one.late.iter().sum(),
        bytes: one.bytes.iter().sum(),
        segment: SEGMENT,
        // Seen from the place of the capture, each side's acknowledgements take their part of it.
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
            .filter_map(|one| resent(&one)),
    )?;
    Some(found.attempt(
        "find where packets are lost: full queues, a bad link, or reordering that looks like loss",
    ))
}

/// A connection of which more than a little was sent again. What that costs, packets do not show; a round trip each is what it takes
/// to notice and mend a loss.
fn resent(one: &Resent<'_>) -> Option<(f64, String, String, Vec<u32>)> {
    let again = one.again as f64;
    let rate = again / (one.bytes as f64 / one.segment + again).max(1.0);
    let trips = again * one.round_trip_ns as f64 / one.time_ns.max(1.0);
    (rate >= MUCH || again >= SOME && rate >= LITTLE).then(|| {
        let (from, to) = one.ends;
        let segments = counted(one.again, "segment");
        let were = if one.again == 1 { "was" } else { "were" };
        let of = units::format_size(one.bytes);
        let before = match one.late {
            0 => String::new(),
            late if late == one.again => ": lost before the place of the capture".to_owned(),
            late => format!(": {late} of them lost before the place of the capture"),
        };
        let sentence = format!(
            "{segments} between {from} and {to} {were} sent again, beside {of} that were new{before}"
        );
        (
            trips.clamp(LEAST, 1.0),
            sentence,
            format!("{from} > {to}: {segments} again"),
            one.rows.clone(),
        )
    })
}
