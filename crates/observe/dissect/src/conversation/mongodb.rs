//! MongoDB: a message begins with its length and its number, and a response repeats the number of its request. Of a command, the name and
//! the collection are kept; of a response, whether it failed and the error code. A response that cannot be read counts as a success.
//! Compressed messages are named as far as they can be read. After bytes that were not captured, each side resumes at a message that
//! begins a segment.

mod document;

use super::correlated_exchanges::CorrelatedExchanges;
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::{DissectorEvent, ExchangeKind, LONGEST_NAME, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use stackline_events::unit_ids::EventStreamDirection;

/// The length of a message's head in bytes: length, number, number of the request it answers, operation.
const HEAD: usize = 16;
/// The same for an OP_MSG, with its flags and the kind of its first section.
const HEAD_OF_MESSAGE: usize = HEAD + 5;
/// The longest message, 48 MB by the protocol.
const LONGEST: u64 = 48_000_000;
/// The most bytes of a message that are held.
const KEEP: usize = HEAD + 4 * LONGEST_NAME;
/// Operation codes.
const REPLY: u64 = 1;
const UPDATE: u64 = 2001;
const INSERT: u64 = 2002;
const QUERY: u64 = 2004;
const GET_MORE: u64 = 2005;
const DELETE: u64 = 2006;
const KILL_CURSORS: u64 = 2007;
const COMPRESSED: u64 = 2012;
const MESSAGE: u64 = 2013;
/// A flag of OP_MSG: a request gets no response; a response is followed by another one.
const MORE_TO_COME: u64 = 2;

/// Whether a connection speaks MongoDB: it begins with the head of a request.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    let there = opening.there;
    if there.is_empty() && !opening.back.is_empty() {
        return ProtocolVerdict::No;
    }
    // A request answers nothing, and the operations of requests are 2004, 2012 and 2013.
    let is_answer = there.iter().take(12).skip(8).any(|byte| *byte != 0);
    let is_operation = matches!(
        there.get(12..),
        None | Some(
            [] | [0xd4 | 0xdc | 0xdd]
                | [0xd4 | 0xdc | 0xdd, 7]
                | [0xd4 | 0xdc | 0xdd, 7, 0]
                | [0xd4 | 0xdc | 0xdd, 7, 0, 0, ..]
        )
    );
    // 48 MB is 0x02dc6c00.
    let is_long = there.get(3).is_some_and(|byte| *byte > 2);
    match extent(
        EventStreamDirection::There,
        there.get(..HEAD).unwrap_or(there),
    ) {
        _ if is_answer || is_long || !is_operation => ProtocolVerdict::No,
        _ if there.len() < HEAD => ProtocolVerdict::Perhaps,
        Extent::Wrong => ProtocolVerdict::No,
        _ => ProtocolVerdict::Yes,
    }
}

/// The dissector of one MongoDB connection.
#[derive(Debug, Default)]
pub struct MongoDb {
    dialogue: RecordDialogue,
    exchanges: CorrelatedExchanges<u64, ()>,
    /// The number of a response that another one follows; that one answers this number instead of the request's.
    followed: Option<u64>,
}

/// The fields at the beginning of every message.
#[derive(Clone, Copy, Debug)]
struct MongoHead {
    length: u64,
    number: u64,
    /// The number of the message that this one answers.
    answers: u64,
    operation: u64,
    flags: u64,
}

impl MongoHead {
    fn read(held: &[u8]) -> Option<Self> {
        let mut fields = RecordFieldReader(held);
        Some(Self {
            length: fields.little(4)?,
            number: fields.little(4)?,
            answers: fields.little(4)?,
            operation: fields.little(4)?,
            flags: fields.little(4).unwrap_or(0),
        })
    }

    const fn has_more_to_come(self) -> bool {
        self.operation == MESSAGE && self.flags & MORE_TO_COME != 0
    }
}

impl RecordProtocol for MongoDb {
    const NAME: &'static str = "MongoDB";
    const FOREIGN: &'static str = "it is not MongoDB";

    type Phase = ();

    dialogue_getters!();

    fn phase(&self) {}

