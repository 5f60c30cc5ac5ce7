//! What a connection's own figures say of its sender over time: window, bytes in flight, round trip, and what it waited for, as
//! `QUIC_INFO`. Stacks log what changes, at the moment when it does.

use super::values::{count_of, first_of, first_text, nanoseconds, number_of};
use serde_json::Value as Json;
use stackline_events::{EventTable, catalogue::rows::QuicInfo};

/// In flight that much of the window, or all but that much of it, a sender is limited by it.
const FULL: f64 = 0.8;
const ROOM_BYTES: u64 = 3000;

/// The sender of one trace.
#[derive(Default)]
pub(super) struct QlogSender {
    window_bytes: Option<u64>,
    in_flight_bytes: Option<u64>,
    round_trip_ns: Option<u64>,
    least_round_trip_ns: Option<u64>,
    /// It says itself that its program gives it nothing to send.
    is_application_limited: bool,
    /// Since when the receiver's flow control holds it back.
    blocked_since_ns: Option<u64>,
    lost: u64,
    /// What came since the last `QUIC_INFO`.
    interval: SenderInterval,
}

/// The time since the last report.
#[derive(Default)]
struct SenderInterval {
    since_ns: Option<u64>,
    /// Up to when it is accounted for.
    until_ns: u64,
    busy_ns: u64,
    blocked_ns: u64,
}

impl QlogSender {
    /// Accounts for the time up to a moment, before what happens then changes anything.
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

    /// Whether it has more to send than it may: blocked, or so much in flight that its window is full.
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

    /// The least round trip that it measured.
    pub(super) const fn least_round_trip_ns(&self) -> Option<u64> {
        self.least_round_trip_ns
    }

    /// A packet was found lost.
    pub(super) const fn lose_packet(&mut self) {
        self.lost += 1;
    }

    /// Frames of a packet that it sent, or that it received: the receiver's flow control holds it back between the two kinds.
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

    /// Its own word for its state.
    pub(super) fn take_state(&mut self, data: &Json) {
        if let Some(state) = first_text(data, &["new", "state"]) {
            self.is_application_limited =
                matches!(state, "application_limited" | "app_limited" | "quiescence");
        }
    }

    /// Figures that changed, in the trace's units of time.
    pub(super) fn take_figures(&mut self, data: &Json, unit_ns: i64) {
        let bytes = |names: &[&str]| first_of(data, names).and_then(count_of);
        let time = |names: &[&str]| {
            let time = first_of(data, names).and_then(number_of)?;
            u64::try_from(nanoseconds(time, unit_ns)?).ok()
        };
        let trip = time(&["smoothed_rtt", "latest_rtt"]);
        let trips = [time(&["min_rtt"]), time(&["latest_rtt"]), trip];
        let trips = trips.into_iter().flatten().filter(|trip_ns| *trip_ns > 0);
        self.least_round_trip_ns = trips.chain(self.least_round_trip_ns).min();
        let window = bytes(&["congestion_window", "cwnd", "current_cwnd"]);
        self.window_bytes = window.or(self.window_bytes);
        self.in_flight_bytes = bytes(&["bytes_in_flight"]).or(self.in_flight_bytes);
        self.round_trip_ns = trip.or(self.round_trip_ns);
    }

    /// Reports the time since the last report, and begins anew.
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
        table.push(QuicInfo::KEYWORD, host, at_ns, &info.values());
        (self.interval.since_ns, self.interval.until_ns) = (Some(at_ns), at_ns);
    }

    /// Whether there is anything to report at the end.
    pub(super) const fn has_unreported(&self) -> bool {
        self.interval.blocked_ns > 0 || self.lost > 0 && self.window_bytes.is_some()
    }

    /// The end of what is accounted for.
    pub(super) const fn until_ns(&self) -> u64 {
        self.interval.until_ns
    }
}
