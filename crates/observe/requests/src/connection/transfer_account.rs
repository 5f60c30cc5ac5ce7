//! What all packets of a connection say together, where it has no answered request: a transfer in one direction, or one that failed.
//! Round trip, bytes, what was sent again, how long there was no room, the longest quiet time: the row that captures have of theirs.

use crate::exchange::ExchangeEnd;
use stackline_events::EventValue;
use stackline_events::catalogue::rows::TcpConnection;
use stackline_events::unit_ids::{self, EventStreamDirection};

/// The longest time without data, and how it ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuietTime {
    data_ns: Option<u64>,
    longest_ns: u64,
    until: &'static str,
}

impl QuietTime {
    /// New data pass, or data again.
    pub(super) fn end(&mut self, at_ns: u64, direction: EventStreamDirection, is_new: bool) {
        let quiet_ns = self
            .data_ns
            .map_or(0, |data_ns| at_ns.saturating_sub(data_ns));
        self.data_ns = Some(self.data_ns.unwrap_or(0).max(at_ns));
        if quiet_ns > self.longest_ns {
            self.longest_ns = quiet_ns;
            self.until = match (is_new, direction) {
                (false, _) => "retransmission",
                (true, EventStreamDirection::There) => "initiator",
                (true, EventStreamDirection::Back) => "responder",
            };
        }
    }

    /// Until now nobody was waited for but a receiver without room.
    pub(super) fn restart(&mut self, at_ns: u64) {
        self.data_ns = Some(self.data_ns.unwrap_or(0).max(at_ns));
    }
}

/// A connection without an answered request, when it is over.
#[derive(Clone, Debug)]
pub struct TransferAccount {
    /// Its flow.
    pub flow: u32,
    /// Who opened it, and who was connected to.
    pub ends: [ExchangeEnd; 2],
    /// When it began, and when the last of it passed, ns.
    pub span_ns: (u64, u64),
    pub(super) round_trip_ns: Option<u64>,
    pub(super) least_ack_ns: Option<u64>,
    pub(super) bytes: [u64; 2],
    pub(super) again: [u64; 2],
    pub(super) full_ns: u64,
    pub(super) zero_windows: u64,
    pub(super) quiet: QuietTime,
    pub(super) end: &'static str,
}

impl TransferAccount {
    /// Its row, at a host.
    pub fn emit(&self, host: &str, emit: &mut crate::exchange_events::RequestEventSink<'_>) {
        let [initiator, responder] =
            [&self.ends[0], &self.ends[1]].map(|end| end.address.to_string());
        let flow = self.flow & unit_ids::LAST_FLOW;
        let [there, back] = [EventStreamDirection::There, EventStreamDirection::Back]
            .map(|direction| direction as usize);
        let row = TcpConnection {
            stream: unit_ids::stream(flow, EventStreamDirection::There).into(),
            initiator: EventValue::from(&initiator),
            responder: EventValue::from(&responder),
            duration_ns: self.span_ns.1.saturating_sub(self.span_ns.0).into(),
            handshake_ns: self.round_trip_ns.into(),
            ack_there_ns: self.least_ack_ns.into(),
            bytes_there: self.bytes[there].into(),
            bytes_back: self.bytes[back].into(),
            again_there: self.again[there].into(),
            again_back: self.again[back].into(),
            zero_windows: self.zero_windows.into(),
            window_full_ns: self.full_ns.into(),
            quiet_ns: self.quiet.longest_ns.into(),
            quiet_until: self.quiet.until.into(),
            end: self.end.into(),
            ..TcpConnection::default()
        };
        row.emit_on(host, self.span_ns.0, emit);
    }
}
