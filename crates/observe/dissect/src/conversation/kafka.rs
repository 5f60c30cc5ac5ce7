//! Kafka: a request has the number of its API, a version and a correlation id, which the response repeats. The topic is part of the name
//! if it stands near the beginning, and an error code of the status if the response has it there. A Produce request without
//! acknowledgement is one-way; a Fetch request is marked as waiting. After bytes that were not captured, each side resumes at a message
//! that begins a segment.

mod messages;

use super::correlated_exchanges::CorrelatedExchanges;
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::{DissectorEvent, ExchangeKind, LONGEST_NAME};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use messages::KafkaRequest;
use stackline_events::unit_ids::EventStreamDirection;

/// The length of a request's head in bytes: length, API number, version, correlation id.
const HEAD: usize = 12;
/// The length of a response's head in bytes: length and correlation id.
const HEAD_OF_ANSWER: usize = 8;
/// The longest message in bytes.
const LONGEST: usize = 1 << 30;
/// The longest first message of a connection, in bytes; with a longer one the protocol is not recognised.
const LONGEST_FIRST: usize = 1 << 16;
/// The largest correlation id of the first message; the same applies.
const LARGEST_FIRST: usize = 1 << 24;
/// The most bytes of a message that are held.
const KEEP: usize = HEAD + 4 * LONGEST_NAME;

/// Whether a connection speaks Kafka: it begins with the head of a known request, followed by the client's name.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    let there = opening.there;
    if there.is_empty() && !opening.back.is_empty() {
        return ProtocolVerdict::No;
    }
    let mut fields = RecordFieldReader(there);
    let length = fields.number(4);
    let (key, version, number) = (fields.number(2), fields.number(2), fields.number(4));
    let client = fields.number(2);
    let name = fields.take(
        client
            .filter(|length| *length < 0xffff)
            .unwrap_or(0)
            .min(fields.0.len()),
    );
    let is_known = key.is_none_or(|key| {
        messages::api(key).is_some_and(|api| version.is_none_or(|version| version <= api.newest))
    });
    let is_first = [(length, LONGEST_FIRST), (number, LARGEST_FIRST)];
    let is_small = is_first
        .into_iter()
        .all(|(number, most)| number.is_none_or(|number| number < most));
    let is_name = name.unwrap_or_default().iter().all(u8::is_ascii_graphic);
    let fits = client
        .zip(length)
        .is_none_or(|(client, length)| client == 0xffff || client + HEAD - 2 <= length);
    match client {
        _ if there.first().is_some_and(|byte| *byte != 0)
            || there.get(1).is_some_and(|byte| *byte != 0) =>
        {
            ProtocolVerdict::No
        }
        _ if !(is_known && is_small && is_name && fits)
            || length.is_some_and(|length| length < HEAD - 2) =>
        {
            ProtocolVerdict::No
        }
        Some(_) => ProtocolVerdict::Yes,
        None => ProtocolVerdict::Perhaps,
    }
}

/// The dissector of one Kafka connection.
#[derive(Debug, Default)]
pub struct Kafka {
    dialogue: RecordDialogue,
    /// The exchanges by correlation id, each with its request.
    exchanges: CorrelatedExchanges<usize, KafkaRequest>,
}

impl RecordProtocol for Kafka {
    const NAME: &'static str = "Kafka";
    const FOREIGN: &'static str = "it is not Kafka";

    type Phase = ();

    dialogue_getters!();

    fn phase(&self) {}

    fn extent(_: (), side: EventStreamDirection, head: &[u8]) -> Extent {
        extent(side, head)
    }

    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        if !self.dialogue.is_lost(side) {
            return;
        }
        let mut fields = RecordFieldReader(bytes);
        let is_begin = match side {
            EventStreamDirection::There => {
                let opening = ConversationOpening {
                    there: bytes,
                    back: &[],
                    port: 0,
                };
                recognise(&opening) == ProtocolVerdict::Yes
            }
            EventStreamDirection::Back => {
                let is_length = fields.number(4).is_some_and(|length| length < LONGEST);
                is_length
                    && fields
                        .number(4)
                        .is_some_and(|number| self.exchanges.remembered(&number).is_some())
            }
        };
        if is_begin {
            self.dialogue.begin_side_anew(side);
        }
    }

    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (held, at) = (records.held(), records.at());
        if side == EventStreamDirection::Back {
            let number = RecordFieldReader(&held[4..]).number(4).unwrap_or(0);
            self.exchanges.answers(&number, at, found);
            return;
        }
        let is_one_way = KafkaRequest::read(held).is_some_and(|request| request.is_one_way(held));
        let kind = if is_one_way {
            ExchangeKind::OneWay
        } else {
            ExchangeKind::Call
        };
        let exchange = self.dialogue.begin_request(kind, at, found);
        self.exchanges.begin_request(exchange);
    }

    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (held, end) = (records.held(), records.end());
        if side == EventStreamDirection::Back {
            let number = RecordFieldReader(&held[4..]).number(4).unwrap_or(0);
            if let Some(request) = self.exchanges.remembered(&number) {
                let status = request.status(&held[HEAD_OF_ANSWER..]);
                self.exchanges.answered(&number, status, records, found);
            }
            return;
        }
        let Some(request) = KafkaRequest::read(held) else {
            return;
        };
        let (name, number) = (request.name(held), request.number);
        match request.is_one_way(held) {
            true => drop(self.exchanges.finish_unanswered(name, end, found)),
            false => self
                .exchanges
                .finish_request(number, request, name, end, found),
        }
    }

    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        self.exchanges.lose(why, found);
        self.dialogue.lose();
    }
}

/// The length of the message that begins with these bytes.
fn extent(side: EventStreamDirection, head: &[u8]) -> Extent {
    let Some(length) = RecordFieldReader(head).number(4) else {
        return Extent::More;
    };
    let least = if side == EventStreamDirection::There {
        HEAD
    } else {
        HEAD_OF_ANSWER
    };
    if length > LONGEST || length + 4 < least {
        return Extent::Wrong;
    }
    if head.len() < least {
        return Extent::More;
    }
    let whole = Extent::Record {
        length: (4 + length) as u64,
        keep: KEEP,
    };
    match (side, KafkaRequest::read(head)) {
        (EventStreamDirection::Back, _) => whole,
        (EventStreamDirection::There, None) => Extent::Wrong,
        // Whether the request is answered (Produce) stands behind names, so more bytes are needed.
        (EventStreamDirection::There, Some(request))
            if request.needs_more(head) && head.len() < KEEP.min(4 + length) =>
        {
            Extent::More
        }
        (EventStreamDirection::There, Some(_)) => whole,
    }
}

#[cfg(test)]
mod tests;
