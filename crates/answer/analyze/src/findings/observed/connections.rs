//! Connections of any programs in runs without measurements, from monitors (`TCP_INFO`) and captures (`TCP_CONNECTION`), and the report of
//! the connection that shows a symptom most. Neither operations nor paths of these connections are known.

use crate::captured_connections::{CapturedConnection, ConnectionTransfers, connection};
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::kind::FindingKind;
use crate::statistics::to_f64;
use stackline_events::unit_ids;
use std::collections::{BTreeMap, BTreeSet};

/// A connection seen by a monitor on one host: the sum of the `TCP_INFO` events of all intervals.
#[derive(Debug, Default)]
pub(crate) struct ObservedConnection<'c> {
    /// The monitored end, as the event names it.
    pub(crate) local: &'c str,
    /// The other end.
    pub(crate) remote: &'c str,
    /// The rows of its events.
    pub(crate) rows: Vec<u32>,
    /// The length of all intervals.
    pub(crate) time_ns: f64,
    /// The time that the receiver's window limited its sender.
    pub(crate) window_limited_ns: f64,
    /// The time that its own send buffer limited the sender.
    pub(crate) send_buffer_ns: f64,
    /// The length of the intervals at whose end bytes lay unread.
    pub(crate) unread_ns: f64,
    /// The most unread bytes.
    pub(crate) unread_bytes: i64,
    /// The number of retransmitted segments.
    pub(crate) retransmits: i64,
    /// The number of acknowledged bytes.
    pub(crate) acked_bytes: i64,
    /// The largest segment size reported; 0 if none was.
    pub(crate) segment_bytes: i64,
    /// The longest round trip that the kernel reported.
    pub(crate) round_trip_ns: i64,
}

/// Whether the run has events but no measurements, and is not a session (whose units are followed through events): for those, other
/// findings say more.
pub(crate) fn is_observed(log: &FindingEventLog<'_>) -> bool {
    // A run with traced requests is not a session, even if its events look like one.
    let is_session = || log.session().is_some() && log.costs().is_none();
    log.input.plan.measurements.is_empty() && !log.is_empty() && !is_session()
}

/// The connections seen by monitors, but for those of traced transfers, whose packets say more.
pub(crate) fn collect_monitored<'c>(log: &FindingEventLog<'c>) -> Vec<ObservedConnection<'c>> {
    let mut by_ends: BTreeMap<(&str, &str, &str), ObservedConnection<'c>> = BTreeMap::new();
    for row in log.rows("TCP_INFO").iter().copied() {
        let (Some(local), Some(remote)) = (log.text(row, "local"), log.text(row, "remote")) else {
            continue;
        };
        if log.number(row, "stream").is_some() {
            continue;
        }
        let number = |field: &str| log.number(row, field).unwrap_or(0).max(0);
        let one = by_ends.entry((log.host(row), local, remote)).or_default();
        (one.local, one.remote) = (local, remote);
        one.rows.push(row);
        one.time_ns += number("interval_ns") as f64;
        one.window_limited_ns += number("rwnd_limited_ns") as f64;
        one.send_buffer_ns += number("sndbuf_limited_ns") as f64;
        let unread = number("receive_queue_bytes");
        one.unread_ns += if unread > 0 {
            number("interval_ns") as f64
        } else {
            0.0
        };
        one.unread_bytes = one.unread_bytes.max(unread);
        one.retransmits = one.retransmits.saturating_add(number("retransmits"));
        one.acked_bytes = one.acked_bytes.saturating_add(number("acked_bytes"));
        one.segment_bytes = one.segment_bytes.max(number("mss_bytes"));
        one.round_trip_ns = one.round_trip_ns.max(number("rtt_ns"));
    }
    by_ends.into_values().collect()
}

/// The captured connections, each with the row of its event, except those whose requests are known: findings about how requests spend their
/// time or fail say more.
pub(crate) fn collect_captured(log: &FindingEventLog<'_>) -> Vec<(u32, CapturedConnection)> {
    let requests = log.costs().map_or(&[][..], |costs| &costs.requests);
    let known = requests.iter().filter(|request| {
        let is_timed = request.is_call && request.times.is_some() && request.unknown.is_none();
        is_timed || request.has_no_good_answer()
    });
    let known_flows: BTreeSet<i64> = known
        .map(|request| i64::from(unit_ids::parts(request.unit).0))
        .collect();
    let events = log.input.events;
    let rows = |keyword: &str| log.rows(keyword).iter().map(|row| *row as usize);
    let transfers = ConnectionTransfers::from_events(events, rows("TCP_TRANSFER"));
    let all = rows("TCP_CONNECTION").map(|row| (row as u32, connection(events, row, &transfers)));
    all.filter(|(_, one)| !known_flows.contains(&one.flow))
        .collect()
}

/// A connection that shows the symptom searched for.
pub(crate) struct ObservedSymptom {
    /// The share of its time, 0 to 1.
    pub(crate) share: f64,
    /// The sentence of a finding about it.
    pub(crate) sentence: String,
    /// The text of the evidence.
    pub(crate) figures: String,
    /// The rows of the events that show it.
    pub(crate) rows: Vec<u32>,
}

/// A finding about the connection that shows a symptom most; `None` if none has a share of at least `LEAST`.
pub(crate) fn report_worst_connection(
    kind: &FindingKind,
    log: &FindingEventLog<'_>,
    found: impl Iterator<Item = ObservedSymptom>,
) -> Option<Finding> {
    let mut found: Vec<ObservedSymptom> = found
        .filter(|one| one.share >= crate::findings::LEAST)
        .collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    let others = found.len().checked_sub(1)?;
    let worst = &found[0];
    let more = match others {
        0 => String::new(),
        1 => "; likewise for another connection".to_owned(),
        n => format!("; likewise for {n} other connections"),
    };
    let sentence = format!("{}{more}", worst.sentence);
    let mut finding = kind.of_run(worst.share.min(1.0), 0.9, sentence);
    finding.evidence = found
        .iter()
        .take(5)
        .map(|one| log.evidence(one.figures.clone(), &one.rows))
        .collect();
    Some(finding)
}

/// A time in ns, in words.
pub(crate) fn format_ns(ns: f64) -> String {
    stackline_core::units::format_time(ns / 1e9)
}

/// The ratio of a part to the whole of a time.
pub(crate) fn share(part: f64, whole: u64) -> f64 {
    part / to_f64(whole.max(1))
}
