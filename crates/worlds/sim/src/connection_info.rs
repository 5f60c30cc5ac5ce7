//! A simulated connection as its machine reports it, and the row of a `TCP_INFO` event for an interval of it.

use stackline_core::time::Duration;
use stackline_events::EventValue;
use stackline_events::catalogue::families::ConnectionReport;
use stackline_proto::tcp::TcpFacts;

/// A connection as its machine reports it at a moment, as in `TCP_INFO`; what it does not have is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionInfo {
    /// The congestion window.
    pub cwnd_bytes: Option<u64>,
    /// Bytes sent and neither acknowledged nor lost, as far as is known.
    pub in_flight_bytes: Option<u64>,
    /// The smoothed round trip time.
    pub rtt: Option<Duration>,
    /// Segments or packets sent again so far.
    pub retransmits: u64,
    /// The time so far with data to send or in flight.
    pub busy: Option<Duration>,
    /// The part of `busy` in which the peer's window held the sender back.
    pub receive_window_limited: Option<Duration>,
    /// The part of `busy` in which the send buffer was full and all of it in flight.
    pub send_buffer_limited: Option<Duration>,
    /// Bytes written and not sent.
    pub unsent_bytes: Option<u64>,
    /// Bytes that have arrived and were not taken.
    pub receive_queue_bytes: Option<u64>,
    /// The window that the peer offers.
    pub send_window_bytes: Option<u64>,
    /// The size of a full segment or packet.
    pub mss_bytes: Option<u64>,
    /// Bytes that the peer has acknowledged so far.
    pub acked_bytes: Option<u64>,
}

impl ConnectionInfo {
    /// The state of a TCP machine.
    #[must_use]
    pub fn of_tcp(facts: &TcpFacts) -> Self {
        let mss = u64::from(facts.mss);
        Self {
            cwnd_bytes: Some(u64::from(facts.window) * mss),
            in_flight_bytes: Some(facts.in_flight),
            rtt: Some(facts.rtt),
            retransmits: facts.retransmits,
            busy: Some(facts.busy),
            receive_window_limited: Some(facts.receive_window_limited),
            send_buffer_limited: Some(facts.send_buffer_limited),
            unsent_bytes: Some(facts.unsent),
            receive_queue_bytes: Some(facts.waiting),
            send_window_bytes: Some(facts.peer_window),
            mss_bytes: Some(mss),
            acked_bytes: Some(facts.bytes_acked),
        }
    }

    /// The data of an event at the end of an interval, without the connection: its state now, and what grew since `before`.
    #[must_use]
    pub fn since(&self, before: &Self, interval: Duration) -> ConnectionReport<'static> {
        let value = |value: Option<u64>| value.map_or(EventValue::Absent, EventValue::from);
        let grew = |get: fn(&Self) -> Option<u64>| {
            value(get(self).map(|n| n.saturating_sub(get(before).unwrap_or(0))))
        };
        ConnectionReport {
            interval_ns: interval.0.into(),
            cwnd_bytes: value(self.cwnd_bytes),
            in_flight_bytes: value(self.in_flight_bytes),
            rtt_ns: value(self.rtt.map(|rtt| rtt.0)),
            retransmits: self.retransmits.saturating_sub(before.retransmits).into(),
            busy_ns: grew(|info| info.busy.map(|time| time.0)),
            rwnd_limited_ns: grew(|info| info.receive_window_limited.map(|time| time.0)),
            sndbuf_limited_ns: grew(|info| info.send_buffer_limited.map(|time| time.0)),
            unsent_bytes: value(self.unsent_bytes),
            receive_queue_bytes: value(self.receive_queue_bytes),
            send_window_bytes: value(self.send_window_bytes),
            mss_bytes: value(self.mss_bytes),
            acked_bytes: grew(|info| info.acked_bytes),
            ..ConnectionReport::default()
        }
    }
}
