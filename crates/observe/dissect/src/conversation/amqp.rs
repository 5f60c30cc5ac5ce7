//! AMQP 0-9-1: finds exchanges in the frames of a connection's channels. A method is answered by its `-ok` method on the same channel. A
//! published message is one-way, or is answered by its confirmation if the channel asked for confirmations; a delivered message is a
//! push. The content frames behind a method belong to its message. After bytes that were not captured, each side resumes at a frame that
//! begins a segment; contents that were in progress are lost.

mod methods;

use super::correlated_exchanges::CorrelatedExchanges;
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::{DissectorEvent, ExchangeKind, ExchangeRole, LONGEST_NAME, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use methods::{Method, MethodId};
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::BTreeMap;

/// The protocol header that a client begins with.
const GREETING: &[u8] = b"AMQP\0\0\x09\x01";
/// The length of a frame's head in bytes: type, channel and size.
const HEAD: usize = 7;
/// The last byte of every frame.
const END: u8 = 0xce;
/// Frame types.
const METHOD: u8 = 1;
const CONTENT: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
/// The most bytes of a frame that are held.
const KEEP: usize = HEAD + 4 * LONGEST_NAME;
/// The longest frame in bytes; a frame that announces more is not taken as AMQP.
const LONGEST: usize = 1 << 28;
/// The most channels that may confirm messages, or have a content in progress, at once.
const MOST_CHANNELS: usize = Bound::Waiting.most();

/// Whether a connection speaks AMQP.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    if opening.there.is_empty() && !opening.back.is_empty() {
        return ProtocolVerdict::No;
    }
    ProtocolVerdict::begins(opening.there, GREETING)
}

/// What matches an answer to its request: the channel, the method that answers, and the delivery tag for confirmations (else 0).
type Key = (usize, MethodId, u64);

/// The dissector of one AMQP connection.
#[derive(Debug, Default)]
pub struct Amqp {
    dialogue: RecordDialogue,
    exchanges: CorrelatedExchanges<Key, ()>,
    /// Whether the client has sent its protocol header.
    is_greeted: bool,
    /// For each channel that confirms messages, how many were published on it.
    confirming: BTreeMap<usize, u64>,
    /// Contents in progress, by sender (`true`: the server) and channel.
    contents: BTreeMap<(bool, usize), OpenContent>,
}

/// A method with a content that is not complete.
#[derive(Debug)]
struct OpenContent {
    exchange: u64,
    role: ExchangeRole,
    name: RedactedName,
    /// The bytes of the body that are still to come; `None` until the content header says it.
    left: Option<u64>,
    /// The key of the confirmation that answers it, if there will be one.
    key: Option<Key>,
}

impl OpenContent {
    fn new(exchange: u64, role: ExchangeRole, method: &Method<'_>, key: Option<Key>) -> Self {
        let (name, left) = (method.name(), None);
        Self {
            exchange,
            role,
            name,
            left,
            key,
        }
    }
}

impl RecordProtocol for Amqp {
    const NAME: &'static str = "AMQP";
    const FOREIGN: &'static str = "it is not AMQP";

    type Phase = bool;

    dialogue_getters!();

    fn phase(&self) -> bool {
        self.is_greeted
    }

