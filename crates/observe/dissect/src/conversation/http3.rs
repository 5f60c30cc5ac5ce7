//! HTTP/3 (RFC 9114) on the streams of an opened connection of QUIC: an exchange per stream that the client opens, from its first byte
//! to its end both ways. Data is not looked at. Numbers of exchanges are those of streams in their order; offsets are those of a stream.
//!
//! A block of header fields that refers to what has not come yet waits for it; where that was not seen, its message has no name.

mod frames;
mod qpack;

use super::http_message_head::HttpMessageHead;
use super::varint;
use super::{
    DissectorEvent, ENDED_BEFORE, ExchangeKind, ExchangeRole, LONGEST_HEAD, MOST_WAITING,
    RESET_BEFORE, RedactedName,
};
use crate::conversation::http2::hpack::Undecoded;
use crate::left_out::Bound;
use frames::{Http3FrameKind, Http3FrameParser, Http3FrameStep};
use qpack::{BlockOutcome, QpackDecoder};
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::{BTreeMap, VecDeque};

/// Kinds of streams in one direction (RFC 9114, 6.2; RFC 9204, 4.2).
const CONTROL: u64 = 0;
const INSTRUCTIONS: u64 = 2;
/// The setting that says how large a table of header fields may be (RFC 9204, 5).
const TABLE_BYTES: u64 = 1;
/// Streams of one direction and one side that are read; a connection has three.
const MOST_ONE_WAY: usize = 16;
/// Blocks of a message that wait for fields.
const MOST_BLOCKED: usize = 8;

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Http3 {
    sides: [Http3Side; 2],
    streams: BTreeMap<u64, Http3Stream>,
}

/// One side.
#[derive(Debug, Default)]
struct Http3Side {
    /// Decodes what it sends.
    fields: QpackDecoder,
    /// How large a table it lets the other side fill.
    table_bytes: u64,
    /// Its streams in one direction by their numbers.
    one_way: BTreeMap<u64, OneWayStream>,
}

/// A stream in one direction.
#[derive(Debug)]
enum OneWayStream {
    /// Its kind is not whole.
    Unknown(Vec<u8>),
    Control(Http3FrameParser, Option<Vec<u8>>),
    Instructions,
    Other,
}

/// A stream of which a message is not whole.
#[derive(Debug, Default)]
struct Http3Stream {
    messages: [Http3Message; 2],
    status: Option<u16>,
    is_grpc: bool,
    is_named: bool,
    is_answer_named: bool,
}

/// What one side says on it.
#[derive(Debug, Default)]
struct Http3Message {
    frames: Http3FrameParser,
    has_begun: bool,
    is_whole: bool,
    /// The block of header fields that goes on; nothing where it is not whole or too long.
    block: Option<Vec<u8>>,
    /// Blocks that wait for fields.
    blocked: VecDeque<Vec<u8>>,
}

/// Whether the client opens a stream for both directions.
const fn is_request(stream: u64) -> bool {
    stream.is_multiple_of(4)
}

impl Http3 {
    /// Bytes of one side of a stream, which follow all that it said before there.
    pub(crate) fn bytes(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        if !is_request(stream) {
            return self.one_way(side, stream, bytes, found);
        }
        if !self.open(side, stream, found) {
            return;
        }
        let mut left = bytes;
        while let Some(message) = self.message(side, stream)
            && let Some(step) = message.frames.step(&mut left)
        {
            match step {
                Http3FrameStep::Begins(Http3FrameKind::Head) => message.block = Some(Vec::new()),
                Http3FrameStep::Content(Http3FrameKind::Head, bytes) => {
                    hold(&mut message.block, bytes, found)
                }
                Http3FrameStep::Ends(Http3FrameKind::Head) => {
                    if let Some(block) = message.block.take() {
                        message.blocked.push_back(block);
                    }
                    self.unblock(side, stream, found);
                }
                _ => {}
            }
        }
    }

    /// So many bytes of one side of a stream were not seen.
    pub(crate) fn unseen(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        if !is_request(stream) {
            let own = &mut self.sides[side as usize];
            if !matches!(
                own.one_way.insert(stream, OneWayStream::Other),
                Some(OneWayStream::Other)
            ) {
                own.fields.lose();
            }
            return;
        }
        if self.open(side, stream, found)
            && let Some(message) = self.message(side, stream)
            && !message.frames.unseen(count)
        {
            message.block = None;
        }
    }

