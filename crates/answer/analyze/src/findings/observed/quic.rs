//! What logs of QUIC stacks say of their own connections: packets sent and lost, and what the sender waited for, host by host. It
//! finds nothing.

use crate::findings::event_log::FindingEventLog;
use crate::findings::observed::connections::is_observed;
use std::collections::{BTreeMap, BTreeSet};

/// What one host logged.
#[derive(Debug, Default)]
pub(crate) struct LoggedQuic<'c> {
    pub(crate) host: &'c str,
    /// Packets that it sent, and those of them that it found lost.
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// How often for which reason.
    pub(crate) causes: BTreeMap<&'c str, u64>,
    pub(crate) lost_rows: Vec<u32>,
    /// Bytes of streams that it sent.
    pub(crate) sent_bytes: i64,
    /// From its first packet to its last.
    pub(crate) time_ns: u64,
    /// The longest round trip that it reports.
    pub(crate) round_trip_ns: i64,
    pub(crate) info_rows: Vec<u32>,
    /// Time that its figures cover, in which it had more to send than it might, and of that the time in which flow control held it back.
    pub(crate) covered_ns: i64,
    pub(crate) busy_ns: i64,
    pub(crate) blocked_ns: i64,
    /// It reports its window and what is in flight, without which it is not known what limits it.
    pub(crate) has_window: bool,
}

/// So many packets of all are many to lose; of fewer it takes some, and some of all.
const MANY: f64 = 0.01;
const SOME: u64 = 5;
const LITTLE: f64 = 0.001;

impl LoggedQuic<'_> {
    /// How long its congestion window was full, and for which share of its connection.
    pub(crate) fn full_ns(&self) -> i64 {
        self.busy_ns.saturating_sub(self.blocked_ns).max(0)
    }

    /// See `full_ns`.
    pub(crate) fn share_full(&self) -> f64 {
        self.full_ns() as f64 / self.covered_ns.max(1) as f64
    }

    /// The share of its packets that were lost.
    pub(crate) fn share_lost(&self) -> f64 {
        self.lost as f64 / self.sent.max(self.lost).max(1) as f64
    }

    /// Whether that is more than usual.
    pub(crate) fn loses_many(&self) -> bool {
        let share = self.share_lost();
        share >= MANY || self.lost >= SOME && share >= LITTLE
    }
}

/// Hosts that logged connections of QUIC, where nothing was measured. Runs that are measured have these events too.
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

/// Packets: one that carries several frames is several events of one moment, number and kind.
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
