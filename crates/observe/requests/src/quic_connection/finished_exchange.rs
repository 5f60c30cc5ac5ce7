//! Turns open exchanges of a QUIC connection, and its set-up, into finished exchanges: with the times of their messages, and why
//! they have no answer (`void`).

use super::{OpenQuicExchange, QuicConnection, SET_UP};
use crate::connection::part_from_idle_set_up;
use crate::exchange::{Exchange, ExchangeMessage};
use stackline_dissect::conversation::{
    ENDED_BEFORE, ExchangeKind, RESET_BEFORE, UNANSWERED, is_unanswered,
};
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::RedactedName;

/// The reason for a missing answer if the server closed the connection.
const SERVER_CLOSED: &str = "the server closed its connection";
/// The reason for an incomplete answer.
const CUT_OFF: &str = "its answer was cut off";
/// Error codes that carry a TLS alert (RFC 9001, section 4.8).
const ALERTS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;

impl QuicConnection {
    /// A new exchange of the connection, without messages.
    fn exchange_of(&self, number: u64, kind: ExchangeKind, protocol: &'static str) -> Exchange {
        let by_spin = self.spin.round_trip_ns();
        let by_set_up = self.set_up.round_trip_ns();
        Exchange {
            flow: self.flow,
            number,
            kind,
            protocol,
            exact: true,
            name: RedactedName::default(),
            status: RedactedName::default(),
            context: None,
            client: self.ends[0].clone(),
            server: self.ends[1].clone(),
            seen_at: self.seen_at,
            reversed: false,
            request: ExchangeMessage::default(),
            response: None,
            turns: Vec::new(),
            parts: 0,
            lookup: self.lookup.filter(|_| self.is_first),
            connect: None,
            connect_again: 0,
            handshake: None,
            round_trip_ns: by_spin.into_iter().chain(by_set_up).min(),
            void: None,
            is_unopened: false,
            gave_up: None,
        }
    }

    /// The set-up of the connection as an exchange; `None` if packets of one side only were seen.
    pub(super) fn finish_set_up(&mut self) -> Option<Exchange> {
        let request = self.set_up.message(EventStreamDirection::There)?;
        let mut exchange = self.exchange_of(SET_UP, ExchangeKind::Handshake, "QUIC");
        exchange.name = self.name.clone();
        if !self.set_up.is_answered() {
            if self.has_data.contains(&true) {
                return None;
            }
            exchange.kind = ExchangeKind::Call;
            exchange.is_unopened = true;
            exchange.connect_again = request.again;
            exchange.request = request;
            exchange.void = Some("nothing answered its connection");
            return Some(exchange);
        }
        exchange.request = self.allot(EventStreamDirection::There, request);
        let response = self
            .set_up
            .message(EventStreamDirection::Back)
            .unwrap_or_default();
        exchange.response = Some(self.allot(EventStreamDirection::Back, response));
        exchange.status = RedactedName::fixed(self.dissector.version().name());
        if let Some((at_ns, status)) = self.refusal() {
            exchange.kind = ExchangeKind::Call;
            exchange.is_unopened = true;
            (exchange.status, exchange.response) = (status, None);
            (exchange.gave_up, exchange.void) = (Some(at_ns), Some("its connection was refused"));
            return Some(exchange);
        }
        if !self.set_up.is_done() && self.closed.is_none() && self.set_up.again() > 0 {
            exchange.void = Some("it was not finished");
        }
        Some(exchange)
    }

    /// When the server refused the connection before it was set up, ns, and the status for that.
    fn refusal(&self) -> Option<(u64, RedactedName)> {
        if self.set_up.is_done() {
            return None;
        }
        if self.has_negotiated {
            return Some((self.last_ns, RedactedName::fixed("version negotiation")));
        }
        let closed = self
            .closed
            .filter(|closed| closed.side == EventStreamDirection::Back)?;
        let status = match closed.code {
            code if ALERTS.contains(&code) => RedactedName::number("alert ", code & 0xff),
            code => RedactedName::number("QUIC error ", code),
        };
        Some((closed.at_ns, status))
    }

    /// Builds the finished exchange of a stream.
    pub(super) fn finish(&mut self, number: u64, open: OpenQuicExchange) -> Exchange {
        let mut exchange =
            self.exchange_of(number + 1, ExchangeKind::Call, self.dissector.protocol());
        exchange.exact = self.dissector.is_exact();
        let directions = self.streams.remove(&(4 * number)).unwrap_or_default();
        let [request, response] = [0, 1].map(|at| directions[at].message(open.ends[at]));
        exchange.request = self.allot(EventStreamDirection::There, request);
        let has_answer = open.has_begun[1];
        exchange.response = has_answer.then(|| self.allot(EventStreamDirection::Back, response));
        let is_cut = open.ends[1].is_none();
        let void = open
            .void
            .or_else(|| is_cut.then_some(if has_answer { CUT_OFF } else { UNANSWERED }));
        let is_unanswered = open.ends[0].is_some() && void.is_some_and(is_unanswered);
        let was_cut = is_cut && has_answer && open.ends[0].is_some();
        let closed_ns = self.closed.map(|closed| closed.at_ns);
        let gave_up = (void == Some(RESET_BEFORE))
            .then_some(open.over_ns)
            .or(closed_ns);
        exchange.gave_up = gave_up.filter(|_| is_unanswered || was_cut);
        let is_closed_by_server = self
            .closed
            .is_some_and(|closed| closed.side == EventStreamDirection::Back);
        exchange.void = match void {
            Some(UNANSWERED | ENDED_BEFORE) if is_closed_by_server => Some(SERVER_CLOSED),
            void => void,
        };
        (exchange.name, exchange.status, exchange.context) = (open.name, open.status, open.context);
        // The set-up belongs to the request that was asked first, which need not be the one that is answered first.
        let has_earlier = self.open.keys().next().is_some_and(|first| *first < number);
        if self.is_first && !has_earlier {
            exchange.handshake = self.set_up.span();
            part_from_idle_set_up(&mut exchange);
            self.is_first = false;
        } else {
            exchange.lookup = None;
        }
        exchange
    }

    /// Moves a message behind the earlier ones of its direction, as if all came in one stream.
    fn allot(
        &mut self,
        direction: EventStreamDirection,
        message: ExchangeMessage,
    ) -> ExchangeMessage {
        let next = &mut self.allotted[direction as usize];
        let from = *next;
        *next = from.saturating_add(message.end);
        ExchangeMessage {
            from,
            end: *next,
            ..message
        }
    }
}
