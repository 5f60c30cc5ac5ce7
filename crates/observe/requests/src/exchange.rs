//! One exchange that is over: what it was, between whom, and when it passed which point. Plain data; what is not known is absent.

pub use stackline_dissect::conversation::ExchangeKind;
use stackline_events::traceparent::Traceparent;
use stackline_redact::RedactedName;
use std::net::SocketAddr;

/// One of its two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeEnd {
    /// The host, by its number among those that are watched; none where it is elsewhere.
    pub host: Option<usize>,
    /// Its address and port.
    pub address: SocketAddr,
}

/// A message of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeMessage {
    /// Where it begins in its stream.
    pub from: u64,
    /// Behind its last byte.
    pub end: u64,
    /// When a sending call that took its first byte returned, and its last one.
    pub written: Option<(u64, u64)>,
    /// When its first byte left its host for the first time, and its last one.
    pub left: Option<(u64, u64)>,
    /// When its first byte was at the other host, and when all of it was.
    pub arrived: Option<(u64, u64)>,
    /// When the receiving call that got its last byte returned.
    pub read: Option<u64>,
    /// The thread that wrote its first byte, and the one that read its last.
    pub threads: (u32, u32),
    /// Segments of it that were sent again, and how long they were waited for in all, ns; waits that overlap count once.
    pub again: u64,
    /// See `again`.
    pub again_ns: u64,
    /// How long its end waited in its host for the acknowledgement of what was sent before it, ns.
    pub held_ns: u64,
    /// How long the sender had to wait for room in the receiver's window, ns.
    pub window_ns: u64,
    /// How long its sender sent nothing in the midst of it although all before had arrived and there was room, ns: it had nothing to
    /// send.
    pub paused_ns: u64,
    /// How long its sender waited in the midst of it for what the other end said then (`100 Continue`), beside a round trip, ns.
    pub awaited_ns: u64,
    /// How long its sender stood still in the midst of it until an acknowledgement came, although there was room and nothing was lost,
    /// ns: no more was under way than it allows itself.
    pub stalled_ns: u64,
    /// How long its receiver read nothing although bytes of it lay there, ns.
    pub late_ns: u64,
}

impl ExchangeMessage {
    /// When it was handed over, as far as it is known: it cannot leave before.
    #[must_use]
    pub fn handed_ns(&self) -> Option<u64> {
        let handed = [self.written, self.left, self.arrived]
            .into_iter()
            .flatten();
        handed.map(|(first, _)| first).min()
    }

    /// When its receiver's host had it, or its program where that is known.
    #[must_use]
    pub fn came_at_receiver_ns(&self) -> Option<u64> {
        self.read.or(self.arrived.map(|(_, last)| last))
    }

    /// When it was there: read, or at its receiver's host, or gone from its sender's.
    #[must_use]
    pub fn came_ns(&self) -> Option<u64> {
        self.read
            .or(self.arrived.or(self.left).map(|(_, last)| last))
    }
}

/// An exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The connection, by its number in the order in which they began.
    pub flow: u32,
    /// Its number on the connection.
    pub number: u64,
    /// What kind it is.
    pub kind: ExchangeKind,
    /// The protocol's name.
    pub protocol: &'static str,
    /// Whether it is distinguished by what the protocol says, and not by turns.
    pub exact: bool,
    /// What was asked.
    pub name: RedactedName,
    /// What was answered.
    pub status: RedactedName,
    /// For which span of which trace its request says that it is made.
    pub context: Option<Traceparent>,
    /// Who asks.
    pub client: ExchangeEnd,
    /// Who answers.
    pub server: ExchangeEnd,
    /// The host between both that saw it, where no end of it was seen.
    pub seen_at: Option<usize>,
    /// Whether the side that was connected to asks.
    pub reversed: bool,
    /// The request, and what answers it.
    pub request: ExchangeMessage,
    /// See `request`; none where nothing answers.
    pub response: Option<ExchangeMessage>,
    /// Where it takes several round trips: each answer before the last, and what the client said next. `request` is what it said
    /// first, `response` the last answer.
    pub turns: Vec<(ExchangeMessage, ExchangeMessage)>,
    /// Whole parts of a response that is a stream.
    pub parts: u64,
    /// From the question after the server's address to its answer.
    pub lookup: Option<(u64, u64)>,
    /// From the first packet of the connection to its second, at the client; where the exchange is the first on it.
    pub connect: Option<(u64, u64)>,
    /// How often the first packet was sent again.
    pub connect_again: u64,
    /// The set-up of security or a login before it, where it is the first on the connection.
    pub handshake: Option<(u64, u64)>,
    /// Round trip of the connection's set-up, ns.
    pub round_trip_ns: Option<u64>,
    /// Whether nothing more is known, and why.
    pub void: Option<&'static str>,
    /// Whether it is a connection that was not set up, and no request could be made on it.
    pub is_unopened: bool,
    /// When who asked wanted no answer any more, or learnt that there will be none or no more of it; of requests without a whole answer.
    pub gave_up: Option<u64>,
}

/// Protocols within QUIC, and its own set-up.
const OVER_QUIC: [&str; 4] = ["QUIC", "HTTP/3", "DNS over QUIC", "QUIC, by streams"];

impl Exchange {
    /// Whether it came over QUIC: no segments and no sockets show it.
    #[must_use]
    pub fn is_over_quic(&self) -> bool {
        OVER_QUIC.contains(&self.protocol)
    }

    /// Whether it came in datagrams: over QUIC, or as a question of DNS.
    #[must_use]
    pub fn is_in_datagrams(&self) -> bool {
        self.is_over_quic() || self.protocol == "DNS"
    }

    /// When it began: with the question after the server's address, the connection, or the request.
    #[must_use]
    pub fn begin_ns(&self) -> Option<u64> {
        let first = [self.lookup, self.connect, self.handshake]
            .into_iter()
            .flatten()
            .map(|(from, _)| from);
        first.chain(self.asked_ns()).min()
    }

    /// When the request was handed over, as far as it is known: it cannot leave before.
    #[must_use]
    pub fn asked_ns(&self) -> Option<u64> {
        self.request.handed_ns()
    }

    /// Its round trips: what was asked in each, and what answered it.
    pub fn rounds(&self) -> impl Iterator<Item = (&ExchangeMessage, Option<&ExchangeMessage>)> {
        let asked = std::iter::once(&self.request).chain(self.turns.iter().map(|(_, next)| next));
        let answers = self.turns.iter().map(|(answer, _)| Some(answer));
        asked.zip(answers.chain([self.response.as_ref()]))
    }

    /// When the response was there: read, or at the client's host, or gone from the server's; when it was given up where there is
    /// none.
    #[must_use]
    pub fn end_ns(&self) -> Option<u64> {
        if self.gave_up.is_some() {
            return self.gave_up;
        }
        self.response.as_ref()?.came_ns()
    }
}
