//! Finds what the two sides of a connection say to each other: requests and their responses, as byte ranges of both streams.
//!
//! A [`Dissector`] is a state machine for one protocol: it takes the bytes of both sides and emits [`DissectorEvent`]s. It knows neither
//! time nor packets, keeps no content but a message head of bounded length, and does not guess: an exchange with bytes that were not
//! captured becomes void. An exchange is a request with its response; `stackline-redact` makes its name and decides what of it is kept.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`connection`] | one connection: reassembles it, recognises its protocol, finds its exchanges |
//! | [`reassembly`] | puts segments in order and names the gaps |
//! | [`protocol_recognition`] | the list of protocols, and which of them a connection speaks |
//! | [`opening`] | how a connection begins |
//! | [`turn_dissector`] | for unknown protocols: a request is what one side says until the other side speaks |
//! | [`http1`] | HTTP/1.0 and 1.1 |
//! | [`http2`] | HTTP/2, and gRPC within it |
//! | `http3` | HTTP/3, on decrypted QUIC streams |
//! | `binary_http_head` | what the header fields of HTTP/2 and HTTP/3 say about a message |
//! | `records` | splits a stream into records: heads that announce the length of a body |
//! | `record_dialogue` | what record protocols share: both sides, numbers of exchanges, the change to another protocol |
//! | `correlated_exchanges` | requests whose responses repeat an id, in any order |
//! | `socks_set_up` | what a client asks of a SOCKS proxy before another protocol begins |
//! | `tunnel` | the protocol within an HTTP CONNECT tunnel |
//! | `text_lines` | lines of text that begin records |
//! | [`memcached`] | memcached, text and binary |
//! | [`nats`] | NATS |
//! | [`ftp`] | the control connection of FTP |
//! | [`mongodb`] | MongoDB |
//! | [`kafka`] | Kafka |
//! | [`mqtt`] | MQTT 3.1.1 and 5 |
//! | [`amqp`] | AMQP 0-9-1 |
//! | [`websocket`] | WebSocket, after an HTTP/1.1 upgrade |
//! | [`dns`] | DNS over UDP and TCP |
//! | [`mysql`] | MySQL and MariaDB |
//! | [`postgres`] | PostgreSQL |
//! | `pending_requests` | requests that wait for their responses, with a limit on their number |
//! | `statement_texts` | the texts of prepared statements |
//! | [`resp`] | RESP2 and RESP3, the protocol of Redis |
//! | `varint` | the variable-length integers of QUIC and HTTP/3 |
//! | [`tls`] | TLS: its handshake, then turns of encrypted data, or the protocol within where the secrets are known |

pub mod amqp;
mod binary_http_head;
pub mod connection;
mod correlated_exchanges;
pub mod dns;
pub mod ftp;
pub mod http1;
pub mod http2;
pub(crate) mod http3;
pub mod kafka;
pub mod memcached;
pub mod mongodb;
pub mod mqtt;
pub mod mysql;
pub mod nats;
pub mod opening;
mod pending_requests;
pub mod postgres;
pub mod protocol_recognition;
mod proxy_header;
pub mod reassembly;
mod record_dialogue;
mod records;
pub mod resp;
mod socks_set_up;
mod statement_texts;
mod text_lines;
pub mod tls;
mod tunnel;
pub mod turn_dissector;
pub(crate) mod varint;
pub mod websocket;

#[cfg(test)]
pub(crate) mod script_testing;
#[cfg(test)]
mod walk_tests;

use crate::left_out::Bound;
use stackline_events::traceparent::Traceparent;
use stackline_events::unit_ids::EventStreamDirection;
pub use stackline_redact::{LONGEST_NAME, RedactedName};
use std::fmt;
use tls::session_secrets::Secrets;

/// The most bytes of a message head that are held until it is complete; a longer head is not read.
pub const LONGEST_HEAD: usize = Bound::Head.most();
const _: () = assert!(
    Bound::Name.most() == LONGEST_NAME,
    "name truncation and its count agree"
);
/// The most exchanges of one connection that wait for their responses; requests beyond it get no response.
pub const MOST_WAITING: usize = Bound::Waiting.most();
/// The reason of the void for a request beyond [`MOST_WAITING`].
const TOO_MANY: &str = "more than 4,096 requests were waiting on its connection";

