//! One finished exchange (a call, a handshake, or a one-way message): what was asked, between whom, and when it passed each point.
//! Plain data; what is not known is absent. All times are in ns, and pairs of times are those of the first and the last byte.

pub use stackline_dissect::conversation::ExchangeKind;
use stackline_events::traceparent::Traceparent;
use stackline_redact::RedactedName;
use std::net::SocketAddr;

/// One end of an exchange's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeEnd {
    /// The host, by its number among the observed ones; `None` if it is not observed.
    pub host: Option<usize>,
    /// The address and port of the end.
    pub address: SocketAddr,
}

/// One message of an exchange: a request or a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeMessage {
    /// The stream offset of its first byte.
    pub from: u64,
    /// The stream offset behind its last byte.
    pub end: u64,
    /// When the sending calls that took its first and its last byte returned.
    pub written: Option<(u64, u64)>,
    /// When its first byte first left the sender's host, and when its last one did.
    pub left: Option<(u64, u64)>,
    /// When its first byte arrived at the receiver's host, and when all of it had.
    pub arrived: Option<(u64, u64)>,
    /// When the receiving call that got its last byte returned.
    pub read: Option<u64>,
    /// The thread that wrote its first byte, and the one that read its last.
    pub threads: (u32, u32),
    /// How many of its segments were sent again.
    pub again: u64,
    /// How long these retransmissions were waited for, ns; waits that overlap count once.
    pub again_ns: u64,
    /// How long the sender's host held its end back until the data before it was acknowledged (Nagle's algorithm), ns.
    pub held_ns: u64,
    /// How long the sender had to wait for room in the receiver's window, ns.
    pub window_ns: u64,
    /// How long its sender sent nothing in the midst of it although all data before had arrived and there was room, ns: the program
    /// had nothing to send.
    pub paused_ns: u64,
    /// How long its sender waited in the midst of it for a message of the other end (such as `100 Continue`), without a round trip,
    /// ns.
    pub awaited_ns: u64,
    /// How long its sender stood still in the midst of it until an acknowledgement came, although there was room and nothing was
    /// lost, ns: it had as many bytes in flight as it allows itself.
    pub stalled_ns: u64,
    /// How long its first byte waited, after it was written, for earlier bytes of the connection to leave, ns.
    pub behind_ns: u64,
    /// How long the receiving program read nothing although bytes of it had arrived, ns.
    pub late_ns: u64,
}

impl ExchangeMessage {
    /// When its sender's program handed it over, as far as that is known: the earliest time known of its first byte.
    #[must_use]
    pub fn handed_ns(&self) -> Option<u64> {
        let handed = [self.written, self.left, self.arrived]
            .into_iter()
            .flatten();
        handed.map(|(first, _)| first).min()
    }

    /// When the receiving program had read it, or else when the receiver's host had it.
    #[must_use]
    pub fn came_at_receiver_ns(&self) -> Option<u64> {
        self.read.or(self.arrived.map(|(_, last)| last))
    }

    /// When it was there: read, or else arrived, or else gone from the sender's host.
    #[must_use]
    pub fn came_ns(&self) -> Option<u64> {
        self.read
            .or(self.arrived.or(self.left).map(|(_, last)| last))
    }
}

/// One finished exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The number of its connection, in the order in which connections began.
    pub flow: u32,
    /// Its number on the connection.
    pub number: u64,
    /// Whether it is a call, a handshake or a one-way message.
    pub kind: ExchangeKind,
    /// The protocol's name.
    pub protocol: &'static str,
    /// Whether its messages were distinguished by parsing the protocol; otherwise by the change of direction of the data.
    pub exact: bool,
    /// What was asked.
    pub name: RedactedName,
    /// What was answered.
    pub status: RedactedName,
    /// The distributed-trace context that its request carries.
    pub context: Option<Traceparent>,
    /// Who asks.
    pub client: ExchangeEnd,
    /// Who answers.
    pub server: ExchangeEnd,
    /// The observed host between both ends that forwarded it, if neither end is observed.
    pub seen_at: Option<usize>,
    /// Whether the side that accepted the connection is the one that asks.
    pub reversed: bool,
    /// The request; of several round trips the first.
    pub request: ExchangeMessage,
    /// The response; of several round trips the last. `None` if nothing answered.
    pub response: Option<ExchangeMessage>,
    /// The round trips in between: each answer before the last, with what the client sent next.
    pub turns: Vec<(ExchangeMessage, ExchangeMessage)>,
    /// How many complete parts a streamed response had.
    pub parts: u64,
    /// From the DNS question for the server's address to its answer, ns.
    pub lookup: Option<(u64, u64)>,
    /// From the SYN to the SYN-ACK at the client, ns; only in the first exchange of the connection.
    pub connect: Option<(u64, u64)>,
    /// How often the SYN was sent again.
    pub connect_again: u64,
    /// The TLS handshake or login before it, ns; only in the first exchange of the connection.
    pub handshake: Option<(u64, u64)>,
    /// The round trip of the connection's set-up, or else the shortest time to an acknowledgement, ns.
    pub round_trip_ns: Option<u64>,
    /// Why the exchange is void: it has no complete response, or nothing more is known of it. `None` if it is complete.
    pub void: Option<&'static str>,
    /// Whether it is a failed attempt to set a connection up, on which no request could be made.
    pub is_unopened: bool,
    /// When the client gave up waiting, or learnt that no further part of the answer will come, ns; only without a complete
    /// response.
    pub gave_up: Option<u64>,
}

/// The names of protocols over QUIC, and of QUIC's own set-up.
const OVER_QUIC: [&str; 4] = ["QUIC", "HTTP/3", "DNS over QUIC", "QUIC, by streams"];

impl Exchange {
    /// Whether it came over QUIC: then neither segments nor sockets show its messages.
    #[must_use]
    pub fn is_over_quic(&self) -> bool {
        OVER_QUIC.contains(&self.protocol)
    }

    /// Whether it came in UDP datagrams: over QUIC, or as a DNS question.
    #[must_use]
    pub fn is_in_datagrams(&self) -> bool {
        self.is_over_quic() || self.protocol == "DNS"
    }

    /// When it began, ns: with the DNS lookup, the set-up of the connection, or the request.
    #[must_use]
    pub fn begin_ns(&self) -> Option<u64> {
        let first = [self.lookup, self.connect, self.handshake]
            .into_iter()
            .flatten()
            .map(|(from, _)| from);
        first.chain(self.asked_ns()).min()
    }

    /// When the client's program handed the request over, as far as that is known, ns.
    #[must_use]
    pub fn asked_ns(&self) -> Option<u64> {
        self.request.handed_ns()
    }

    /// Its round trips in order: the client's message in each, and its answer.
    pub fn rounds(&self) -> impl Iterator<Item = (&ExchangeMessage, Option<&ExchangeMessage>)> {
        let asked = std::iter::once(&self.request).chain(self.turns.iter().map(|(_, next)| next));
        let answers = self.turns.iter().map(|(answer, _)| Some(answer));
        asked.zip(answers.chain([self.response.as_ref()]))
    }

    /// When it ended, ns: when the client had the response (read, or arrived, or gone from the server), or when it was given up.
    #[must_use]
    pub fn end_ns(&self) -> Option<u64> {
        if self.gave_up.is_some() {
            return self.gave_up;
        }
        self.response.as_ref()?.came_ns()
    }
}