    /// One side of a stream is whole, behind that offset.
    pub(crate) fn end(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        at: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        if !is_request(stream) || !self.open(side, stream, found) {
            return;
        }
        let Some(known) = self.streams.get_mut(&stream) else {
            return;
        };
        if !std::mem::replace(&mut known.messages[side as usize].is_whole, true) {
            found.push(DissectorEvent::ends(stream / 4, role_of(side), at));
        }
        self.forget(stream);
    }

    /// One side wants to hear or say no more of a stream.
    pub(crate) fn reset(&mut self, stream: u64, found: &mut Vec<DissectorEvent>) {
        if let Some(known) = self
            .streams
            .remove(&stream)
            .filter(|known| !known.messages[1].is_whole)
        {
            let why = known.missing([
                "its stream was reset in the middle of its request",
                RESET_BEFORE,
                "its stream was reset in the middle of its response",
            ]);
            found.push(DissectorEvent::Void {
                exchange: stream / 4,
                why,
            });
        }
    }

    /// The connection has ended.
    pub(crate) fn close(&mut self, found: &mut Vec<DissectorEvent>) {
        for (stream, known) in std::mem::take(&mut self.streams) {
            if !known.messages.iter().all(|message| message.is_whole) {
                let why = known.missing([
                    "the connection ended in the middle of its request",
                    ENDED_BEFORE,
                    "the connection ended in the middle of its response",
                ]);
                found.push(DissectorEvent::Void {
                    exchange: stream / 4,
                    why,
                });
            }
        }
    }

    /// Bytes that are held.
    pub(crate) fn held(&self) -> usize {
        let sides: usize = self.sides.iter().map(Http3Side::held).sum();
        sides + self.streams.values().map(Http3Stream::held).sum::<usize>()
    }

    fn message(&mut self, side: EventStreamDirection, stream: u64) -> Option<&mut Http3Message> {
        self.streams
            .get_mut(&stream)
            .map(|known| &mut known.messages[side as usize])
    }

    /// A side says something on a stream; whether it is one that is followed.
    fn open(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        found: &mut Vec<DissectorEvent>,
    ) -> bool {
        if self.streams.len() >= MOST_WAITING && !self.streams.contains_key(&stream) {
            found.push(DissectorEvent::LeftOut(Bound::Waiting, 1));
            return false;
        }
        let message = &mut self.streams.entry(stream).or_default().messages[side as usize];
        if !std::mem::replace(&mut message.has_begun, true) {
            let (role, kind) = (role_of(side), ExchangeKind::Call);
            found.push(DissectorEvent::begins(stream / 4, role, kind, 0));
        }
        true
    }

    fn forget(&mut self, stream: u64) {
        let is_over = |known: &Http3Stream| {
            known
                .messages
                .iter()
                .all(|message| message.is_whole && message.blocked.is_empty())
        };
        if self.streams.get(&stream).is_some_and(is_over) {
            self.streams.remove(&stream);
        }
    }

    /// Decodes the blocks of a message that can be.
    fn unblock(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let table_bytes = self.sides[1 - side as usize].table_bytes;
        let fields = &self.sides[side as usize].fields;
        let Some(known) = self.streams.get_mut(&stream) else {
            return;
        };
        while let Some(block) = known.messages[side as usize].blocked.pop_front() {
            let mut head = HttpMessageHead::default();
            match fields.block(&block, table_bytes, |name, value| head.field(name, value)) {
                Ok(BlockOutcome::Decoded) => known.say(side, stream / 4, &head, found),
                Ok(BlockOutcome::Blocked) => {
                    let blocked = &mut known.messages[side as usize].blocked;
                    if blocked.len() < MOST_BLOCKED {
                        blocked.push_front(block);
                    }
                    break;
                }
                Err(_) => {}
            }
        }
        self.forget(stream);
    }

