//! MQTT 3.1.1 and 5: a packet that answers repeats the packet identifier. Messages published with quality of service 0 are one-way, and
//! those that the server delivers are pushes. After bytes that were not captured nothing more is known, since packets have no mark at
//! their start.

use super::correlated_exchanges::CorrelatedExchanges;
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::{DissectorEvent, ExchangeKind, LONGEST_NAME, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::operation;

/// Packet types: the upper half of the first byte. PUBLISHED is PUBACK, RECEIVED PUBREC, RELEASE PUBREL, COMPLETE PUBCOMP.
const CONNECT: u8 = 1;
const CONNECT_ANSWER: u8 = 2;
const PUBLISH: u8 = 3;
const PUBLISHED: u8 = 4;
const RECEIVED: u8 = 5;
const RELEASE: u8 = 6;
const COMPLETE: u8 = 7;
const SUBSCRIBE: u8 = 8;
const SUBSCRIBED: u8 = 9;
const UNSUBSCRIBE: u8 = 10;
const UNSUBSCRIBED: u8 = 11;
const PING: u8 = 12;
const PONG: u8 = 13;
const DISCONNECT: u8 = 14;
const AUTHENTICATE: u8 = 15;
/// The protocol level of MQTT 5.
const FIVE: u8 = 5;
/// Reason codes from this one on are failures.
const FAILURES: usize = 0x80;
/// The most bytes of a packet that are held.
const KEEP: usize = 5 + 2 * LONGEST_NAME;

/// Whether a connection speaks MQTT: it begins with a CONNECT packet that names the protocol.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    let there = opening.there;
    if there.is_empty() && !opening.back.is_empty() {
        return ProtocolVerdict::No;
    }
    if there.first().is_some_and(|byte| *byte != CONNECT << 4) {
        return ProtocolVerdict::No;
    }
    let length = there
        .iter()
        .skip(1)
        .take_while(|byte| **byte >= 0x80)
        .count()
        + 1;
    let begin = there.get(1 + length..).unwrap_or_default();
    let verdicts =
        [b"\0\x04MQTT\x04", b"\0\x04MQTT\x05"].map(|begins| ProtocolVerdict::begins(begin, begins));
    match () {
        // The length has four bytes at most (MQTT 3.1.1, section 2.2.3).
        () if length > 4 => ProtocolVerdict::No,
        () if verdicts.contains(&ProtocolVerdict::Yes) => ProtocolVerdict::Yes,
        () if verdicts.contains(&ProtocolVerdict::Perhaps) => ProtocolVerdict::Perhaps,
        () => ProtocolVerdict::No,
    }
}

/// The dissector of one MQTT connection.
#[derive(Debug, Default)]
pub struct Mqtt {
    dialogue: RecordDialogue,
    /// The exchanges by the type of the packet that answers and its packet identifier; 0 if it has none.
    exchanges: CorrelatedExchanges<(u8, usize), ()>,
    version: u8,
}

impl RecordProtocol for Mqtt {
    const NAME: &'static str = "MQTT";
    const FOREIGN: &'static str = "it is not MQTT";

    type Phase = ();

    dialogue_getters!();

    fn phase(&self) {}

    fn extent(_: (), _: EventStreamDirection, head: &[u8]) -> Extent {
        if kind_of(head) == 0 {
            return Extent::Wrong;
        }
        let Some((length, from)) = length_of(head) else {
            return if head.len() < 5 {
                Extent::More
            } else {
                Extent::Wrong
            };
        };
        Extent::Record {
            length: (from + length) as u64,
            keep: KEEP,
        }
    }

    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (held, at) = (records.held(), records.at());
        match (side, kind_of(held)) {
            (EventStreamDirection::There, CONNECT) => {
                self.begin_request(ExchangeKind::Handshake, at, found)
            }
            // Quality of service 0 is not answered.
            (EventStreamDirection::There, PUBLISH) if held[0] & 6 == 0 => {
                self.begin_request(ExchangeKind::OneWay, at, found)
            }
            (EventStreamDirection::There, PUBLISH | RELEASE | SUBSCRIBE | UNSUBSCRIBE | PING) => {
                self.begin_request(ExchangeKind::Call, at, found);
            }
            (EventStreamDirection::There, DISCONNECT | AUTHENTICATE) => {
                self.begin_request(ExchangeKind::OneWay, at, found)
            }
            (EventStreamDirection::Back, PUBLISH | DISCONNECT) => {
                let exchange = self.dialogue.begin_notice(at, found);
                self.exchanges.begin_notice(exchange);
            }
            _ => {}
        }
    }

    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        match side {
            EventStreamDirection::There => self.of_client(found),
            EventStreamDirection::Back => self.of_server(found),
        }
    }

    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        self.exchanges.lose(why, found);
        self.dialogue.lose();
    }
}

