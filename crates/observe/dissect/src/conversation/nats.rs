//! NATS: lines, some of which are followed by a message. A message with a reply subject is a request, and the first message on that
//! subject is its response. All other messages are one-way. After bytes that were not captured, each side resumes at a line that begins a
//! segment.

use super::correlated_exchanges::CorrelatedExchanges;
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::Extent;
use super::text_lines::{is_too_long, line_extent, number, words_of};
use super::tls::{self, TlsDissector};
use super::{DissectorEvent, ExchangeKind, ExchangeRole, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::operation;

/// The first words of the client's lines.
const OF_CLIENT: [&str; 7] = ["CONNECT", "PUB", "HPUB", "SUB", "UNSUB", "PING", "PONG"];
/// The first words of the server's lines.
const OF_SERVER: [&str; 7] = ["INFO", "MSG", "HMSG", "PING", "PONG", "+OK", "-ERR"];
/// The most bytes of a message's headers that are held: `NATS/1.0 503`.
const STATUS_LINE: usize = 16;
/// The subject prefix of requests that wait until there is a message.
const NEXT_MESSAGE: &[u8] = b"$JS.API.CONSUMER.MSG.NEXT.";
/// Error texts of servers that are kept.
const ERRORS: [&str; 11] = [
    "Authentication Timeout",
    "Authorization Timeout",
    "Authorization Violation",
    "Invalid Subject",
    "Maximum Connections Exceeded",
    "Maximum Payload Violation",
    "Parser Error",
    "Permissions Violation",
    "Slow Consumer",
    "Stale Connection",
    "Unknown Protocol Operation",
];

/// Whether a connection speaks NATS: the server introduces itself first.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    if !opening.there.is_empty() && opening.back.is_empty() {
        return ProtocolVerdict::No;
    }
    ProtocolVerdict::begins(opening.back, b"INFO {")
}

/// The dissector of one NATS connection.
#[derive(Debug, Default)]
pub struct Nats {
    dialogue: RecordDialogue,
    /// Requests by their reply subject; pings by their number behind a line end, which no subject contains.
    exchanges: CorrelatedExchanges<Vec<u8>, ()>,
    /// The number of pings that were sent, and that were answered.
    pings: [u64; 2],
    /// Whether pings can no longer be matched with their answers.
    are_pings_lost: bool,
}

impl RecordProtocol for Nats {
    const NAME: &'static str = "NATS";
    const FOREIGN: &'static str = "it is not NATS";

    type Phase = ();

    dialogue_getters!();

    fn phase(&self) {}

    fn name(&self) -> &'static str {
        match self.dialogue.inner() {
            None => Self::NAME,
            Some(_) => "NATS over TLS, alternating",
        }
    }

    fn extent(_: (), side: EventStreamDirection, head: &[u8]) -> Extent {
        match line_extent(head, |line| behind_line(side, line)) {
            Extent::Record { length, keep } => Extent::Record {
                length,
                keep: keep + STATUS_LINE,
            },
            extent => extent,
        }
    }

    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let is_first = self.dialogue.records(side).end() == 0;
        if side == EventStreamDirection::There && is_first && tls::is_client_hello(bytes) {
            return self.dialogue.hand_over(Box::<TlsDissector>::default());
        }
        let line = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        if self.dialogue.is_lost(side) && line.ends_with(b"\n") && behind_line(side, line).is_some()
        {
            self.dialogue.begin_side_anew(side);
        }
    }

    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let at = records.at();
        let Some(message) = NatsMessage::read(records.held()) else {
            return;
        };
        if side == EventStreamDirection::There {
            let kind = match message.reply {
                Some(_) => ExchangeKind::Call,
                None => ExchangeKind::OneWay,
            };
            let exchange = self.dialogue.begin_request(kind, at, found);
            self.exchanges.begin_request(exchange);
        } else if !self.exchanges.answers(&message.subject.to_vec(), at, found) {
            let exchange = self.dialogue.begin_notice(at, found);
            self.exchanges.begin_notice(exchange);
        }
    }

    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (held, end) = (records.held(), records.end());
        match (NatsMessage::read(held), side) {
            (Some(message), EventStreamDirection::There) => match message.reply {
                Some(reply) => {
                    let reply = reply.to_vec();
                    self.exchanges
                        .finish_request(reply, (), message.name(), end, found);
                }
                None => drop(self.exchanges.finish_unanswered(message.name(), end, found)),
            },
            (Some(message), EventStreamDirection::Back) => {
                if !self.exchanges.finish_notice(message.name(), end, found) {
                    let subject = message.subject.to_vec();
                    self.exchanges
                        .answered(&subject, status(held), records, found);
                }
            }
            (None, EventStreamDirection::There) => self.line_of_client(found),
            (None, EventStreamDirection::Back) => self.line_of_server(found),
        }
    }

    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let is_long = |side| is_too_long(self.dialogue.records(side).held());
        if why == Self::FOREIGN
            && (is_long(EventStreamDirection::There) || is_long(EventStreamDirection::Back))
        {
            found.push(DissectorEvent::LeftOut(Bound::Head, 1));
        }
        self.exchanges.lose(why, found);
        self.dialogue.lose();
        self.are_pings_lost = true;
    }
}

