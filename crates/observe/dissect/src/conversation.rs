//! What the two sides of a connection say to each other: requests and what answers them, by byte ranges of both streams.
//!
//! A dissector is a machine: bytes of both sides in, [`DissectorEvent`] out. It knows no time and no packet, keeps nothing of contents
//! but a head of bounded length, and never guesses: an exchange of which bytes were not seen is void. What it calls an exchange is made
//! by `stackline-redact`, which decides what of that is kept.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`connection`] | one connection: reassembled, recognised, its exchanges found |
//! | [`reassembly`] | segments in any order to bytes in theirs, gaps named |
//! | [`protocol_recognition`] | the list of protocols, and which of them a connection speaks |
//! | [`opening`] | how a connection begins |
//! | [`turn_dissector`] | the generic one: a request is what one side says until the other speaks |
//! | [`http1`] | HTTP/1.0 and 1.1 |
//! | [`http2`] | HTTP/2, and gRPC within it |
//! | `http3` | HTTP/3, of streams of QUIC that are opened |
//! | `http_message_head` | what header fields of HTTP/2 and HTTP/3 say of a message |
//! | `records` | records: heads that announce bodies |
//! | `record_dialogue` | what protocols of records share: both sides, numbers of exchanges, a protocol that takes over |
//! | `correlated_exchanges` | requests whose answers repeat a number, in any order |
//! | `socks_set_up` | what a SOCKS proxy is asked before another protocol begins |
//! | `tunnel` | a connection behind a CONNECT |
//! | `text_lines` | lines of words that begin records |
//! | [`memcached`] | memcached, text and binary |
//! | [`nats`] | NATS |
//! | [`mongodb`] | MongoDB |
//! | [`kafka`] | Kafka |
//! | [`mqtt`] | MQTT 3.1.1 and 5 |
//! | [`amqp`] | AMQP 0-9-1 |
//! | [`websocket`] | WebSocket, behind an upgrade of HTTP/1.1 |
//! | [`dns`] | DNS, of datagrams and of connections |
//! | [`mysql`] | MySQL and MariaDB |
//! | [`postgres`] | PostgreSQL |
//! | `pending_requests` | requests that wait for their answers, and more than are known |
//! | `statement_texts` | texts of prepared statements |
//! | [`resp`] | RESP2 and RESP3, of Redis |
//! | `varint` | numbers of QUIC and HTTP/3 |
//! | [`tls`] | TLS: its handshake, then by turns, or what is within where its secrets are known |

pub mod amqp;
pub mod connection;
mod correlated_exchanges;
pub mod dns;
pub mod http1;
pub mod http2;
pub(crate) mod http3;
mod http_message_head;
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

/// Bytes of a message's head that are held until it is whole; of a longer one nothing is known.
pub const LONGEST_HEAD: usize = Bound::Head.most();
const _: () = assert!(
    Bound::Name.most() == LONGEST_NAME,
    "name truncation and its count agree"
);
/// Exchanges of one connection that wait for their answers; of further ones no answer is known.
pub const MOST_WAITING: usize = Bound::Waiting.most();
/// Why nothing is known of a request that is one more.
const TOO_MANY: &str = "more than 4,096 requests were waiting on its connection";

/// Why a request has no answer: there was none.
pub const UNANSWERED: &str = "nothing answered it";
/// The same, where a connection carries several at once.
pub const ENDED_BEFORE: &str = "the connection ended before its response";
/// Whoever asked, or was asked, wanted no more of it.
pub const RESET_BEFORE: &str = "its stream was reset before its response";

/// Whether a whole request was seen, and that nothing answered it.
#[must_use]
pub fn is_unanswered(why: &str) -> bool {
    [UNANSWERED, ENDED_BEFORE, RESET_BEFORE].contains(&why)
}

/// Which message of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExchangeRole {
    /// The one that begins it.
    Request,
    /// What answers it.
    Response,
}

impl ExchangeRole {
    /// Who sends such a message, where the initiator of the connection asks.
    const fn sender(self) -> EventStreamDirection {
        match self {
            Self::Request => EventStreamDirection::There,
            Self::Response => EventStreamDirection::Back,
        }
    }
}

/// What kind of exchange it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExchangeKind {
    /// A request and its response.
    Call,
    /// A set-up of security or of a session before any call: TLS, a login.
    Handshake,
    /// Something that is sent without a request, or not answered: a push, a notification.
    OneWay,
}

