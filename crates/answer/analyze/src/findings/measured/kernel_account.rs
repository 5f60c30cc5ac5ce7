//! Estimates how the senders of calls over a kernel's TCP spent their time, as a kernel does not report all their states: from `TCP_INFO`
//! on windows and buffers, the closed form of slow start, and losses where data was retransmitted. All states together get no more than
//! the time left by propagation, data on links, service and opening connections.

use crate::findings::measured::account::{PartTimeShares, States};
use crate::findings::measured::answered_time;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{LEAST_TRIP_S, MeasuredPart, opposite_side, side_of};
use crate::statistics::to_f64;
use stackline_core::catalogue::FlowControl;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_model::slow_start::{INITIAL_SEGMENTS, SlowStartTransfer, time_transfer};

/// A limit that the kernel counted for less than this share of the time may be an accident of one round trip.
const COUNTED: f64 = 0.05;

/// The estimated shares of a part with calls or turns over a kernel's TCP; `None` for other parts, or if no network is modelled. `away_s`
/// is the time that its endpoints spent outside operations, s.
pub(crate) fn estimate_time_shares(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
    away_s: f64,
) -> Option<PartTimeShares> {
    let trip = part.round_trip_s().filter(|trip| *trip >= LEAST_TRIP_S)?;
    let kernel = part.plan.stack.facts.flow_control == FlowControl::KernelBuffers;
    if !kernel || !part.work.is_answered() || part.paths.is_none() {
        return None;
    }
    let (basis, used) = (part.basis_s(), measurement.own_use(part));
    let taken = answered_time::distance(part) + used + (part.set_up().0 + away_s) / basis;
    let mut left = (1.0 - taken).clamp(0.0, 1.0);
    let mut sides = Vec::new();
    for side in [PairSide::Initiator, PairSide::Responder] {
        let counts = KernelCounts::from_part(part, side);
        let mut take = |share: f64| {
            let share = share.clamp(0.0, left);
            left -= share;
            share
        };
        let slow_start = take(counts.opening_s(part, trip) / basis);
        let window = counts.window_bytes(part, side);
        let receive_window = take(counts.kept_back(counts.window_s, window, trip, basis));
        let buffer = part.setting_of(side, "send_buffer").map(to_f64);
        let send_buffer = take(counts.kept_back(counts.buffer_s, buffer, trip, basis));
        // Nothing counts this time, so it gets all that the others leave.
        let recovery = if counts.sent_again > 0 {
            take(1.0)
        } else {
            0.0
        };
        let states = States {
            slow_start,
            receive_window,
            send_buffer,
            recovery,
            ..States::default()
        };
        sides.push((side, states));
    }
    Some(PartTimeShares::estimated(sides, used))
}

/// The counts of one side's sender in a kernel, over all runs.
#[derive(Clone, Copy, Debug, Default)]
struct KernelCounts {
    /// Time that the sender was limited by the receiver's window, s.
    window_s: f64,
    /// Time that it was limited by its send buffer, s.
    buffer_s: f64,
    /// Segments retransmitted.
    sent_again: u64,
    /// Bytes that its peer received.
    bytes: u64,
    /// The number of connections.
    connections: u64,
    /// The number of messages that it sent.
    messages: u64,
}

impl KernelCounts {
    fn from_part(part: &MeasuredPart<'_>, side: PairSide) -> Self {
        let runs = part.records.len() as u64 * u64::from(part.plan.replicas.max(1));
        let mut counts = Self {
            connections: part.set_up().1.max(runs),
            messages: part.exchanges(),
            ..Self::default()
        };
        for record in &part.records {
            let grew = |get: fn(&TransportRecord) -> Option<f64>| {
                let (start, stop) = side_of(record, side).transport?;
                Some((get(&stop)? - get(&start)?).max(0.0))
            };
            counts.window_s += grew(|one| one.receive_window_limited_s).unwrap_or(0.0);
            counts.buffer_s += grew(|one| one.send_buffer_limited_s).unwrap_or(0.0);
            if let Some((start, stop)) = side_of(record, side).transport {
                counts.sent_again += stop.retransmits.saturating_sub(start.retransmits);
            }
            if let Some((start, stop)) = side_of(record, opposite_side(side)).transport {
                counts.bytes += stop.bytes_received.saturating_sub(start.bytes_received);
            }
        }
        counts
    }

    /// The mean size of a message, bytes.
    fn message_bytes(&self) -> u64 {
        self.bytes / self.messages.max(1)
    }

    /// Seconds that slow start delays the first message of each new connection, over all connections.
    fn opening_s(&self, part: &MeasuredPart<'_>, trip: f64) -> f64 {
        let Some(segment_bytes) = part.segment_bytes().filter(|bytes| *bytes > 0) else {
            return 0.0;
        };
        let transfer = SlowStartTransfer {
            bytes: self.message_bytes(),
            segment_bytes,
            initial_segments: INITIAL_SEGMENTS,
            rate_bit_s: part.bottleneck_bit_s(),
            rtt_s: trip,
            window_bytes: None,
        };
        let at_rate = |rate| 8.0 * to_f64(transfer.bytes) / rate;
        let at_rate = transfer.rate_bit_s.map_or(0.0, at_rate);
        let opening = time_transfer(&transfer).map_or(0.0, |sent| sent.time_s - at_rate);
        to_f64(self.connections.min(self.messages)) * opening.max(0.0)
    }

    /// The window that the other side's receive buffer offers, bytes.
    fn window_bytes(&self, part: &MeasuredPart<'_>, side: PairSide) -> Option<f64> {
        let memory = part.setting_of(opposite_side(side), "receive_buffer")?;
        Some(to_f64(part.offered_of(memory)))
    }

    /// The share of the time that a limit of `limit` bytes in flight takes, of which the kernel counted `counted_s`. A kernel counts only
    /// while nothing else holds the sender back, so the share is at least one round trip for each further load of `limit` bytes of a
    /// message.
    fn kept_back(&self, counted_s: f64, limit: Option<f64>, trip: f64, basis: f64) -> f64 {
        let counted = counted_s / basis;
        if counted < COUNTED {
            return counted;
        }
        let loads = limit.map_or(0.0, |limit| to_f64(self.message_bytes()) / limit.max(1.0));
        let by_loads = to_f64(self.messages) * (loads - 1.0).max(0.0) * trip / basis;
        counted.max(by_loads)
    }
}
