//! HTTP/3 (RFC 9114) on the streams of a decrypted QUIC connection. Each stream that the client opens is an exchange, from its first byte
//! until both directions end. DATA frames are skipped. The number of an exchange is that of the client's stream; offsets are those of a
//! stream.
//!
//! A header block that refers to table entries that have not arrived waits for them; if these were not captured, its message has no name.

mod frames;
mod qpack;

use super::binary_http_head::HttpMessageHead;
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

/// Types of unidirectional streams (RFC 9114, 6.2; RFC 9204, 4.2): the control stream, and that of QPACK encoder instructions.
const CONTROL: u64 = 0;
const INSTRUCTIONS: u64 = 2;
/// The setting for the largest QPACK table (RFC 9204, 5).
const TABLE_BYTES: u64 = 1;
/// The most unidirectional streams of one side that are read; a connection normally has three.
const MOST_ONE_WAY: usize = 16;
/// The most header blocks of a message that wait for table entries.
const MOST_BLOCKED: usize = 8;

/// The dissector of one HTTP/3 connection.
#[derive(Debug, Default)]
pub(crate) struct Http3 {
    sides: [Http3Side; 2],
    streams: BTreeMap<u64, Http3Stream>,
}

/// One side of the connection.
#[derive(Debug, Default)]
struct Http3Side {
    /// Decodes the header blocks that this side sends.
    fields: QpackDecoder,
    /// The size of the table that this side lets the other side fill, in bytes.
    table_bytes: u64,
    /// This side's unidirectional streams, by stream id.
    one_way: BTreeMap<u64, OneWayStream>,
}

/// A unidirectional stream.
#[derive(Debug)]
enum OneWayStream {
    /// The type is not complete yet: the bytes so far.
    Unknown(Vec<u8>),
    /// The control stream: its frames, and the settings in progress.
    Control(Http3FrameParser, Option<Vec<u8>>),
    /// The stream of QPACK encoder instructions.
    Instructions,
    /// A stream of another type, or with a gap; it is skipped.
    Other,
}

/// A request stream that is not complete.
#[derive(Debug, Default)]
struct Http3Stream {
    messages: [Http3Message; 2],
    status: Option<u16>,
    is_grpc: bool,
    is_named: bool,
    is_answer_named: bool,
}

/// The message of one side on a request stream.
#[derive(Debug, Default)]
struct Http3Message {
    frames: Http3FrameParser,
    has_begun: bool,
    is_whole: bool,
    /// The header block in progress; `None` if there is none, it has a gap or is too long.
    block: Option<Vec<u8>>,
    /// Complete header blocks that wait for table entries.
    blocked: VecDeque<Vec<u8>>,
}

/// Whether this is a bidirectional stream that the client opened, which carries a request.
const fn is_request(stream: u64) -> bool {
    stream.is_multiple_of(4)
}

impl Http3 {
    /// Takes bytes of one side of a stream, in order.
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

    /// The next `count` bytes of one side of a stream were not captured.
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

    /// One side of a stream has ended at an offset.
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

    /// A stream was reset.
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

    /// How many bytes are held.
    pub(crate) fn held(&self) -> usize {
        let sides: usize = self.sides.iter().map(Http3Side::held).sum();
        sides + self.streams.values().map(Http3Stream::held).sum::<usize>()
    }

    fn message(&mut self, side: EventStreamDirection, stream: u64) -> Option<&mut Http3Message> {
        self.streams
            .get_mut(&stream)
            .map(|known| &mut known.messages[side as usize])
    }

    /// Begins the message of a side if it is new; returns false if the stream is not followed because there are too many.
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

    /// Forgets a request stream whose messages are complete.
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

    /// Decodes the waiting header blocks of a message whose table entries have arrived.
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

    /// Takes bytes of a unidirectional stream.
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

/// The value of [`TABLE_BYTES`] in a SETTINGS frame.
fn table_bytes(mut settings: &[u8]) -> Option<u64> {
    while let (Some(name), Some(value)) = (varint::take(&mut settings), varint::take(&mut settings))
    {
        if name == TABLE_BYTES {
            return Some(value);
        }
    }
    None
}

/// Adds bytes to a frame that is collected; drops it if it becomes too long.
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
    /// Takes a decoded header block of a message.
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
        // Interim responses precede the final one; the trailers of a gRPC call hold its status.
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

    /// Chooses the reason of a void: the request is incomplete, the response is missing, or the response is incomplete.
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
