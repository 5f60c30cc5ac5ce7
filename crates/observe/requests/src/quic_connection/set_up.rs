//! How a connection of QUIC is set up: when the first flights of both sides passed, what of them was sent again, when it was done.

use crate::exchange::ExchangeMessage;
use stackline_dissect::quic::dissector::HandshakeNews;
use stackline_events::unit_ids::EventStreamDirection;

/// Where a datagram passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuicPassing {
    pub(super) at_ns: u64,
    pub(super) leaves: bool,
    pub(super) arrives: bool,
}

/// First and last moment at which something passed.
type Span = Option<(u64, u64)>;

fn extend(span: &mut Span, at_ns: u64) {
    *span = Some(span.map_or((at_ns, at_ns), |(first, last)| {
        (first.min(at_ns), last.max(at_ns))
    }));
}

/// What one side says until the connection is set up.
#[derive(Clone, Copy, Debug, Default)]
struct SetUpFlight {
    bytes: u64,
    left: Span,
    arrived: Span,
    again: u64,
    again_ns: u64,
}

impl SetUpFlight {
    fn first_ns(&self) -> Option<u64> {
        self.left.or(self.arrived).map(|(first, _)| first)
    }
}

/// The set-up of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuicSetUp {
    flights: [SetUpFlight; 2],
    /// When the server's first packet came by, of whatever kind, and the client's first one behind it.
    answer_ns: Option<u64>,
    acknowledged_ns: Option<u64>,
    done_ns: Option<u64>,
}

impl QuicSetUp {
    /// A packet of the handshake passes; whether it is of a flight that sets the connection up.
    pub(super) fn packet(
        &mut self,
        side: EventStreamDirection,
        news: HandshakeNews,
        bytes: u64,
        passing: QuicPassing,
    ) -> bool {
        self.turn(side, passing.at_ns);
        let is_answered = self.flights[1].bytes > 0;
        let own = &mut self.flights[side as usize];
        match news {
            HandshakeNews::Nothing => return false,
            HandshakeNews::Again => {
                own.again += 1;
                let since = own.first_ns().unwrap_or(passing.at_ns);
                own.again_ns = own.again_ns.max(passing.at_ns.saturating_sub(since));
                return false;
            }
            HandshakeNews::New | HandshakeNews::Sealed => {}
        }
        // What the client says behind the server's hello ends the handshake.
        if self.done_ns.is_some() || side == EventStreamDirection::There && is_answered {
            return false;
        }
        own.bytes += bytes;
        self.pass(side, passing);
        true
    }

    /// A datagram of a flight passes.
    pub(super) fn pass(&mut self, side: EventStreamDirection, passing: QuicPassing) {
        let own = &mut self.flights[side as usize];
        if passing.leaves {
            extend(&mut own.left, passing.at_ns);
        }
        if passing.arrives {
            extend(&mut own.arrived, passing.at_ns);
        }
    }

    /// A packet of data passes, or the server asks for another first packet.
    pub(super) fn other(&mut self, side: EventStreamDirection, is_data: bool, at_ns: u64) {
        self.turn(side, at_ns);
        if is_data && side == EventStreamDirection::There && self.flights[1].bytes > 0 {
            self.done_ns.get_or_insert(at_ns);
        }
    }

    fn turn(&mut self, side: EventStreamDirection, at_ns: u64) {
        match side {
            EventStreamDirection::Back => drop(self.answer_ns.get_or_insert(at_ns)),
            EventStreamDirection::There if self.answer_ns.is_some() => {
                self.acknowledged_ns.get_or_insert(at_ns);
            }
            EventStreamDirection::There => {}
        }
    }

    /// From the client's first packet to its first one of data behind the server's flight.
    pub(super) fn span(&self) -> Span {
        self.flights[0].first_ns().zip(self.done_ns)
    }

    /// Whether the server ever answered.
    pub(super) const fn is_answered(&self) -> bool {
        self.answer_ns.is_some()
    }

    /// Whether it was done.
    pub(super) const fn is_done(&self) -> bool {
        self.done_ns.is_some()
    }

    /// A round trip with what both ends took for it: of its two halves the longer one has the way in it; where each is seen at its
    /// sender's door, both have half of it.
    pub(super) fn round_trip_ns(&self) -> Option<u64> {
        let flight = &self.flights[0];
        let (first, answer) = (flight.first_ns()?, self.answer_ns?);
        let is_sent_once = flight.again == 0;
        let there = answer.checked_sub(first).filter(|_| is_sent_once);
        let back = self
            .acknowledged_ns
            .and_then(|acknowledged| acknowledged.checked_sub(answer));
        match (
            there,
            back,
            flight.left.is_some() && flight.arrived.is_some(),
        ) {
            (Some(there), Some(back), true) => Some(there + back),
            (_, _, true) => None,
            (there, back, false) => there.into_iter().chain(back).max(),
        }
    }

    /// Packets that were sent again.
    pub(super) fn again(&self) -> u64 {
        self.flights.iter().map(|flight| flight.again).sum()
    }

    /// What a side said, as a message.
    pub(super) fn message(&self, side: EventStreamDirection) -> Option<ExchangeMessage> {
        let SetUpFlight {
            bytes,
            left,
            arrived,
            again,
            again_ns,
        } = self.flights[side as usize];
        (bytes > 0).then(|| ExchangeMessage {
            end: bytes,
            left,
            arrived,
            again,
            again_ns,
            ..ExchangeMessage::default()
        })
    }
}