/// The reason of the void for a request that nothing answered.
pub const UNANSWERED: &str = "nothing answered it";
/// The same, on a connection that carries several exchanges at once.
pub const ENDED_BEFORE: &str = "the connection ended before its response";
/// The reason of the void for a request whose stream the client or the server reset.
pub const RESET_BEFORE: &str = "its stream was reset before its response";

/// Whether a reason means that the whole request was seen and no response came.
#[must_use]
pub fn is_unanswered(why: &str) -> bool {
    [UNANSWERED, ENDED_BEFORE, RESET_BEFORE].contains(&why)
}

/// The two messages of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExchangeRole {
    /// The message that begins the exchange.
    Request,
    /// The message that answers the request.
    Response,
}

impl ExchangeRole {
    /// Which side sends this message if the initiator of the connection is the one that asks.
    const fn sender(self) -> EventStreamDirection {
        match self {
            Self::Request => EventStreamDirection::There,
            Self::Response => EventStreamDirection::Back,
        }
    }
}

/// The kinds of exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExchangeKind {
    /// A request and its response.
    Call,
    /// The set-up of security or of a session before any call: a TLS handshake, a login.
    Handshake,
    /// A message without a request or without a response: a push, a notification.
    OneWay,
}

/// What a dissector finds. The exchanges of a connection are numbered from 0 in the order in which they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DissectorEvent {
    /// A message begins at an offset of its sender's stream.
    Begins {
        /// The number of the exchange.
        exchange: u64,
        /// Which message of the exchange it is.
        role: ExchangeRole,
        /// The kind of the exchange.
        kind: ExchangeKind,
        /// The side that sends the message.
        side: EventStreamDirection,
        /// The offset of its first byte, in bytes.
        at: u64,
    },
    /// The name of a message: for a request, what it asks (`GET /item/7`, `SELECT 1`), for a response its status (`200`, `ERROR 42P01`).
    /// The event may be repeated when more is known; the last one counts.
    Named {
        /// The number of the exchange.
        exchange: u64,
        /// Which message of the exchange it is.
        role: ExchangeRole,
        /// The part of the name that is kept, and the whole name; at most [`LONGEST_NAME`] bytes each.
        name: RedactedName,
    },
    /// The request names the trace and the span that it belongs to (W3C Trace Context).
    InTrace {
        /// The number of the exchange.
        exchange: u64,
        /// The trace context of the request.
        context: Traceparent,
    },
    /// The exchange continues an earlier one in another round trip: together they are one request.
    GoesOn {
        /// The number of the exchange that continues.
        exchange: u64,
        /// The number of the earlier exchange.
        of: u64,
    },
    /// A part of a longer message is complete: an event of an event stream, a message of a streaming call.
    Part {
        /// The number of the exchange.
        exchange: u64,
        /// The side that sends the part.
        side: EventStreamDirection,
        /// The offset just after its last byte.
        at: u64,
    },
    /// A message is complete.
    Ends {
        /// The number of the exchange.
        exchange: u64,
        /// Which message of the exchange it is.
        role: ExchangeRole,
        /// The side that sends the message.
        side: EventStreamDirection,
        /// The offset just after its last byte.
        at: u64,
    },
    /// Nothing more can be known of the exchange: bytes of it were not captured, or are not of the protocol.
    Void {
        /// The number of the exchange.
        exchange: u64,
        /// The reason, in a few words.
        why: &'static str,
    },
    /// Something was left out at a limit, and how often.
    LeftOut(Bound, u64),
}

/// Creates the dissector for a TLS connection from the known secrets.
pub type OpenTls = fn(Secrets) -> Box<dyn Dissector>;

