//! What the kernel said of the senders of traced transfers (`TCP_INFO` with a stream): how long each was held back by its peer's window and
//! by its own send buffer, which packets do not show.

use crate::captured_connections::CapturedConnection;
use crate::findings::event_log::FindingEventLog;
use std::collections::HashMap;

/// What held the sender of a stream back, in the time that the kernel's counters cover.
#[derive(Debug, Default)]
pub(crate) struct SenderLimits {
    /// The time that the counters cover, ns.
    pub(crate) covered_ns: f64,
    /// The send buffer was full, and the program could hand over nothing, ns.
    pub(crate) send_buffer_ns: f64,
    /// The most bytes under way at once.
    pub(crate) in_flight_bytes: i64,
    /// The longest round trip, ns.
    pub(crate) round_trip_ns: i64,
    /// The rows of its events.
    pub(crate) rows: Vec<u32>,
}

impl SenderLimits {
    /// The share of the covered time in which the send buffer was full, 0 to 1.
    pub(crate) fn share_of_send_buffer(&self) -> f64 {
        (self.send_buffer_ns / self.covered_ns.max(1.0)).min(1.0)
    }
}

impl CapturedConnection {
    /// How long the sender's program gave it nothing to send, ns: its pauses, without the time in which the program waited because the
    /// send buffer was full.
    pub(crate) fn program_paused_ns(&self, sender: usize, limits: Option<&SenderLimits>) -> u64 {
        let waited_ns = limits.map_or(0.0, |limits| limits.send_buffer_ns);
        self.paused_ns[sender].saturating_sub(waited_ns as u64)
    }
}

/// By stream: what held its sender back.
pub(crate) fn collect_sender_limits(log: &FindingEventLog<'_>) -> HashMap<i64, SenderLimits> {
    let mut found = HashMap::<i64, SenderLimits>::new();
    for row in log.rows("TCP_INFO").iter().copied() {
        let number = |field: &str| log.number(row, field).map(|value| value.max(0));
        // A kernel before 4.10 does not count this time.
        let (Some(stream), Some(limited)) = (number("stream"), number("sndbuf_limited_ns")) else {
            continue;
        };
        let one = found.entry(stream).or_default();
        one.covered_ns += number("interval_ns").unwrap_or(0) as f64;
        one.send_buffer_ns += limited as f64;
        one.in_flight_bytes = one
            .in_flight_bytes
            .max(number("in_flight_bytes").unwrap_or(0));
        one.round_trip_ns = one.round_trip_ns.max(number("rtt_ns").unwrap_or(0));
        one.rows.push(row);
    }
    found
}
