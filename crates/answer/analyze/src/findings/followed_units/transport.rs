//! Connections between the servers of a session (a run without measurements, whose units are followed through events) and other hosts, from
//! the `TCP_INFO` events of monitors: what limited them, and what was retransmitted.

use crate::blocked::{Blocked, blocked};
use crate::findings::followed_units::monitored::SessionSpan;
use crate::findings::rows::EventRows;
use crate::lifelines::Lifeline;
use crate::statistics::to_f64;
use stackline_events::catalogue::{DataFate, fate};
use std::collections::BTreeMap;

/// Fewer unread bytes than this (a few segments) are normal: they are just about to be read.
const FEW: i64 = 16 << 10;

/// The connections of all servers together; shares are of the monitored time of connections, 0 to 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransportSeen {
    /// The number of connections that servers send on.
    pub(crate) connections: usize,
    /// The share in which the receiver's window limited senders.
    pub(crate) window: f64,
    /// The share in which the send buffer limited senders.
    pub(crate) send_buffer: f64,
    /// The share in which received data lay unread at the other hosts.
    pub(crate) unread: f64,
    /// The share of intervals in which a sender had data to send or in flight and nothing was acknowledged.
    pub(crate) stalled: f64,
    /// The number of retransmitted segments.
    pub(crate) retransmits: u64,
    /// The most bytes that one connection had in flight.
    pub(crate) in_flight_bytes: u64,
    /// The longest round trip reported.
    pub(crate) round_trip_ns: u64,
    /// The largest segment size.
    pub(crate) segment_bytes: u64,
    /// The rows of the servers' events.
    pub(crate) rows: Vec<u32>,
}

impl TransportSeen {
    /// Sums up the events of connections between servers and other hosts; `None` if no monitor saw a server's connection.
    pub(crate) fn from_log(log: &EventRows<'_>, servers: &[&str]) -> Option<Self> {
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

/// The share of the time that servers waited for retransmissions: blocked while something was retransmitted, or without any
/// acknowledgement. `None` if no events could have shown it.
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

/// The share of the time, per server, of intervals in which hosts were blocked and retransmitted something.
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

/// Hosts that could not get their data through: no unit begins there, and monitors saw retransmissions but hardly any acknowledged bytes.
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
