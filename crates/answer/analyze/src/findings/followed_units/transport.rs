//! What monitors saw of the connections between servers of a session and the others: what held them back, what was sent again.

use crate::blocked::{Blocked, blocked};
use crate::findings::followed_units::monitored::SessionSpan;
use crate::findings::rows::EventRows;
use crate::lifelines::Lifeline;
use crate::statistics::to_f64;
use stackline_events::catalogue::{DataFate, fate};
use std::collections::BTreeMap;

/// Less unread than a few segments is on its way to its reader.
const FEW: i64 = 16 << 10;

/// The servers' connections together: shares of the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransportSeen {
    pub(crate) connections: usize,
    /// The receiver's window held senders back.
    pub(crate) window: f64,
    /// The send buffer did.
    pub(crate) send_buffer: f64,
    /// What had come lay unread.
    pub(crate) unread: f64,
    /// They had something to send and nothing was acknowledged in a whole interval.
    pub(crate) stalled: f64,
    pub(crate) retransmits: u64,
    /// The most that one of them had on its way.
    pub(crate) in_flight_bytes: u64,
    pub(crate) round_trip_ns: u64,
    /// The largest packets, by their data.
    pub(crate) segment_bytes: u64,
    pub(crate) rows: Vec<u32>,
}

impl TransportSeen {
    /// What monitors saw of connections between servers and the others.
    pub(crate) fn of(log: &EventRows<'_>, servers: &[&str]) -> Option<Self> {
        let mut seen = Self::default();
        let (mut sending_ns, mut reading_ns, mut unread_ns) = (0.0, 0.0, 0.0);
        let (mut window_ns, mut buffer_ns, mut stalled_ns) = (0.0, 0.0, 0.0);
        let mut ends: BTreeMap<(&str, &str), ()> = BTreeMap::new();
        for row in log.rows("TCP_INFO").iter().copied() {
            let number = |field: &str| log.number(row, field).unwrap_or(0).max(0);
            let interval = number("interval_ns") as f64;
            if servers.contains(&log.host(row)) {
                sending_ns += interval;
                window_ns += number("rwnd_limited_ns") as f64;
                buffer_ns += number("sndbuf_limited_ns") as f64;
                let has_more = number("in_flight_bytes").saturating_add(number("unsent_bytes")) > 0;
                stalled_ns += if has_more && number("acked_bytes") == 0 {
                    interval
                } else {
                    0.0
                };
                seen.retransmits = seen
                    .retransmits
                    .saturating_add(number("retransmits").unsigned_abs());
                seen.in_flight_bytes = seen
                    .in_flight_bytes
                    .max(number("in_flight_bytes").unsigned_abs());
                seen.round_trip_ns = seen.round_trip_ns.max(number("rtt_ns").unsigned_abs());
                seen.segment_bytes = seen.segment_bytes.max(number("mss_bytes").unsigned_abs());
                ends.insert(
                    (
                        log.text(row, "local").unwrap_or_default(),
                        log.text(row, "remote").unwrap_or_default(),
                    ),
                    (),
                );
                seen.rows.push(row);
            } else if log
                .text(row, "remote")
                .is_some_and(|remote| servers.contains(&remote))
            {
                reading_ns += interval;
                unread_ns += if number("receive_queue_bytes") >= FEW {
                    interval
                } else {
                    0.0
                };
            }
        }
        seen.connections = ends.len();
        seen.window = window_ns / f64::max(sending_ns, 1.0);
        seen.send_buffer = buffer_ns / f64::max(sending_ns, 1.0);
        seen.stalled = stalled_ns / f64::max(sending_ns, 1.0);
        seen.unread = unread_ns / f64::max(reading_ns, 1.0);
        (seen.connections > 0).then_some(seen)
    }
}

/// Share of the time that servers waited for what was sent again; `None` where nobody would have reported it.
pub(crate) fn resending_share(
    log: &EventRows<'_>,
    servers: usize,
    span: SessionSpan,
    transport: Option<&TransportSeen>,
) -> Option<f64> {
    let names = &log.input.events.names;
    let is_recorded =
        (0..names.len() as u32).any(|name| fate(names.text(name)) == Some(DataFate::SentAgain));
    let stalled = transport.map_or(0.0, |seen| seen.stalled);
    let resending = resending(log, &blocked(log.input.lifelines), servers, span).max(stalled);
    (is_recorded || transport.is_some()).then_some(resending)
}

/// The share of the time that servers were blocked in intervals in which something of theirs was sent again.
fn resending(log: &EventRows<'_>, blocked: &[Blocked], servers: usize, span: SessionSpan) -> f64 {
    let mut times: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let keywords = log.input.events.names.len() as u32;
    let again = (0..keywords)
        .map(|name| log.input.events.names.text(name))
        .filter(|name| fate(name) == Some(DataFate::SentAgain));
    for row in again.flat_map(|name| log.rows(name)).copied() {
        times.entry(log.host(row)).or_default().push(log.at(row));
    }
    times.values_mut().for_each(|times| times.sort_unstable());
    let mut sum = 0;
    for one in blocked {
        let Some(times) = times.get(log.input.lifelines.groups[one.group as usize].as_str()) else {
            continue;
        };
        let within = |(from, to): &&(u64, u64)| {
            times.partition_point(|at| at < from) < times.partition_point(|at| at <= to)
        };
        sum += one
            .intervals
            .iter()
            .filter(within)
            .map(|(from, to)| to - from)
            .sum::<u64>();
    }
    to_f64(sum) / span.length_ns() / to_f64(servers.max(1) as u64)
}

/// Hosts where no unit begins, of which monitors say that something was to be sent and sent again, and not acknowledged.
pub(crate) fn stuck<'c>(log: &EventRows<'c>) -> Vec<&'c str> {
    let lifelines = log.input.lifelines;
    let begins = |host: &str| {
        let first = |line: &Lifeline| {
            lifelines
                .passages_of(line)
                .first()
                .map(|first| first.point as usize)
        };
        lifelines
            .lines
            .iter()
            .filter_map(first)
            .any(|point| lifelines.points[point].host == host)
    };
    let mut hosts: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for row in log.rows("TCP_INFO").iter().copied() {
        let number = |field: &str| log.number(row, field).unwrap_or(0);
        let sum = hosts.entry(log.host(row)).or_default();
        sum.0 = sum.0.saturating_add(number("retransmits"));
        sum.1 = sum.1.saturating_add(number("acked_bytes"));
    }
    let is_stuck =
        |(host, (again, acked)): &(&str, (i64, i64))| *again > 0 && *acked < FEW && !begins(host);
    hosts
        .into_iter()
        .filter(is_stuck)
        .map(|(host, _)| host)
        .collect()
}
