//! The set-up (handshake) of a QUIC connection: when the first flights of both sides passed, what was sent again, and when the
//! set-up was done.

use crate::exchange::ExchangeMessage;
use stackline_dissect::quic::dissector::HandshakeNews;
use stackline_events::unit_ids::EventStreamDirection;

/// When a datagram passes a door, and whether it leaves or arrives there.
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

/// The handshake packets of one side.
#[derive(Clone, Copy, Debug, Default)]
struct SetUpFlight {
    /// Their bytes.
    bytes: u64,
    /// When they left the sender's host.
    left: Span,
    /// When they arrived at the receiver's host.
    arrived: Span,
    /// How many packets were sent again.
    again: u64,
    /// The longest time from the first packet to a repeated one, ns.
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
    /// When the server's first packet of any kind was seen, ns.
    answer_ns: Option<u64>,
    /// When the client's first packet after that was seen, ns.
    acknowledged_ns: Option<u64>,
    /// When the client's first packet of data after the server's flight was seen, ns.
    done_ns: Option<u64>,
}

impl QuicSetUp {
    /// Takes a handshake packet; returns whether it belongs to a flight that sets the connection up.
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
        // The client's packets after the server's hello end the handshake and are not part of its flight.
        if self.done_ns.is_some() || side == EventStreamDirection::There && is_answered {
            return false;
        }
        own.bytes += bytes;
        self.pass(side, passing);
        true
    }

    /// A datagram of a flight passes a door.
    pub(super) fn pass(&mut self, side: EventStreamDirection, passing: QuicPassing) {
        let own = &mut self.flights[side as usize];
        if passing.leaves {
            extend(&mut own.left, passing.at_ns);
        }
        if passing.arrives {
            extend(&mut own.arrived, passing.at_ns);
        }
    }

    /// A packet of data passes, or a Retry or version negotiation of the server.
    pub(super) fn other(&mut self, side: EventStreamDirection, is_data: bool, at_ns: u64) {
        self.turn(side, at_ns);
        if is_data && side == EventStreamDirection::There && self.flights[1].bytes > 0 {
            self.done_ns.get_or_insert(at_ns);
        }
    }

    /// Notes the server's first packet, and the client's first one after it.
    fn turn(&mut self, side: EventStreamDirection, at_ns: u64) {
        match side {
            EventStreamDirection::Back => drop(self.answer_ns.get_or_insert(at_ns)),
            EventStreamDirection::There if self.answer_ns.is_some() => {
                self.acknowledged_ns.get_or_insert(at_ns);
            }
            EventStreamDirection::There => {}
        }
    }

    /// The time of the set-up: from the client's first packet to its first packet of data after the server's flight, ns.
    pub(super) fn span(&self) -> Span {
        self.flights[0].first_ns().zip(self.done_ns)
    }

    /// Whether the server ever answered.
    pub(super) const fn is_answered(&self) -> bool {
        self.answer_ns.is_some()
    }

    /// Whether the set-up was completed.
    pub(super) const fn is_done(&self) -> bool {
        self.done_ns.is_some()
    }

    /// The round trip, including the processing time of both ends, ns. It has two parts: client to server's answer, and answer to
    /// the client's next packet. Seen at one door, the longer part contains the way there and back; if each packet is seen at its
    /// sender's door, the round trip is the sum of both.
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

    /// How many packets of both sides were sent again.
    pub(super) fn again(&self) -> u64 {
        self.flights.iter().map(|flight| flight.again).sum()
    }

    /// The flight of a side as a message; `None` if nothing of it was seen.
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