    fn one_way(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        if own.one_way.len() >= MOST_ONE_WAY && !own.one_way.contains_key(&stream) {
            return;
        }
        let known = own
            .one_way
            .entry(stream)
            .or_insert(OneWayStream::Unknown(Vec::new()));
        let mut begun = Vec::new();
        let mut rest = bytes;
        if let OneWayStream::Unknown(held) = known {
            held.extend_from_slice(bytes);
            begun.clone_from(held);
            rest = &begun;
            *known = match varint::take(&mut rest) {
                None => return,
                Some(CONTROL) => OneWayStream::Control(Http3FrameParser::default(), None),
                Some(INSTRUCTIONS) => OneWayStream::Instructions,
                Some(_) => OneWayStream::Other,
            };
        }
        match known {
            OneWayStream::Control(frames, block) => {
                while let Some(step) = frames.step(&mut rest) {
                    match step {
                        Http3FrameStep::Begins(Http3FrameKind::Settings) => {
                            *block = Some(Vec::new())
                        }
                        Http3FrameStep::Content(Http3FrameKind::Settings, bytes) => {
                            hold(block, bytes, found)
                        }
                        Http3FrameStep::Ends(Http3FrameKind::Settings) => {
                            let settings = block.take().unwrap_or_default();
                            own.table_bytes = table_bytes(&settings).unwrap_or(0);
                        }
                        _ => {}
                    }
                }
            }
            OneWayStream::Instructions => {
                if let Err(cause) = own.fields.instructions(rest) {
                    own.fields.lose();
                    let is_large = cause == Undecoded::Table;
                    found
                        .extend(is_large.then_some(DissectorEvent::LeftOut(Bound::HeaderTable, 1)));
                }
                let waits = |(_, known): &(&u64, &Http3Stream)| {
                    !known.messages[side as usize].blocked.is_empty()
                };
                let waiting: Vec<u64> = self
                    .streams
                    .iter()
                    .filter(waits)
                    .map(|(stream, _)| *stream)
                    .collect();
                waiting
                    .into_iter()
                    .for_each(|stream| self.unblock(side, stream, found));
            }
            OneWayStream::Unknown(_) | OneWayStream::Other => {}
        }
    }
}

/// What the settings say of the table of header fields.
fn table_bytes(mut settings: &[u8]) -> Option<u64> {
    while let (Some(name), Some(value)) = (varint::take(&mut settings), varint::take(&mut settings))
    {
        if name == TABLE_BYTES {
            return Some(value);
        }
    }
    None
}

/// Holds bytes of a frame that is wanted whole, if it is not too long.
fn hold(block: &mut Option<Vec<u8>>, bytes: &[u8], found: &mut Vec<DissectorEvent>) {
    let Some(held) = block else { return };
    if held.len() + bytes.len() > LONGEST_HEAD {
        *block = None;
        return found.push(DissectorEvent::LeftOut(Bound::Head, 1));
    }
    held.extend_from_slice(bytes);
}

const fn role_of(side: EventStreamDirection) -> ExchangeRole {
    match side {
        EventStreamDirection::There => ExchangeRole::Request,
        EventStreamDirection::Back => ExchangeRole::Response,
    }
}

impl Http3Side {
    fn held(&self) -> usize {
        let held = |stream: &OneWayStream| match stream {
            OneWayStream::Unknown(held) | OneWayStream::Control(_, Some(held)) => held.len(),
            _ => 0,
        };
        self.fields.held() + self.one_way.values().map(held).sum::<usize>()
    }
}

impl Http3Stream {
    /// What a head of one of its messages says.
    fn say(
        &mut self,
        side: EventStreamDirection,
        exchange: u64,
        head: &HttpMessageHead,
        found: &mut Vec<DissectorEvent>,
    ) {
        self.is_grpc |= head.is_grpc;
        if side == EventStreamDirection::There {
            let name = head
                .name()
                .filter(|_| !std::mem::replace(&mut self.is_named, true));
            found.extend(
                name.map(|name| DissectorEvent::named(exchange, ExchangeRole::Request, name)),
            );
            found.extend(DissectorEvent::in_trace(exchange, head.context));
            return;
        }
        // Interim responses come before the final one; trailers say how a call of gRPC went.
        let status = head.status.filter(|status| *status >= 200);
        self.status = self.status.or(status);
        let of_grpc = head.grpc_status.filter(|_| self.is_grpc);
        let name = match of_grpc {
            Some(status) => Some(RedactedName::number("grpc-status ", status.into())),
            None => status.map(|status| RedactedName::number("", status.into())),
        };
        let is_new = of_grpc.is_some() || !self.is_answer_named;
        if let Some(name) = name.filter(|_| is_new) {
            self.is_answer_named = true;
            found.push(DissectorEvent::named(
                exchange,
                ExchangeRole::Response,
                name,
            ));
        }
    }

    /// What of it is missing: a part of its request, its response, or a part of that.
    const fn missing(&self, why: [&'static str; 3]) -> &'static str {
        match (self.messages[0].is_whole, self.messages[1].has_begun) {
            (false, _) => why[0],
            (true, false) => why[1],
            (true, true) => why[2],
        }
    }

    fn held(&self) -> usize {
        let held = |message: &Http3Message| {
            message.block.as_ref().map_or(0, Vec::len)
                + message.blocked.iter().map(Vec::len).sum::<usize>()
        };
        size_of::<Self>() + self.messages.iter().map(held).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
