//! The totals of a QUIC connection, from all its datagrams, whether they could be decrypted or not.

use super::QuicConnection;
use crate::exchange::ExchangeEnd;
use crate::exchange_events::RequestEventSink;
use stackline_events::EventValue;
use stackline_events::catalogue::rows::QuicConnection as QuicConnectionRow;
use stackline_events::unit_ids::{self, EventStreamDirection};

/// The totals of a finished QUIC connection. Arrays of two have one element for each direction.
#[derive(Clone, Debug)]
pub struct QuicAccount {
    /// The number of the connection.
    pub flow: u32,
    /// Who opened it, and who was connected to.
    pub ends: [ExchangeEnd; 2],
    /// The observed host between both ends that forwarded it, if neither end is observed.
    pub seen_at: Option<usize>,
    /// When it began, and when the last of it passed, ns.
    pub span_ns: (u64, u64),
    /// The name of the protocol over QUIC.
    application: &'static str,
    /// How long its set-up took, ns.
    handshake_ns: Option<u64>,
    /// The shortest round trip by the spin bit, ns.
    round_trip_ns: Option<u64>,
    datagrams: [u64; 2],
    bytes: [u64; 2],
    /// Packets of the set-up that were sent again.
    again: u64,
    /// Retry packets of the server.
    retries: u64,
    /// How often an end changed its address.
    migrations: u64,
    /// The longest time without a datagram, ns.
    quiet_ns: u64,
    /// How it ended, in words.
    end: String,
}

impl QuicConnection {
    /// The totals of the connection so far.
    pub(crate) fn account(&self) -> QuicAccount {
        let end = match self.closed {
            None => "open".to_owned(),
            Some(closed) => {
                let side = match closed.side {
                    EventStreamDirection::There => "initiator",
                    EventStreamDirection::Back => "responder",
                };
                let kind = if closed.is_application {
                    "application"
                } else {
                    "QUIC"
                };
                format!("closed by the {side}, {kind} code {}", closed.code)
            }
        };
        QuicAccount {
            flow: self.flow,
            ends: self.ends.clone(),
            seen_at: self.seen_at,
            span_ns: (self.first_ns, self.last_ns),
            application: self.dissector.application(),
            handshake_ns: self.set_up.span().map(|(from, to)| to.saturating_sub(from)),
            round_trip_ns: self.spin.round_trip_ns(),
            datagrams: self.datagrams,
            bytes: self.bytes,
            again: self.set_up.again(),
            retries: self.retries,
            migrations: self.migrations,
            quiet_ns: self.quiet_ns,
            end,
        }
    }
}

impl QuicAccount {
    /// Emits the row of the connection at the first of its hosts that is observed.
    pub fn emit(&self, hosts: &[String], emit: &mut RequestEventSink<'_>) {
        let own = self.ends.iter().find_map(|end| end.host).or(self.seen_at);
        let Some(host) = own.and_then(|host| hosts.get(host)) else {
            return;
        };
        let [initiator, responder] =
            [&self.ends[0], &self.ends[1]].map(|end| end.address.to_string());
        let flow = self.flow & unit_ids::LAST_FLOW;
        let row = QuicConnectionRow {
            stream: unit_ids::stream(flow, EventStreamDirection::There).into(),
            initiator: EventValue::from(&initiator),
            responder: EventValue::from(&responder),
            protocol: self.application.into(),
            duration_ns: self.span_ns.1.saturating_sub(self.span_ns.0).into(),
            handshake_ns: self.handshake_ns.into(),
            round_trip_ns: self.round_trip_ns.into(),
            datagrams_there: self.datagrams[0].into(),
            datagrams_back: self.datagrams[1].into(),
            bytes_there: self.bytes[0].into(),
            bytes_back: self.bytes[1].into(),
            again: self.again.into(),
            retries: self.retries.into(),
            migrations: self.migrations.into(),
            quiet_ns: self.quiet_ns.into(),
            end: EventValue::from(&self.end),
        };
        row.emit_on(host, self.span_ns.0, emit);
    }
}
