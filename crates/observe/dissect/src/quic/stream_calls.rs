//! Finds calls on streams that carry one call each: a DNS question and its answer (DNS over QUIC, RFC 9250), or an unknown protocol. The
//! number of an exchange is that of the client's stream; offsets are those of a stream.

use crate::conversation::{
    DissectorEvent, ENDED_BEFORE, ExchangeKind, ExchangeRole, RESET_BEFORE, dns,
};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::BTreeMap;

/// The most bytes of a message that are kept: the beginning of a DNS message.
const KEEP: usize = 512;

/// The calls of one connection that are not complete.
#[derive(Debug)]
pub(super) struct StreamCalls {
    /// Whether the streams carry DNS.
    pub(super) is_dns: bool,
    /// The request and the response, by stream id.
    calls: BTreeMap<u64, [StreamMessage; 2]>,
}

/// A message of a call.
#[derive(Debug, Default)]
struct StreamMessage {
    /// The first bytes of the message, up to [`KEEP`].
    head: Vec<u8>,
    has_begun: bool,
    is_whole: bool,
    /// Whether bytes of its head were not captured.
    is_lost: bool,
}

impl StreamCalls {
    pub(super) const fn new(is_dns: bool) -> Self {
        Self {
            is_dns,
            calls: BTreeMap::new(),
        }
    }

    /// The message of a side on a stream, which begins if it is new; `None` for streams that the client did not open in both directions.
    fn message(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        found: &mut Vec<DissectorEvent>,
    ) -> Option<&mut StreamMessage> {
        if !stream.is_multiple_of(4) {
            return None;
        }
        let message = &mut self.calls.entry(stream).or_default()[side as usize];
        if !std::mem::replace(&mut message.has_begun, true) {
            let (role, kind) = (role_of(side), ExchangeKind::Call);
            found.push(DissectorEvent::Begins {
                exchange: stream / 4,
                role,
                kind,
                side,
                at: 0,
            });
        }
        Some(message)
    }

    /// Takes bytes of a stream, in order.
    pub(super) fn bytes(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        if let Some(message) = self.message(side, stream, found) {
            let room = KEEP.saturating_sub(message.head.len());
            message
                .head
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// Bytes of a stream were not captured.
    pub(super) fn unseen(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        if let Some(message) = self.message(side, stream, found) {
            message.is_lost |= message.head.len() < KEEP;
        }
    }

    /// A side of a stream has ended at an offset.
    pub(super) fn end(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        at: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let is_dns = self.is_dns;
        let Some(message) = self.message(side, stream, found) else {
            return;
        };
        message.is_whole = true;
        let (exchange, role) = (stream / 4, role_of(side));
        if is_dns && !message.is_lost {
            match dns::read_message(message.head.get(2..).unwrap_or_default()) {
                Ok(message) => {
                    let name = message.name();
                    found.push(DissectorEvent::Named {
                        exchange,
                        role,
                        name,
                    });
                }
                Err(dns::DnsReadError::Pointers) => {
                    found.push(DissectorEvent::LeftOut(Bound::Pointers, 1))
                }
                Err(dns::DnsReadError::Foreign) => {}
            }
        }
        message.head = Vec::new();
        found.push(DissectorEvent::Ends {
            exchange,
            role,
            side,
            at,
        });
        if self
            .calls
            .get(&stream)
            .is_some_and(|call| call.iter().all(|message| message.is_whole))
        {
            self.calls.remove(&stream);
        }
    }

    /// A stream was reset.
    pub(super) fn reset(&mut self, stream: u64, found: &mut Vec<DissectorEvent>) {
        let Some([request, response]) = self.calls.remove(&stream) else {
            return;
        };
        let why = match (request.is_whole, response.has_begun) {
            (false, _) => "its stream was reset in the middle of its request",
            (true, false) => RESET_BEFORE,
            (true, true) => "its stream was reset in the middle of its response",
        };
        if !response.is_whole {
            found.push(DissectorEvent::Void {
                exchange: stream / 4,
                why,
            });
        }
    }

    /// The connection has ended: the remaining calls are void.
    pub(super) fn close(&mut self, found: &mut Vec<DissectorEvent>) {
        for (stream, [request, response]) in std::mem::take(&mut self.calls) {
            let why = match (request.is_whole, response.has_begun) {
                (false, _) => "the connection ended in the middle of its request",
                (true, false) => ENDED_BEFORE,
                (true, true) => "the connection ended in the middle of its response",
            };
            found.push(DissectorEvent::Void {
                exchange: stream / 4,
                why,
            });
        }
    }

    /// How many bytes are held.
    pub(super) fn held(&self) -> usize {
        let held = |call: &[StreamMessage; 2]| {
            call.iter().map(|message| message.head.len()).sum::<usize>()
        };
        self.calls.len() * size_of::<[StreamMessage; 2]>()
            + self.calls.values().map(held).sum::<usize>()
    }
}

const fn role_of(side: EventStreamDirection) -> ExchangeRole {
    match side {
        EventStreamDirection::There => ExchangeRole::Request,
        EventStreamDirection::Back => ExchangeRole::Response,
    }
}