    fn extent(is_greeted: bool, side: EventStreamDirection, head: &[u8]) -> Extent {
        let is_greeting = head.first() == Some(&GREETING[0]);
        if is_greeting && (side == EventStreamDirection::Back || !is_greeted) {
            let length = GREETING.len();
            return if head.len() < length {
                Extent::More
            } else {
                Extent::Record {
                    length: length as u64,
                    keep: length,
                }
            };
        }
        extent(head)
    }

    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let is_frame = bytes
            .get(..HEAD)
            .is_some_and(|head| matches!(extent(head), Extent::Record { .. }));
        let size = RecordFieldReader(bytes.get(3..).unwrap_or_default())
            .number(4)
            .unwrap_or(0);
        let is_ended = bytes.get(HEAD + size).is_none_or(|end| *end == END);
        if self.dialogue.is_lost(side) && is_frame && is_ended {
            self.dialogue.begin_side_anew(side);
        }
    }

    fn headed(&mut self, _: EventStreamDirection, _: &mut Vec<DissectorEvent>) {}

    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (held, end) = (records.held().to_vec(), records.end());
        if held.first() == Some(&GREETING[0]) {
            return self.greeting(side, found);
        }
        let mut fields = RecordFieldReader(&held);
        let (Some(kind), Some(channel), Some(size)) =
            (fields.number(1), fields.number(2), fields.number(4))
        else {
            return;
        };
        match u8::try_from(kind) {
            Ok(METHOD) => self.method(side, channel, fields, found),
            Ok(CONTENT) => {
                let _ = fields.take(4);
                let size = fields.little(8).map(u64::swap_bytes);
                self.content(side, channel, size, end, found);
            }
            Ok(BODY) => {
                let size = u64::try_from(size).unwrap_or(u64::MAX);
                let open = self
                    .contents
                    .get_mut(&(side == EventStreamDirection::Back, channel));
                let left = open
                    .and_then(|open| open.left)
                    .map(|left| left.saturating_sub(size));
                self.content(side, channel, left, end, found);
            }
            _ => {}
        }
    }

    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        self.exchanges.lose(why, found);
        let contents = std::mem::take(&mut self.contents).into_values();
        found.extend(contents.map(|open| DissectorEvent::Void {
            exchange: open.exchange,
            why,
        }));
        // It is unknown to which message a later confirmation would refer.
        self.confirming.clear();
        self.dialogue.lose();
    }
}

impl Amqp {
    /// A protocol header: the client's first bytes, or the answer of a server that wants another version.
    fn greeting(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (at, end) = (records.at(), records.end());
        self.is_greeted = true;
        if side == EventStreamDirection::Back {
            let status = RedactedName::fixed("ERROR version mismatch");
            self.exchanges
                .answered(&(0, methods::START, 0), status, records, found);
            return;
        }
        let exchange = self
            .dialogue
            .begin_request(ExchangeKind::Handshake, at, found);
        self.exchanges.begin_request(exchange);
        let name = RedactedName::fixed("connection");
        self.exchanges
            .finish_request((0, methods::START, 0), (), name, end, found);
    }

    /// A method frame of either side.
    fn method(
        &mut self,
        side: EventStreamDirection,
        channel: usize,
        fields: RecordFieldReader<'_>,
        found: &mut Vec<DissectorEvent>,
    ) {
        let Some(method) = Method::read(fields) else {
            return;
        };
        let records = self.dialogue.records(side);
        let (at, end) = (records.at(), records.end());
        if side == EventStreamDirection::There {
            return self.of_client(channel, &method, at, end, found);
        }
        if method.id == methods::START || method.is_answer() {
            let key = (channel, method.id, 0);
            let is_confirming = method.id == methods::CONFIRM_OK;
            if is_confirming
                && (self.confirming.len() < MOST_CHANNELS || self.confirming.contains_key(&channel))
            {
                self.confirming.insert(channel, 0);
            }
            // `get-empty` answers the same request as `get-ok`, so it is looked up under the key of that.
            let key = if method.id == methods::GET_EMPTY {
                (channel, methods::GET_OK, 0)
            } else {
                key
            };
            self.exchanges
                .answered(&key, method.status(), records, found);
            return;
        }
        match method.id {
            methods::ACK | methods::NACK | methods::REJECT => self.confirm(channel, &method, found),
            methods::CHANNEL_CLOSE | methods::CONNECTION_CLOSE => {
                self.closed(channel, &method, found)
            }
            _ if method.has_content() => {
                let exchange = self.dialogue.begin_notice(at, found);
                let open = OpenContent::new(exchange, ExchangeRole::Response, &method, None);
                self.opens(channel, open, found);
            }
            _ => self
                .dialogue
                .one_way(ExchangeRole::Response, method.name(), found),
        }
    }

    /// A method that the client sends.
    fn of_client(
        &mut self,
        channel: usize,
        method: &Method<'_>,
        at: u64,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        if method.id == methods::PUBLISH {
            let tag = self.confirming.get_mut(&channel).map(|count| {
                *count += 1;
                *count
            });
            let kind = if tag.is_some() {
                ExchangeKind::Call
            } else {
                ExchangeKind::OneWay
            };
            let exchange = self.dialogue.begin_request(kind, at, found);
            let key = tag.map(|tag| (channel, methods::ACK, tag));
            let open = OpenContent::new(exchange, ExchangeRole::Request, method, key);
            return self.opens(channel, open, found);
        }
        let Some(answer) = method.answer() else {
            return self
                .dialogue
                .one_way(ExchangeRole::Request, method.name(), found);
        };
        let exchange = self.dialogue.begin_request(method.kind(), at, found);
        self.exchanges.begin_request(exchange);
        self.exchanges
            .finish_request((channel, answer, 0), (), method.name(), end, found);
    }