/// What a dissector finds. Numbers of exchanges count from 0 on each connection, in the order in which they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DissectorEvent {
    /// A message begins with the byte at that offset of its side's stream.
    Begins {
        /// Of which exchange.
        exchange: u64,
        /// Which message of it.
        role: ExchangeRole,
        /// What kind of exchange.
        kind: ExchangeKind,
        /// Who sends it.
        side: EventStreamDirection,
        /// The offset of its first byte.
        at: u64,
    },
    /// What the message is: of a request a name (`GET /item/7`, `SELECT 1`), of a response its status (`200`, `ERROR 42P01`).
    /// Where it is said again, more is known: the later one counts.
    Named {
        /// Of which exchange.
        exchange: u64,
        /// Which message of it.
        role: ExchangeRole,
        /// What of it is kept, and the whole; at most [`LONGEST_NAME`] bytes each.
        name: RedactedName,
    },
    /// Its request says for which span of which trace it is made (W3C Trace Context).
    InTrace {
        /// Which exchange.
        exchange: u64,
        /// What it says.
        context: Traceparent,
    },
    /// The exchange goes on with what an earlier one began, in another round trip: both are one request.
    GoesOn {
        /// Which exchange.
        exchange: u64,
        /// The one before it.
        of: u64,
    },
    /// A part of a message that goes on is whole: an event of a stream, a message of a call.
    Part {
        /// Of which exchange.
        exchange: u64,
        /// Who sends it.
        side: EventStreamDirection,
        /// Behind its last byte.
        at: u64,
    },
    /// The message is whole.
    Ends {
        /// Of which exchange.
        exchange: u64,
        /// Which message of it.
        role: ExchangeRole,
        /// Who sends it.
        side: EventStreamDirection,
        /// Behind its last byte.
        at: u64,
    },
    /// Of the exchange nothing more can be known: bytes of it were not seen, or are not of the protocol.
    Void {
        /// Which.
        exchange: u64,
        /// Why, in a few words.
        why: &'static str,
    },
    /// Something was left out at a bound, so often.
    LeftOut(Bound, u64),
}

/// Begins to open a connection of TLS.
pub type OpenTls = fn(Secrets) -> Box<dyn Dissector>;

/// Tells messages of one protocol.
pub trait Dissector: fmt::Debug + Send {
    /// Bytes of one side, which follow all that it said before. The beginning of `bytes` is that of a segment, or of what was held
    /// back before one.
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    );

    /// So many bytes follow of which it is not known what they hold: a capture cut or lost them.
    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    );

    /// The side says nothing more.
    fn end(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>);

    /// The protocol's name, such as `HTTP/1.1`; it may become another one while it goes on.
    fn protocol(&self) -> &'static str;

    /// The name of the protocol of one exchange, where a connection speaks several.
    fn protocol_of(&self, _kind: ExchangeKind, _number: u64) -> &'static str {
        self.protocol()
    }

    /// Whether a message that is not whole yet is known to be one: then silence is not its end. [`turn_dissector`] is never sure.
    fn is_exact(&self) -> bool {
        true
    }

    /// What TLS within it is opened with, and how.
    fn know_secrets(&mut self, _secrets: Secrets, _open: OpenTls) {}

    /// Bytes that it holds of what was said, and of exchanges that are not whole. It is bounded, whatever was said.
    fn held(&self) -> usize {
        0
    }
}

impl DissectorEvent {
    /// A message begins, which the side sends whose role it is.
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

    /// That a request is made for a span of a trace, if it says so.
    fn in_trace(exchange: u64, context: Option<Traceparent>) -> Option<Self> {
        context.map(|context| Self::InTrace { exchange, context })
    }

    /// As [`DissectorEvent::begins`]: the message is whole.
    const fn ends(exchange: u64, role: ExchangeRole, at: u64) -> Self {
        Self::Ends {
            exchange,
            role,
            side: role.sender(),
            at,
        }
    }

    /// A message that answers nothing and is not answered, whole.
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

    /// Which exchange it is about, if it is about one.
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

/// The trace that a header of a request names, where it is one that is kept and says one.
fn trace_context(name: &[u8], value: &[u8]) -> Option<Traceparent> {
    let text = std::str::from_utf8(value).ok()?;
    stackline_redact::http::is_kept_header(name)
        .then(|| text.trim().parse().ok())
        .flatten()
}

/// Numbers of exchanges that another dissector found, behind those of so many before it.
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