impl Mqtt {
    fn begin_request(&mut self, kind: ExchangeKind, at: u64, found: &mut Vec<DissectorEvent>) {
        let exchange = self.dialogue.begin_request(kind, at, found);
        self.exchanges.begin_request(exchange);
    }

    /// A packet of the client is complete.
    fn of_client(&mut self, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(EventStreamDirection::There);
        let (held, end) = (records.held(), records.end());
        let body = body_of(held);
        let mut fields = RecordFieldReader(body);
        let fixed = RedactedName::fixed;
        let (answer, number, name) = match kind_of(held) {
            CONNECT => {
                // Behind the length and the name of the protocol.
                self.version = body.get(6).copied().unwrap_or(0);
                (CONNECT_ANSWER, Some(0), fixed("CONNECT"))
            }
            PUBLISH => {
                let topic = fields.vector(2).unwrap_or_default();
                let name = operation::redact_at_subject("PUBLISH", topic);
                // Quality of service 1 is answered by PUBACK, 2 by PUBREC.
                let answer = if held[0] & 4 == 0 {
                    PUBLISHED
                } else {
                    RECEIVED
                };
                (answer, fields.number(2).filter(|_| held[0] & 6 != 0), name)
            }
            RELEASE => (COMPLETE, fields.number(2), fixed("PUBREL")),
            SUBSCRIBE => {
                let number = fields.number(2);
                (
                    SUBSCRIBED,
                    number,
                    operation::redact_at_subject("SUBSCRIBE", self.filter(fields)),
                )
            }
            UNSUBSCRIBE => {
                let number = fields.number(2);
                (
                    UNSUBSCRIBED,
                    number,
                    operation::redact_at_subject("UNSUBSCRIBE", self.filter(fields)),
                )
            }
            PING => (PONG, Some(0), fixed("PINGREQ")),
            AUTHENTICATE => (0, None, fixed("AUTH")),
            _ => (0, None, fixed("DISCONNECT")),
        };
        match number {
            Some(number) => self
                .exchanges
                .finish_request((answer, number), (), name, end, found),
            None => drop(self.exchanges.finish_unanswered(name, end, found)),
        }
    }

    /// The first topic filter, behind the properties that MQTT 5 puts before it.
    fn filter<'b>(&self, mut fields: RecordFieldReader<'b>) -> &'b [u8] {
        if self.version == FIVE {
            let properties = properties_length(&mut fields);
            if properties.and_then(|length| fields.take(length)).is_none() {
                return &[];
            }
        }
        fields.vector(2).unwrap_or_default()
    }

    /// A packet of the server is complete.
    fn of_server(&mut self, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(EventStreamDirection::Back);
        let (held, end) = (records.held(), records.end());
        let mut fields = RecordFieldReader(body_of(held));
        let kind = kind_of(held);
        let key = match kind {
            PUBLISH => {
                let topic = fields.vector(2).unwrap_or_default();
                let name = operation::redact_at_subject("PUBLISH", topic);
                self.exchanges.finish_notice(name, end, found);
                return;
            }
            DISCONNECT => {
                let name = RedactedName::fixed("DISCONNECT");
                self.exchanges.finish_notice(name, end, found);
                return;
            }
            CONNECT_ANSWER => {
                let _ = fields.take(1);
                (kind, 0)
            }
            PONG => (kind, 0),
            _ => (kind, fields.number(2).unwrap_or(0)),
        };
        if matches!(kind, SUBSCRIBED | UNSUBSCRIBED) && self.version == FIVE {
            let _ = properties_length(&mut fields).and_then(|length| fields.take(length));
        }
        let code = fields.number(1).unwrap_or(0);
        // MQTT 3.1.1 refuses a connection with codes from 1 on.
        let has_failed = code >= FAILURES || kind == CONNECT_ANSWER && code > 0;
        let status = match has_failed {
            true => RedactedName::number("ERROR ", code as u64),
            false => RedactedName::fixed("OK"),
        };
        self.exchanges.answered(&key, status, records, found);
    }
}

/// The type of a packet; 0 without bytes.
fn kind_of(held: &[u8]) -> u8 {
    held.first().map_or(0, |first| first >> 4)
}

/// The length of what follows a packet's head, and the offset where it begins.
fn length_of(head: &[u8]) -> Option<(usize, usize)> {
    let mut fields = RecordFieldReader(head.get(1..)?);
    let length = properties_length(&mut fields)?;
    Some((length, head.len() - fields.0.len()))
}

/// What follows a packet's head, as far as it is held.
fn body_of(held: &[u8]) -> &[u8] {
    length_of(held)
        .and_then(|(_, from)| held.get(from..))
        .unwrap_or_default()
}

/// A variable-length integer: up to four bytes with seven bits each, the lowest bits first.
fn properties_length(fields: &mut RecordFieldReader<'_>) -> Option<usize> {
    let mut number = 0;
    for shift in [0, 7, 14, 21] {
        let byte = fields.number(1)?;
        number |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests;