    fn extent(_: (), side: EventStreamDirection, head: &[u8]) -> Extent {
        extent(side, head)
    }

    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let is_head = bytes
            .get(..HEAD_OF_MESSAGE)
            .is_some_and(|head| matches!(extent(side, head), Extent::Record { .. }));
        if self.dialogue.is_lost(side) && is_head {
            self.dialogue.begin_side_anew(side);
        }
    }

    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let at = records.at();
        let Some(head) = MongoHead::read(records.held()) else {
            return;
        };
        let is_unanswered = head.has_more_to_come()
            || matches!(head.operation, UPDATE | INSERT | DELETE | KILL_CURSORS);
        match side {
            EventStreamDirection::There => {
                let kind = if is_unanswered {
                    ExchangeKind::OneWay
                } else {
                    ExchangeKind::Call
                };
                let exchange = self.dialogue.begin_request(kind, at, found);
                self.exchanges.begin_request(exchange);
            }
            EventStreamDirection::Back => {
                if !self.exchanges.answers(&head.answers, at, found)
                    && self.followed == Some(head.answers)
                {
                    let exchange = self.dialogue.begin_notice(at, found);
                    self.exchanges.begin_notice(exchange);
                }
            }
        }
    }

    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (held, end) = (records.held(), records.end());
        let Some(head) = MongoHead::read(held) else {
            return;
        };
        if side == EventStreamDirection::There {
            let name = name_of(head, held);
            let is_unanswered = head.has_more_to_come()
                || matches!(head.operation, UPDATE | INSERT | DELETE | KILL_CURSORS);
            match is_unanswered {
                true => drop(self.exchanges.finish_unanswered(name, end, found)),
                false => self
                    .exchanges
                    .finish_request(head.number, (), name, end, found),
            }
            return;
        }
        let status = status_of(head, held);
        if !self.exchanges.finish_notice(status.clone(), end, found) {
            self.exchanges
                .answered(&head.answers, status, records, found);
        }
        if head.has_more_to_come() {
            self.followed = Some(head.number);
        } else if self.followed == Some(head.answers) {
            self.followed = None;
        }
    }

    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        self.exchanges.lose(why, found);
        self.followed = None;
        self.dialogue.lose();
    }
}

/// The length of the message that begins with these bytes.
fn extent(side: EventStreamDirection, held: &[u8]) -> Extent {
    let Some(head) = MongoHead::read(held) else {
        return Extent::More;
    };
    let is_of_side = match head.operation {
        MESSAGE | COMPRESSED => true,
        REPLY => side == EventStreamDirection::Back,
        UPDATE | INSERT | QUERY | GET_MORE | DELETE | KILL_CURSORS => {
            side == EventStreamDirection::There
        }
        _ => false,
    };
    let least = if head.operation == MESSAGE {
        HEAD_OF_MESSAGE
    } else {
        HEAD
    };
    match head.length {
        length if !is_of_side || length > LONGEST || length < least as u64 => Extent::Wrong,
        _ if held.len() < least => Extent::More,
        length => Extent::Record { length, keep: KEEP },
    }
}

/// The document of a command or a response, as far as it is held and readable.
fn document_of(operation: u64, body: &[u8]) -> Option<Vec<u8>> {
    let mut fields = RecordFieldReader(body);
    match operation {
        MESSAGE => {
            fields.take(4)?;
            (fields.number(1)? == 0).then(|| fields.0.to_vec())
        }
        QUERY => {
            fields.take(4)?;
            let collection = fields.text();
            fields.take(8)?;
            // Older clients send commands as queries of this collection.
            collection.ends_with(b".$cmd").then(|| fields.0.to_vec())
        }
        REPLY => fields.take(20).map(|_| fields.0.to_vec()),
        COMPRESSED => {
            let operation = fields.little(4)?;
            fields.take(4)?;
            let readable = match fields.number(1)? {
                0 => fields.0.to_vec(),
                1 => first_literal(fields.0)?.to_vec(),
                _ => return None,
            };
            // A compressed message within a compressed one is not accepted.
            (operation != COMPRESSED)
                .then(|| document_of(operation, &readable))
                .flatten()
        }
        _ => None,
    }
}

/// The first literal of data compressed with Snappy, which is stored as it is: it stands behind the whole length, with its own length in
/// six bits or in the bytes that follow.
fn first_literal(bytes: &[u8]) -> Option<&[u8]> {
    let mut fields = RecordFieldReader(bytes);
    while fields.number(1)? & 0x80 != 0 {}
    let mark = fields.number(1)?;
    if mark & 3 != 0 {
        return None;
    }
    let length = match mark >> 2 {
        short @ 0..60 => short,
        long => usize::try_from(fields.little(long - 59)?).unwrap_or(usize::MAX),
    };
    // Snappy stores lengths less one.
    fields.take(length.saturating_add(1).min(fields.0.len()))
}

/// The name of a request.
fn name_of(head: MongoHead, held: &[u8]) -> RedactedName {
    let fixed = match head.operation {
        UPDATE => "update",
        INSERT => "insert",
        DELETE => "delete",
        KILL_CURSORS => "killCursors",
        GET_MORE => "getMore",
        COMPRESSED => "compressed command",
        QUERY => "query",
        _ => "command",
    };
    let document = document_of(head.operation, &held[HEAD..]);
    let name = document.and_then(|document| document::command(&document));
    name.unwrap_or_else(|| RedactedName::fixed(fixed))
}

/// The status of a response.
fn status_of(head: MongoHead, held: &[u8]) -> RedactedName {
    let document = document_of(head.operation, &held[HEAD..]);
    match document.and_then(|document| document::failure(&document)) {
        Some(code) => RedactedName::number("ERROR ", code),
        None => RedactedName::fixed("OK"),
    }
}

#[cfg(test)]
mod tests;