    /// A method with a content begins.
    fn opens(&mut self, channel: usize, open: OpenContent, found: &mut Vec<DissectorEvent>) {
        let place = (open.role == ExchangeRole::Response, channel);
        if self.contents.len() >= MOST_CHANNELS && !self.contents.contains_key(&place) {
            let (exchange, why) = (open.exchange, super::TOO_MANY);
            found.push(DissectorEvent::Void { exchange, why });
            return found.push(DissectorEvent::LeftOut(Bound::Waiting, 1));
        }
        if let Some(before) = self.contents.insert(place, open) {
            let (exchange, why) = (
                before.exchange,
                "another message arrived in the middle of it",
            );
            found.push(DissectorEvent::Void { exchange, why });
        }
    }

    /// Notes that `left` bytes of a content are still to come, and ends the message at 0.
    fn content(
        &mut self,
        side: EventStreamDirection,
        channel: usize,
        left: Option<u64>,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let place = (side == EventStreamDirection::Back, channel);
        let Some(open) = self.contents.get_mut(&place) else {
            return;
        };
        open.left = left;
        if left != Some(0) {
            return;
        }
        let Some(open) = self.contents.remove(&place) else {
            return;
        };
        match open.key {
            Some(key) => {
                self.exchanges.begin_request(open.exchange);
                self.exchanges
                    .finish_request(key, (), open.name, end, found);
            }
            None => {
                found.push(DissectorEvent::named(open.exchange, open.role, open.name));
                found.push(DissectorEvent::ends(open.exchange, open.role, end));
            }
        }
    }

    /// The server confirms or rejects published messages: one, or all up to a tag.
    fn confirm(&mut self, channel: usize, method: &Method<'_>, found: &mut Vec<DissectorEvent>) {
        let (tag, is_multiple) = method.confirmation().unwrap_or((0, false));
        let keys: Vec<Key> = match is_multiple {
            true => {
                let last = if tag == 0 { u64::MAX } else { tag };
                let key = |tag| (channel, methods::ACK, tag);
                self.exchanges.keys_between(key(1), key(last))
            }
            false => vec![(channel, methods::ACK, tag)],
        };
        let records = self.dialogue.records(EventStreamDirection::Back);
        for key in keys {
            self.exchanges
                .answered(&key, method.status(), records, found);
        }
    }

    /// The server closes a channel or the whole connection with a code: every request that waits there failed.
    fn closed(&mut self, channel: usize, method: &Method<'_>, found: &mut Vec<DissectorEvent>) {
        let (first, last) = if method.id == methods::CONNECTION_CLOSE {
            (0, usize::MAX)
        } else {
            (channel, channel)
        };
        let from = (first, (0, 0), 0);
        let to = (last, (usize::MAX, usize::MAX), u64::MAX);
        let keys = self.exchanges.keys_between(from, to);
        let records = self.dialogue.records(EventStreamDirection::Back);
        for key in &keys {
            self.exchanges
                .answered(key, method.status(), records, found);
        }
        if keys.is_empty() {
            self.dialogue
                .one_way(ExchangeRole::Response, method.status(), found);
        }
        self.confirming
            .retain(|open, _| !(first..=last).contains(open));
    }
}

/// The length of the frame that begins with these bytes.
fn extent(head: &[u8]) -> Extent {
    let mut fields = RecordFieldReader(head);
    let kind = fields.number(1).and_then(|kind| u8::try_from(kind).ok());
    if kind.is_some_and(|kind| !matches!(kind, METHOD | CONTENT | BODY | HEARTBEAT)) {
        return Extent::Wrong;
    }
    let _ = fields.take(2);
    match fields.number(4) {
        None => Extent::More,
        Some(size) if size > LONGEST => Extent::Wrong,
        Some(size) => Extent::Record {
            length: (HEAD + size + 1) as u64,
            keep: if kind == Some(BODY) { HEAD } else { KEEP },
        },
    }
}

#[cfg(test)]
mod tests;
