//! WebSocket (RFC 6455): the frames behind the HTTP response that switches to it. A message extends from its first to its last frame.
//! Each message is one-way, since nothing says which one answers which. Control frames may stand between the frames of a message. After
//! bytes that were not captured nothing more is known, since frames have no mark at their start.

use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::{DissectorEvent, ExchangeKind, ExchangeRole, RedactedName};
use stackline_events::unit_ids::EventStreamDirection;

/// Bits of a frame's first byte: whether it is the last one of a message, and its opcode.
const LAST: u8 = 0x80;
const OPERATION: u8 = 0x0f;
const CONTINUES: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// Bits of the second byte: whether the payload is masked, as clients must do, and its length.
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// The dissector of one WebSocket connection.
#[derive(Debug, Default)]
pub struct WebSocket {
    dialogue: RecordDialogue,
    /// The exchange of each side's message in progress.
    messages: [Option<u64>; 2],
}

impl RecordProtocol for WebSocket {
    const NAME: &'static str = "WebSocket";
    const FOREIGN: &'static str = "it is not WebSocket";

    type Phase = ();

    dialogue_getters!();

    fn phase(&self) {}

    fn extent(_: (), side: EventStreamDirection, head: &[u8]) -> Extent {
        let is_known = |first: u8| matches!(first & OPERATION, CONTINUES..=BINARY | CLOSE..=PONG);
        let is_masked = side == EventStreamDirection::There;
        match *head {
            [first, ..] if !is_known(first) => Extent::Wrong,
            // Clients mask, servers do not (RFC 6455, section 5.1).
            [_, second, ..] if (second & MASKED != 0) != is_masked => Extent::Wrong,
            [_, second, ref behind @ ..] => {
                let width = match second & LENGTH {
                    126 => 2,
                    127 => 8,
                    _ => 0,
                };
                let short = u64::from(second & LENGTH);
                let length = match width {
                    0 => Some(short),
                    _ => RecordFieldReader(behind)
                        .number(width)
                        .map(|length| length as u64),
                };
                let mask = if is_masked { 4 } else { 0 };
                let head = 2 + width as u64 + mask;
                match length {
                    None => Extent::More,
                    // RFC 6455, section 5.2: the highest bit is 0.
                    Some(length) if length >> 63 != 0 => Extent::Wrong,
                    Some(length) => Extent::Record {
                        length: head + length,
                        keep: 2,
                    },
                }
            }
            _ => Extent::More,
        }
    }

    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (operation, at) = (records.held()[0] & OPERATION, records.at());
        if !matches!(operation, TEXT | BINARY) {
            return;
        }
        if let Some(exchange) = self.messages[side as usize].take() {
            let why = "another message arrived in the middle of it";
            found.push(DissectorEvent::Void { exchange, why });
        }
        let (exchange, role) = match side {
            EventStreamDirection::There => {
                let exchange = self.dialogue.begin_request(ExchangeKind::OneWay, at, found);
                (exchange, ExchangeRole::Request)
            }
            EventStreamDirection::Back => (
                self.dialogue.begin_notice(at, found),
                ExchangeRole::Response,
            ),
        };
        let name = RedactedName::fixed(if operation == TEXT { "text" } else { "binary" });
        found.push(DissectorEvent::named(exchange, role, name));
        self.messages[side as usize] = Some(exchange);
    }

    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (first, end) = (records.held()[0], records.end());
        let role = match side {
            EventStreamDirection::There => ExchangeRole::Request,
            EventStreamDirection::Back => ExchangeRole::Response,
        };
        let name = match first & OPERATION {
            CLOSE => "close",
            PING => "ping",
            PONG => "pong",
            _ if first & LAST == 0 => return,
            _ => {
                let message = self.messages[side as usize].take();
                return found
                    .extend(message.map(|exchange| DissectorEvent::ends(exchange, role, end)));
            }
        };
        self.dialogue
            .one_way(role, RedactedName::fixed(name), found);
    }

    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let messages = std::mem::take(&mut self.messages).into_iter().flatten();
        found.extend(messages.map(|exchange| DissectorEvent::Void { exchange, why }));
        self.dialogue.lose();
    }
}

#[cfg(test)]
mod tests;
