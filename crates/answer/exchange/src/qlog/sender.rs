//! Follows a connection's metrics and reports on its sender as `QUIC_INFO` events: congestion window, bytes in flight, round-trip time,
//! and what it waited for. Stacks log a metric when it changes.

use super::values::{count_of, first_of, first_text, nanoseconds, number_of};
use serde_json::Value as Json;
use stackline_events::{EventTable, catalogue::rows::QuicInfo};

/// A sender is limited by its congestion window if this share of the window is in flight.
const FULL: f64 = 0.8;
/// It is also limited if the window has no more than this many bytes left.
const ROOM_BYTES: u64 = 3000;

/// The sender of one trace.
#[derive(Default)]
pub(super) struct QlogSender {
    /// The congestion window.
    window_bytes: Option<u64>,
    /// The bytes in flight.
    in_flight_bytes: Option<u64>,
    /// The smoothed round-trip time, or the latest one, ns.
    round_trip_ns: Option<u64>,
    /// The least round-trip time, ns.
    /// Whether the sender reports that its program gives it nothing to send.
    is_application_limited: bool,
    /// Since when the receiver's flow control blocks it, ns.
    blocked_since_ns: Option<u64>,
    /// Packets that were lost since the last report.
    lost: u64,
    /// The time since the last `QUIC_INFO`.
    interval: SenderInterval,
}

/// The time since the last report.
#[derive(Default)]
struct SenderInterval {
    /// The start of the interval, ns.
    since_ns: Option<u64>,
    /// Up to when times are accounted for, ns.
    until_ns: u64,
    /// For how long the sender had more to send than it was allowed, ns.
    busy_ns: u64,
    /// For how long the receiver's flow control blocked it, ns.
    blocked_ns: u64,
}

impl QlogSender {
    /// Accounts for the time up to `at_ns`. Must be called before an event at that time changes anything.
    pub(super) fn pass(&mut self, at_ns: u64) {
        let busy = self.is_busy();
        let interval = &mut self.interval;
        if interval.since_ns.is_none() {
            (interval.since_ns, interval.until_ns) = (Some(at_ns), at_ns);
        }
        let passed_ns = at_ns.saturating_sub(interval.until_ns);
        if self.blocked_since_ns.is_some() {
            interval.blocked_ns += passed_ns;
        }
        if busy {
            interval.busy_ns += passed_ns;
        }
        interval.until_ns = interval.until_ns.max(at_ns);
    }

    /// Whether the sender has more to send than it may: it is blocked, or its congestion window is full.
    fn is_busy(&self) -> bool {
        if self.blocked_since_ns.is_some() {
            return true;
        }
        let in_flight = self.in_flight_bytes.unwrap_or(0);
        let is_full = self.window_bytes.is_none_or(|window| {
            in_flight as f64 >= FULL * window as f64
                || in_flight.saturating_add(ROOM_BYTES) >= window
        });
        in_flight > 0 && is_full && !self.is_application_limited
    }

    /// Counts a lost packet.
    pub(super) const fn lose_packet(&mut self) {
        self.lost += 1;
    }

    /// Takes the frames of a packet: sending a BLOCKED frame begins a blocked time; sending stream data or receiving a larger limit ends
    /// it.
    pub(super) fn take_frames(&mut self, frames: &[Json], is_sent: bool, at_ns: u64) {
        let has = |names: &[&str]| {
            frames.iter().any(|frame| {
                frame["frame_type"]
                    .as_str()
                    .is_some_and(|kind| names.contains(&kind))
            })
        };
        let is_blocked = has(&["data_blocked", "stream_data_blocked"]);
        if is_sent && is_blocked {
            self.blocked_since_ns = self.blocked_since_ns.or(Some(at_ns));
        } else if is_sent && has(&["stream"]) || !is_sent && has(&["max_data", "max_stream_data"]) {
            self.blocked_since_ns = None;
        }
    }

    /// Takes the sender's report of its state.
    pub(super) fn take_state(&mut self, data: &Json) {
        if let Some(state) = first_text(data, &["new", "state"]) {
            self.is_application_limited =
                matches!(state, "application_limited" | "app_limited" | "quiescence");
        }
    }

    /// Takes metrics that changed; their times are in the trace's unit. Returns the least round trip among them, ns.
    pub(super) fn take_figures(&mut self, data: &Json, unit_ns: i64) -> Option<u64> {
        let bytes = |names: &[&str]| first_of(data, names).and_then(count_of);
        let time = |names: &[&str]| {
            let time = first_of(data, names).and_then(number_of)?;
            u64::try_from(nanoseconds(time, unit_ns)?).ok()
        };
        let trip = time(&["smoothed_rtt", "latest_rtt"]);
        let trips = [time(&["min_rtt"]), time(&["latest_rtt"]), trip];
        let trips = trips.into_iter().flatten().filter(|trip_ns| *trip_ns > 0);
        let least_ns = trips.min();
        let window = bytes(&["congestion_window", "cwnd", "current_cwnd"]);
        self.window_bytes = window.or(self.window_bytes);
        self.in_flight_bytes = bytes(&["bytes_in_flight"]).or(self.in_flight_bytes);
        self.round_trip_ns = trip.or(self.round_trip_ns);
        least_ns
    }

    /// Reports on the time since the last report.
    pub(super) fn report(&mut self, host: &str, at_ns: u64, table: &mut EventTable) {
        let interval = std::mem::take(&mut self.interval);
        let since_ns = interval.since_ns.unwrap_or(at_ns);
        let info = QuicInfo {
            interval_ns: at_ns.saturating_sub(since_ns).into(),
            cwnd_bytes: self.window_bytes.into(),
            in_flight_bytes: self.in_flight_bytes.into(),
            rtt_ns: self.round_trip_ns.into(),
            retransmits: std::mem::take(&mut self.lost).into(),
            busy_ns: interval.busy_ns.into(),
            rwnd_limited_ns: interval.blocked_ns.into(),
            ..QuicInfo::default()
        };
        info.emit_on(host, at_ns, &mut table.emitter());
        (self.interval.since_ns, self.interval.until_ns) = (Some(at_ns), at_ns);
    }

    /// Whether something is left to report at the end.
    pub(super) const fn has_unreported(&self) -> bool {
        self.interval.blocked_ns > 0 || self.lost > 0 && self.window_bytes.is_some()
    }

    /// Up to when times are accounted for, ns.
    pub(super) const fn until_ns(&self) -> u64 {
        self.interval.until_ns
    }
}