/// Finds the messages of one protocol on one connection.
pub trait Dissector: fmt::Debug + Send {
    /// Takes the next bytes of one side, in order; `at` is the stream offset of the first one. `bytes` begins where a segment begins, or
    /// where bytes begin that were held back before one.
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    );

    /// The next `count` bytes of one side are unknown: the capture cut or lost them.
    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    );

    /// The side sends nothing more; `at` is the offset of the end of its stream.
    fn end(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>);

    /// The protocol's name, such as `HTTP/1.1`; it may change during the connection.
    fn protocol(&self) -> &'static str;

    /// The protocol of one exchange, on a connection that speaks several.
    fn protocol_of(&self, _kind: ExchangeKind, _number: u64) -> &'static str {
        self.protocol()
    }

    /// Whether the dissector knows where messages end, so that silence does not end one. [`turn_dissector`] does not know it.
    fn is_exact(&self) -> bool {
        true
    }

    /// Hands over the secrets with which TLS inside this protocol can be decrypted, and the function that creates the TLS dissector.
    fn know_secrets(&mut self, _secrets: Secrets, _open: OpenTls) {}

    /// How many bytes the dissector holds, of data and of incomplete exchanges. It has an upper limit, whatever is sent.
    fn held(&self) -> usize {
        0
    }
}

impl DissectorEvent {
    /// The event that a message begins; its sender is the side of the role.
    const fn begins(exchange: u64, role: ExchangeRole, kind: ExchangeKind, at: u64) -> Self {
        Self::Begins {
            exchange,
            role,
            kind,
            side: role.sender(),
            at,
        }
    }

    const fn named(exchange: u64, role: ExchangeRole, name: RedactedName) -> Self {
        Self::Named {
            exchange,
            role,
            name,
        }
    }

    /// The event that a request belongs to a trace, if it names one.
    fn in_trace(exchange: u64, context: Option<Traceparent>) -> Option<Self> {
        context.map(|context| Self::InTrace { exchange, context })
    }

    /// The event that a message is complete; its sender is the side of the role.
    const fn ends(exchange: u64, role: ExchangeRole, at: u64) -> Self {
        Self::Ends {
            exchange,
            role,
            side: role.sender(),
            at,
        }
    }

    /// The events of a complete message that neither answers a request nor is answered.
    const fn one_way(
        exchange: u64,
        role: ExchangeRole,
        name: RedactedName,
        at: u64,
        end: u64,
    ) -> [Self; 3] {
        [
            Self::begins(exchange, role, ExchangeKind::OneWay, at),
            Self::named(exchange, role, name),
            Self::ends(exchange, role, end),
        ]
    }

    /// The number of the exchange that the event is about, if it is about one.
    #[must_use]
    pub const fn exchange(&self) -> Option<u64> {
        match self {
            Self::Begins { exchange, .. }
            | Self::Named { exchange, .. }
            | Self::InTrace { exchange, .. }
            | Self::GoesOn { exchange, .. }
            | Self::Part { exchange, .. }
            | Self::Ends { exchange, .. }
            | Self::Void { exchange, .. } => Some(*exchange),
            Self::LeftOut(..) => None,
        }
    }
}

/// The trace context in a request header, if this is a header whose value is kept and it is valid.
fn trace_context(name: &[u8], value: &[u8]) -> Option<Traceparent> {
    let text = std::str::from_utf8(value).ok()?;
    stackline_redact::http::is_kept_header(name)
        .then(|| text.trim().parse().ok())
        .flatten()
}

/// Adds `before` to the exchange numbers of events that another dissector found, as so many exchanges came before its own.
fn renumber(found: &mut [DissectorEvent], before: u64) {
    for found in found {
        match found {
            DissectorEvent::Begins { exchange, .. }
            | DissectorEvent::Named { exchange, .. }
            | DissectorEvent::InTrace { exchange, .. }
            | DissectorEvent::Part { exchange, .. }
            | DissectorEvent::Ends { exchange, .. }
            | DissectorEvent::Void { exchange, .. } => *exchange = exchange.saturating_add(before),
            DissectorEvent::GoesOn { exchange, of } => {
                *exchange = exchange.saturating_add(before);
                *of = of.saturating_add(before);
            }
            DissectorEvent::LeftOut(..) => {}
        }
    }
}