impl Nats {
    /// A line of the client without a message is complete.
    fn line_of_client(&mut self, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(EventStreamDirection::There);
        let (at, end) = (records.at(), records.end());
        let words: Vec<&[u8]> = words_of(records.held()).take(2).collect();
        let name = match word_of(OF_CLIENT, words.first().copied()) {
            Some("PING") if !self.are_pings_lost => {
                let exchange = self.dialogue.begin_request(ExchangeKind::Call, at, found);
                self.exchanges.begin_request(exchange);
                let key = ping_key(self.pings[0]);
                self.pings[0] += 1;
                return self.exchanges.finish_request(
                    key,
                    (),
                    RedactedName::fixed("PING"),
                    end,
                    found,
                );
            }
            Some(word @ "SUB") => {
                operation::redact_at_subject(word, words.get(1).copied().unwrap_or_default())
            }
            Some(word @ ("CONNECT" | "UNSUB" | "PING")) => RedactedName::fixed(word),
            _ => return,
        };
        self.dialogue.one_way(ExchangeRole::Request, name, found);
    }

    /// A line of the server without a message is complete.
    fn line_of_server(&mut self, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(EventStreamDirection::Back);
        let held = records.held();
        let oldest = ping_key(self.pings[1]);
        let word = word_of(OF_SERVER, words_of(held).next());
        let name = match word {
            Some("PONG") => {
                let is_one =
                    self.exchanges
                        .answered(&oldest, RedactedName::fixed("PONG"), records, found);
                self.pings[1] += u64::from(is_one);
                return;
            }
            Some("-ERR") => {
                let text = held.get(b"-ERR".len()..).unwrap_or_default().trim_ascii();
                let text = text.strip_prefix(b"'").unwrap_or(text);
                let error =
                    operation::redact_error(text.strip_suffix(b"'").unwrap_or(text), &ERRORS);
                if self
                    .exchanges
                    .answered(&oldest, error.clone(), records, found)
                {
                    self.pings[1] += 1;
                    return;
                }
                error
            }
            Some(word @ ("INFO" | "PING")) => RedactedName::fixed(word),
            _ => return,
        };
        self.dialogue.one_way(ExchangeRole::Response, name, found);
    }
}

/// A line that is followed by a message.
#[derive(Clone, Copy, Debug)]
struct NatsMessage<'b> {
    word: &'static str,
    subject: &'b [u8],
    reply: Option<&'b [u8]>,
}

impl<'b> NatsMessage<'b> {
    fn read(line: &'b [u8]) -> Option<Self> {
        let mut words = words_of(line);
        let word = word_of(["PUB", "HPUB", "MSG", "HMSG"], words.next())?;
        let subject = words.next()?;
        // The subscription id stands before the reply subject, lengths behind it.
        let rest: Vec<&[u8]> = words.skip(usize::from(word.ends_with("MSG"))).collect();
        let lengths = 1 + usize::from(word.starts_with('H'));
        let reply = rest.first().copied().filter(|_| rest.len() > lengths);
        Some(Self {
            word,
            subject,
            reply,
        })
    }

    fn name(&self) -> RedactedName {
        let name = operation::redact_at_subject(self.word, self.subject);
        match self.subject.starts_with(NEXT_MESSAGE) {
            true => operation::blocking(&name),
            false => name,
        }
    }
}

/// The key of a ping among the exchanges.
fn ping_key(number: u64) -> Vec<u8> {
    [&b"\n"[..], &number.to_be_bytes()].concat()
}

/// The known word that equals `word`, regardless of case.
fn word_of<const N: usize>(words: [&'static str; N], word: Option<&[u8]>) -> Option<&'static str> {
    let word = word?;
    words
        .into_iter()
        .find(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// How many bytes of a message follow a line; `None` if the line is not of that side.
fn behind_line(side: EventStreamDirection, line: &[u8]) -> Option<u64> {
    let first = words_of(line).next();
    let word = match side {
        EventStreamDirection::There => word_of(OF_CLIENT, first),
        EventStreamDirection::Back => word_of(OF_SERVER, first),
    };
    match word? {
        "PUB" | "HPUB" | "MSG" | "HMSG" => number(words_of(line).last()?)?.checked_add(2),
        _ => Some(0),
    }
}

/// The status in the headers of a response, if it has any: 503 means that nobody listens on the request's subject.
fn status(held: &[u8]) -> RedactedName {
    let mut lines = held.splitn(2, |byte| *byte == b'\n');
    let is_with_headers = lines
        .next()
        .is_some_and(|line| line.to_ascii_uppercase().starts_with(b"HMSG"));
    let code = lines
        .next()
        .filter(|_| is_with_headers)
        .and_then(|headers| headers.strip_prefix(b"NATS/1.0 "));
    match code.and_then(|code| number(code.get(..3)?)) {
        Some(code @ (400 | 401 | 409 | 500..=599)) => RedactedName::number("ERROR ", code),
        Some(code) => RedactedName::number("", code),
        None => RedactedName::fixed("message"),
    }
}

#[cfg(test)]
mod tests;
