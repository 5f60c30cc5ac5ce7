//! The totals of a TCP connection without an answered request (a transfer in one direction, or a failed one): round trip, bytes,
//! retransmissions, time with a full window, the longest quiet time. They are the same row as for connections of captures.

use crate::exchange::ExchangeEnd;
use crate::goodput_series::GoodputSeries;
use crate::quiet_time::QuietTime;
use stackline_events::EventValue;
use stackline_events::catalogue::rows::{TcpConnection, TcpTransfer};
use stackline_events::unit_ids::{self, EventStreamDirection};

/// The totals of a finished connection without an answered request.
#[derive(Clone, Debug)]
pub struct TransferAccount {
    /// The number of the connection.
    pub flow: u32,
    /// Who opened it, and who was connected to.
    pub ends: [ExchangeEnd; 2],
    /// When it began, and when the last of it passed, ns.
    pub span_ns: (u64, u64),
    /// Whether its set-up was seen: it did not exist before.
    pub is_new: bool,
    /// The round trip of the set-up, ns.
    pub(super) round_trip_ns: Option<u64>,
    /// The shortest time from data to its acknowledgement, ns.
    pub(super) least_ack_ns: Option<u64>,
    /// Bytes of data of each direction.
    pub(super) bytes: [u64; 2],
    /// Retransmitted segments of each direction.
    pub(super) again: [u64; 2],
    /// How long windows were full in both directions together, ns.
    pub(super) full_ns: u64,
    /// How often a window became zero.
    pub(super) zero_windows: u64,
    pub(super) quiet: QuietTime,
    /// The goodput of both directions.
    pub(super) goodput: [GoodputSeries; 2],
    /// The thread of each end that wrote or read its data; 0 if that was not seen.
    pub threads: [u32; 2],
    /// How it ended: `reset`, `closed`, or `open`.
    pub(super) end: &'static str,
}

impl TransferAccount {
    /// Emits the rows of the connection at a host; `programs` are those of its ends, empty where they are not known.
    pub fn emit(
        &self,
        host: &str,
        programs: [&str; 2],
        emit: &mut crate::exchange_events::RequestEventSink<'_>,
    ) {
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
            quiet_ns: self.quiet.longest_ns().into(),
            quiet_until: self.quiet.until().into(),
            end: self.end.into(),
            ..TcpConnection::default()
        };
        row.emit_on(host, self.span_ns.0, emit);
        let pauses = self.quiet.pauses();
        let row = TcpTransfer {
            stream: unit_ids::stream(flow, EventStreamDirection::There).into(),
            initiator_program: programs[there].into(),
            responder_program: programs[back].into(),
            pauses_there: pauses[there].count.into(),
            paused_there_ns: pauses[there].ns.into(),
            pauses_back: pauses[back].count.into(),
            paused_back_ns: pauses[back].ns.into(),
        };
        row.emit_on(host, self.span_ns.0, emit);
        for direction in [EventStreamDirection::There, EventStreamDirection::Back] {
            let stream = unit_ids::stream(flow, direction);
            self.goodput[direction as usize].emit(stream, host, emit);
        }
    }
}
