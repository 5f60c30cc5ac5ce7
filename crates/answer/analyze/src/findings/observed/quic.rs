//! The connections of QUIC stacks according to their own logs: packets sent and lost, and what the sender waited for, host by host. No
//! findings are made here.

use crate::findings::event_log::FindingEventLog;
use crate::findings::observed::connections::is_observed;
use std::collections::{BTreeMap, BTreeSet};

/// The sums over what one host logged.
#[derive(Debug, Default)]
pub(crate) struct LoggedQuic<'c> {
    /// The host.
    pub(crate) host: &'c str,
    /// The number of packets that it sent.
    pub(crate) sent: u64,
    /// The number of its packets that it declared lost.
    pub(crate) lost: u64,
    /// The number of lost packets by the reason given, or by packet type where none is given.
    pub(crate) causes: BTreeMap<&'c str, u64>,
    /// The rows of the events of lost packets.
    pub(crate) lost_rows: Vec<u32>,
    /// The number of stream bytes that it sent.
    pub(crate) sent_bytes: i64,
    /// The time from its first packet to its last.
    pub(crate) time_ns: u64,
    /// The longest round trip that it reported.
    pub(crate) round_trip_ns: i64,
    /// The rows of its `QUIC_INFO` events.
    pub(crate) info_rows: Vec<u32>,
    /// The time that these events cover.
    pub(crate) covered_ns: i64,
    /// The time of it in which it had more to send than it was allowed to.
    pub(crate) busy_ns: i64,
    /// The time of `busy_ns` in which the receiver's flow control held it back.
    pub(crate) blocked_ns: i64,
    /// Whether it reports its congestion window and the bytes in flight, without which it is not known what limits it.
    pub(crate) has_window: bool,
}

/// From this share of packets on, losses are many.
const MANY: f64 = 0.01;
/// With a smaller share, losses are many from this number of packets on, if they are at least the share `LITTLE`.
const SOME: u64 = 5;
/// The least share of lost packets that counts at all.
const LITTLE: f64 = 0.001;

impl LoggedQuic<'_> {
    /// The time in which its congestion window was full.
    pub(crate) fn full_ns(&self) -> i64 {
        self.busy_ns.saturating_sub(self.blocked_ns).max(0)
    }

    /// The share of the covered time in which its congestion window was full, 0 to 1.
    pub(crate) fn share_full(&self) -> f64 {
        self.full_ns() as f64 / self.covered_ns.max(1) as f64
    }

    /// The share of its packets that were lost, 0 to 1.
    pub(crate) fn share_lost(&self) -> f64 {
        self.lost as f64 / self.sent.max(self.lost).max(1) as f64
    }

    /// Whether it lost more packets than usual.
    pub(crate) fn loses_many(&self) -> bool {
        let share = self.share_lost();
        share >= MANY || self.lost >= SOME && share >= LITTLE
    }
}

/// The hosts that logged QUIC connections; empty for runs with measurements, which have these events too but are judged by other findings.
pub(crate) fn collect_logged<'c>(log: &FindingEventLog<'c>) -> Vec<LoggedQuic<'c>> {
    if !is_observed(log) {
        return Vec::new();
    }
    let mut by_host: BTreeMap<&str, LoggedQuic<'c>> = BTreeMap::new();
    count_packets(log, &mut by_host);
    for row in log.rows("QUIC_INFO").iter().copied() {
        let one = by_host.entry(log.host(row)).or_default();
        let number = |field: &str| log.number(row, field).unwrap_or(0).max(0);
        one.info_rows.push(row);
        one.covered_ns = one.covered_ns.saturating_add(number("interval_ns"));
        one.busy_ns = one.busy_ns.saturating_add(number("busy_ns"));
        one.blocked_ns = one.blocked_ns.saturating_add(number("rwnd_limited_ns"));
        one.round_trip_ns = one.round_trip_ns.max(number("rtt_ns"));
        let has = |field: &str| log.number(row, field).is_some();
        one.has_window |= has("cwnd_bytes") && has("in_flight_bytes");
    }
    let named = by_host
        .into_iter()
        .map(|(host, one)| LoggedQuic { host, ..one });
    named.collect()
}

/// Counts packets. A packet with several frames has several events with the same time, number and kind: it counts once.
fn count_packets<'c>(log: &FindingEventLog<'c>, by_host: &mut BTreeMap<&'c str, LoggedQuic<'c>>) {
    let mut spans: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for keyword in ["QUIC_SENT", "QUIC_LOST", "QUIC_RECEIVED"] {
        let mut at_once = BTreeSet::new();
        let mut moment = 0;
        for row in log.rows(keyword).iter().copied() {
            let (host, at_ns) = (log.host(row), log.at(row));
            let span = spans.entry(host).or_insert((at_ns, at_ns));
            *span = (span.0.min(at_ns), span.1.max(at_ns));
            if std::mem::replace(&mut moment, at_ns) != at_ns {
                at_once.clear();
            }
            let kind = log.text(row, "kind").or_else(|| log.text(row, "cause"));
            let number = log.number(row, "packet");
            let is_new = number.is_none() || at_once.insert((host, number, kind));
            let one = by_host.entry(host).or_default();
            match keyword {
                "QUIC_SENT" => {
                    one.sent += u64::from(is_new);
                    let of_stream = log.number(row, "offset").and(log.number(row, "bytes"));
                    one.sent_bytes = one.sent_bytes.saturating_add(of_stream.unwrap_or(0).max(0));
                }
                "QUIC_LOST" if is_new => {
                    one.lost += 1;
                    *one.causes.entry(kind.unwrap_or_default()).or_default() += 1;
                    one.lost_rows.push(row);
                }
                _ => {}
            }
        }
    }
    for (host, (from, to)) in spans {
        by_host.entry(host).or_default().time_ns = to - from;
    }
}
