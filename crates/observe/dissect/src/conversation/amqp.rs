//! AMQP 0-9-1: frames of channels. A method is answered by its `-ok` on its channel; what is published is one-way, or answered by its
//! confirmation where the channel asked for these; what is delivered is a push. Contents are one message with the method before them. After
//! bytes that were not seen each side goes on with a frame at the beginning of a segment, and contents that go on are unknown.

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

/// What a client begins with.
const GREETING: &[u8] = b"AMQP\0\0\x09\x01";
/// Kind, channel and size of a frame, and the byte at its end.
const HEAD: usize = 7;
const END: u8 = 0xce;
const METHOD: u8 = 1;
const CONTENT: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
/// Bytes of a frame that are held, at most.
const KEEP: usize = HEAD + 4 * LONGEST_NAME;
/// Bytes of a frame, at most: what announces more is not AMQP.
const LONGEST: usize = 1 << 28;
/// Channels on which something may go on at once.
const MOST_CHANNELS: usize = Bound::Waiting.most();

/// Whether a connection speaks it.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    if opening.there.is_empty() && !opening.back.is_empty() {
        return ProtocolVerdict::No;
    }
    ProtocolVerdict::begins(opening.there, GREETING)
}

/// What an answer repeats: the channel, the method that answers, and which of the messages that were published.
type Key = (usize, MethodId, u64);

/// One connection.
#[derive(Debug, Default)]
pub struct Amqp {
    dialogue: RecordDialogue,
    exchanges: CorrelatedExchanges<Key, ()>,
    is_greeted: bool,
    /// How many messages were published on channels that confirm them.
    confirming: BTreeMap<usize, u64>,
    /// Contents that go on, by the side that sends them and the channel.
    contents: BTreeMap<(bool, usize), OpenContent>,
}

/// A method with a content, which is not whole.
#[derive(Debug)]
struct OpenContent {
    exchange: u64,
    role: ExchangeRole,
    name: RedactedName,
    /// Bytes of its body that are to come, once that is known.
    left: Option<u64>,
    /// What will confirm it.
    key: Option<Key>,
}

impl OpenContent {
    fn of(exchange: u64, role: ExchangeRole, method: &Method<'_>, key: Option<Key>) -> Self {
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
        // Which message a confirmation is about is not known any more.
        self.confirming.clear();
        self.dialogue.lose();
    }
}

impl Amqp {
    /// A client greets, or a server that wants another version does.
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

    fn method(
        &mut self,
        side: EventStreamDirection,
        channel: usize,
        fields: RecordFieldReader<'_>,
        found: &mut Vec<DissectorEvent>,
    ) {
        let Some(method) = Method::of(fields) else {
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
            // The body of a message follows; the method says that there is one.
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
                let open = OpenContent::of(exchange, ExchangeRole::Response, &method, None);
                self.opens(channel, open, found);
            }
            _ => self
                .dialogue
                .one_way(ExchangeRole::Response, method.name(), found),
        }
    }

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
            let open = OpenContent::of(exchange, ExchangeRole::Request, method, key);
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

    /// A method with a content has begun.
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

    /// So many bytes of a content are to come.
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

    /// The server has, or has not, what was published, up to a message or that one alone.
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

    /// The server closes a channel, or all, with a code: what waits there failed.
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
