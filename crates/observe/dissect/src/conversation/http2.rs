//! HTTP/2 (RFC 9113) in cleartext whose connection preface was seen, and gRPC within it. Each stream is an exchange, from the first byte
//! of its HEADERS frame to the last byte of the frame that ends the stream. DATA frames are skipped, except for the lengths of gRPC
//! messages.
//!
//! Frames have no mark at their start: after a gap that is not within one frame, nothing more can be read. A gap within a frame is
//! harmless, except that an incomplete header block makes all later names of that side unknown.

mod frames;
pub(in crate::conversation) mod grpc;
pub(in crate::conversation) mod hpack;

use super::{
    Dissector, DissectorEvent, ENDED_BEFORE, ExchangeKind, ExchangeRole, LONGEST_HEAD,
    MOST_WAITING, RESET_BEFORE, RedactedName, TOO_MANY,
};
use crate::conversation::binary_http_head::HttpMessageHead;
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use frames::{Gap, Http2Frame, Http2FrameKind, Http2FrameParser, Http2FrameStep, PREFACE};
use grpc::GrpcMessages;
use hpack::Undecoded;
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::BTreeMap;

/// Reasons of the void for all exchanges of a connection that can no longer be read.
const MISSED: &str = "some bytes of its connection's frames were not captured";
const FOREIGN: &str = "its connection's frames are not HTTP/2";

/// Whether a connection speaks HTTP/2: by the initiator's preface. The responder's SETTINGS frame may come first.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    // The head of a SETTINGS frame on stream 0; its length (bytes 1 and 2) may vary.
    let settings = |length: usize| [0, 0, 0, 4, 0, 0, 0, 0, 0][..length].iter().enumerate();
    let known = opening.back.len().min(9);
    let is_settings =
        settings(known).all(|(index, byte)| matches!(index, 1 | 2) || opening.back[index] == *byte);
    match ProtocolVerdict::begins(opening.there, PREFACE) {
        ProtocolVerdict::Perhaps if !is_settings => ProtocolVerdict::No,
        ProtocolVerdict::Perhaps if known == 9 && !opening.there.is_empty() => ProtocolVerdict::Yes,
        verdict => verdict,
    }
}

/// The dissector of one HTTP/2 connection.
#[derive(Debug)]
pub struct Http2 {
    sides: [Http2Side; 2],
    /// The exchanges that are not complete, by stream id.
    streams: BTreeMap<u32, Http2Stream>,
    /// A stream that is opened but whose response will not be known: only its first header block, which has its name, is awaited.
    unanswered: Option<Unanswered>,
    next: u64,
    is_grpc: bool,
}

/// One direction.
#[derive(Debug)]
struct Http2Side {
    frames: Http2FrameParser,
    /// The HPACK decoder; `None` if header fields can no longer be decoded.
    fields: Option<hpack::Decoder>,
    /// The header block in progress; `None` if it has a gap or is too long.
    block: Option<Vec<u8>>,
    /// The highest stream id that the side opened or promised.
    highest: u32,
    /// Why nothing that the side sends from here on is known.
    silent: Option<&'static str>,
}

/// An exchange that is not complete.
#[derive(Debug, Default)]
struct Http2Stream {
    exchange: u64,
    /// Whether the request's header block was seen.
    asked: bool,
    request_whole: bool,
    response_began: bool,
    /// Whether the header block of the final response was seen.
    answered: bool,
    response_whole: bool,
    /// Whether the response's status was reported.
    named: bool,
    status: Option<u16>,
    is_grpc: bool,
    /// The gRPC messages of the response, as long as their boundaries are known.
    messages: Option<GrpcMessages>,
}

/// An exchange of which only the first header block is read.
#[derive(Debug)]
struct Unanswered {
    number: u32,
    stream: Http2Stream,
    why: &'static str,
}

impl Default for Http2 {
    fn default() -> Self {
        let sides = [Http2Side::new(true), Http2Side::new(false)];
        Self {
            sides,
            streams: BTreeMap::new(),
            unanswered: None,
            next: 0,
            is_grpc: false,
        }
    }
}

impl Dissector for Http2 {
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        let (mut at, mut left) = (at, bytes);
        while let Some(step) = self.sides[side as usize].frames.step(&mut at, &mut left) {
            self.step(side, at, step, found);
        }
    }

    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        if count == 0 {
            return;
        }
        let own = &mut self.sides[side as usize];
        let (gap, frame) = (own.frames.unseen(count), own.frames.frame());
        match (gap, frame.what) {
            (Gap::Frames, _) => return self.lose(side, MISSED, found),
            (Gap::Contents(count), Http2FrameKind::Data) => {
                self.data_unseen(side, &frame, at, Some(count), found)
            }
            (Gap::Unclear, Http2FrameKind::Data) => self.data_unseen(side, &frame, at, None, found),
            (Gap::Contents(0), _) => {}
            (_, Http2FrameKind::Head | Http2FrameKind::Promise) => own.block = None,
            (_, Http2FrameKind::Reset | Http2FrameKind::Other) => {}
        }
        self.bytes(side, at + count, &[], found);
    }

    fn end(&mut self, side: EventStreamDirection, _: u64, found: &mut Vec<DissectorEvent>) {
        self.sides[side as usize].silent.get_or_insert(ENDED_BEFORE);
        self.give_up_unanswered(found);
        self.void(found, |stream| match side {
            EventStreamDirection::There if stream.request_whole => None,
            _ => Some(stream.missing([
                "the connection ended in the middle of its request",
                ENDED_BEFORE,
                "the connection ended in the middle of its response",
            ])),
        });
    }

    fn held(&self) -> usize {
        let sides: usize = self.sides.iter().map(Http2Side::held).sum();
        sides + self.streams.len() * size_of::<Http2Stream>()
    }

    fn protocol(&self) -> &'static str {
        if self.is_grpc { "gRPC" } else { "HTTP/2" }
    }
}

impl Http2 {
    /// A connection that was upgraded from HTTP/1. The response to `exchange`, if it is known, has begun and continues on stream 1;
    /// further exchanges are numbered from `next` on.
    #[must_use]
    pub fn upgraded(exchange: Option<u64>, next: u64) -> Self {
        let mut http = Self {
            next,
            ..Self::default()
        };
        let (asked, request_whole, response_began) = (true, true, true);
        let stream = |exchange| Http2Stream {
            exchange,
            asked,
            request_whole,
            response_began,
            ..Http2Stream::default()
        };
        http.streams
            .extend(exchange.map(|exchange| (1, stream(exchange))));
        http.sides[0].highest = 1;
        http
    }

    /// Takes a step of the frame parser.
    fn step(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        step: Http2FrameStep<'_>,
        found: &mut Vec<DissectorEvent>,
    ) {
        let frame = self.sides[side as usize].frames.frame();
        match (step, frame.what) {
            (Http2FrameStep::Begins, Http2FrameKind::Head | Http2FrameKind::Promise) => {
                self.block_begins(side, &frame, found)
            }
            (Http2FrameStep::Begins, Http2FrameKind::Data) => self.data_begins(side, &frame, found),
            (Http2FrameStep::Promised, _) => self.promised(side, &frame, found),
            (Http2FrameStep::Content(bytes), Http2FrameKind::Data) => {
                self.data(side, &frame, at - bytes.len() as u64, bytes, found);
            }
            (Http2FrameStep::Content(bytes), _) => self.sides[side as usize].hold(bytes, found),
            (Http2FrameStep::Ends, Http2FrameKind::Head) => self.head_ends(side, &frame, at, found),
            (Http2FrameStep::Ends, Http2FrameKind::Promise) => {
                self.promise_ends(side, &frame, found)
            }
            (Http2FrameStep::Ends, Http2FrameKind::Data) if frame.ends_stream => {
                self.ends(side, frame.stream, at, found)
            }
            (Http2FrameStep::Ends, Http2FrameKind::Reset) => self.reset(frame.stream, found),
            (Http2FrameStep::Foreign, _) => self.lose(side, FOREIGN, found),
            (Http2FrameStep::Begins | Http2FrameStep::Ends, _) => {}
        }
    }

    /// A header block begins, and with it perhaps a message.
    fn block_begins(
        &mut self,
        side: EventStreamDirection,
        frame: &Http2Frame,
        found: &mut Vec<DissectorEvent>,
    ) {
        self.sides[side as usize].block = Some(Vec::new());
        match (side, frame.what) {
            (_, Http2FrameKind::Promise) => {}
            (EventStreamDirection::There, _)
                if frame.stream % 2 == 1 && frame.stream > self.sides[0].highest =>
            {
                self.sides[0].highest = frame.stream;
                self.opens(frame, found);
            }
            (EventStreamDirection::There, _) => {}
            (EventStreamDirection::Back, _) => self.response_begins(frame, found),
        }
    }

    /// The initiator opens a stream.
    fn opens(&mut self, frame: &Http2Frame, found: &mut Vec<DissectorEvent>) {
        let (exchange, role) = (self.next, ExchangeRole::Request);
        self.next += 1;
        found.push(DissectorEvent::begins(
            exchange,
            role,
            ExchangeKind::Call,
            frame.at,
        ));
        self.insert(
            frame.stream,
            Http2Stream {
                exchange,
                ..Http2Stream::default()
            },
            found,
        );
    }

    /// Remembers a new exchange, or only awaits its name if its response will not be known.
    fn insert(&mut self, number: u32, stream: Http2Stream, found: &mut Vec<DissectorEvent>) {
        let full = (self.streams.len() >= MOST_WAITING).then_some(TOO_MANY);
        if full.is_some() {
            found.push(DissectorEvent::LeftOut(Bound::Waiting, 1));
        }
        match self.sides[1].silent.or(full) {
            Some(why) => {
                self.give_up_unanswered(found);
                self.unanswered = Some(Unanswered {
                    number,
                    stream,
                    why,
                });
            }
            None => drop(self.streams.insert(number, stream)),
        }
    }

    /// Takes the header block of the stream in `unanswered`; returns false if this block is of another stream. The exchange is then void.
    fn unanswered(
        &mut self,
        number: u32,
        head: Option<&HttpMessageHead>,
        end: Option<u64>,
        found: &mut Vec<DissectorEvent>,
    ) -> bool {
        let Some(Unanswered { stream, .. }) = self
            .unanswered
            .as_mut()
            .filter(|stream| stream.number == number)
        else {
            return false;
        };
        head.into_iter()
            .for_each(|head| stream.request(head, found));
        self.is_grpc |= stream.is_grpc;
        let (exchange, role) = (stream.exchange, ExchangeRole::Request);
        found.extend(end.map(|at| DissectorEvent::ends(exchange, role, at)));
        self.give_up_unanswered(found);
        true
    }

    fn give_up_unanswered(&mut self, found: &mut Vec<DissectorEvent>) {
        let given_up = self.unanswered.take();
        found.extend(
            given_up.map(|Unanswered { stream, why, .. }| DissectorEvent::Void {
                exchange: stream.exchange,
                why,
            }),
        );
    }

    /// The first header block of a response. Interim responses and the final one count as one response.
    fn response_begins(&mut self, frame: &Http2Frame, found: &mut Vec<DissectorEvent>) {
        let Some(stream) = self.streams.get_mut(&frame.stream) else {
            return;
        };
        if !std::mem::replace(&mut stream.response_began, true) {
            let (exchange, role) = (stream.exchange, ExchangeRole::Response);
            found.push(DissectorEvent::begins(
                exchange,
                role,
                ExchangeKind::Call,
                frame.at,
            ));
        }
    }

    /// The responder promises a push: one message, from the promise on.
    fn promised(
        &mut self,
        side: EventStreamDirection,
        frame: &Http2Frame,
        found: &mut Vec<DissectorEvent>,
    ) {
        let highest = self.sides[1].highest;
        let is_new = |number: &u32| {
            number.is_multiple_of(2) && *number > highest && side == EventStreamDirection::Back
        };
        let Some(number) = frame.promised.filter(is_new) else {
            return;
        };
        self.sides[1].highest = number;
        let (exchange, role) = (self.next, ExchangeRole::Response);
        self.next += 1;
        found.push(DissectorEvent::begins(
            exchange,
            role,
            ExchangeKind::OneWay,
            frame.at,
        ));
        let stream = Http2Stream {
            exchange,
            request_whole: true,
            response_began: true,
            ..Http2Stream::default()
        };
        self.insert(number, stream, found);
    }

    /// The header block of a promise is complete.
    fn promise_ends(
        &mut self,
        side: EventStreamDirection,
        frame: &Http2Frame,
        found: &mut Vec<DissectorEvent>,
    ) {
        let head = self.sides[side as usize].head(found);
        if frame
            .promised
            .is_some_and(|number| self.unanswered(number, head.as_ref(), None, found))
        {
            return;
        }
        let stream = frame
            .promised
            .and_then(|number| self.streams.get_mut(&number))
            .filter(|stream| !stream.asked);
        if let Some((stream, head)) = stream.zip(head) {
            stream.request(&head, found);
        }
    }

    /// The header block of a request or a response, or its trailers, are complete.
    fn head_ends(
        &mut self,
        side: EventStreamDirection,
        frame: &Http2Frame,
        at: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let head = self.sides[side as usize].head(found);
        let end = frame.ends_stream.then_some(at);
        if side == EventStreamDirection::There
            && self.unanswered(frame.stream, head.as_ref(), end, found)
        {
            return;
        }
        if let Some(stream) = self.streams.get_mut(&frame.stream) {
            match side {
                EventStreamDirection::There if stream.asked => {}
                EventStreamDirection::There => stream.request(&head.unwrap_or_default(), found),
                EventStreamDirection::Back => stream.response(head, frame.ends_stream, found),
            }
            self.is_grpc |= stream.is_grpc;
        }
        if frame.ends_stream {
            self.ends(side, frame.stream, at, found);
        }
    }

    /// A DATA frame begins. It voids the exchange if it comes before the response's header.
    fn data_begins(
        &mut self,
        side: EventStreamDirection,
        frame: &Http2Frame,
        found: &mut Vec<DissectorEvent>,
    ) {
        let early =
            |stream: &Http2Stream| side == EventStreamDirection::Back && !stream.response_began;
        if self.streams.get(&frame.stream).is_some_and(early)
            && let Some(stream) = self.streams.remove(&frame.stream)
        {
            found.push(DissectorEvent::Void {
                exchange: stream.exchange,
                why: "its data arrived before its header",
            });
        }
    }

    /// Takes bytes of a DATA frame.
    fn data(
        &mut self,
        side: EventStreamDirection,
        frame: &Http2Frame,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        let Some((exchange, Some(messages))) = self.messages(side, frame) else {
            return;
        };
        messages.bytes(at, bytes, |at| {
            found.push(DissectorEvent::Part { exchange, side, at })
        });
    }

    /// Skips bytes of a DATA frame that were not captured; `count` is `None` if their number is unknown.
    fn data_unseen(
        &mut self,
        side: EventStreamDirection,
        frame: &Http2Frame,
        at: u64,
        count: Option<u64>,
        found: &mut Vec<DissectorEvent>,
    ) {
        let Some((exchange, messages)) = self.messages(side, frame) else {
            return;
        };
        let give = |at| found.push(DissectorEvent::Part { exchange, side, at });
        let known = messages
            .as_mut()
            .zip(count)
            .is_some_and(|(messages, count)| messages.unseen(at, count, give));
        if !known {
            *messages = None;
        }
    }

    /// The exchange and the gRPC messages of the response that a DATA frame belongs to.
    fn messages(
        &mut self,
        side: EventStreamDirection,
        frame: &Http2Frame,
    ) -> Option<(u64, &mut Option<GrpcMessages>)> {
        let stream = self
            .streams
            .get_mut(&frame.stream)
            .filter(|_| side == EventStreamDirection::Back)?;
        Some((stream.exchange, &mut stream.messages))
    }

    /// A message is complete.
    fn ends(
        &mut self,
        side: EventStreamDirection,
        number: u32,
        at: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let Some(stream) = self.streams.get_mut(&number) else {
            return;
        };
        let (role, whole) = match side {
            EventStreamDirection::There => (ExchangeRole::Request, &mut stream.request_whole),
            EventStreamDirection::Back => (ExchangeRole::Response, &mut stream.response_whole),
        };
        if !std::mem::replace(whole, true) {
            found.push(DissectorEvent::ends(stream.exchange, role, at));
        }
        if stream.request_whole && stream.response_whole {
            self.streams.remove(&number);
        }
    }

    /// A side resets a stream.
    fn reset(&mut self, number: u32, found: &mut Vec<DissectorEvent>) {
        let Some(stream) = self.streams.remove(&number) else {
            return;
        };
        let why = stream.missing([
            "its stream was reset in the middle of its request",
            RESET_BEFORE,
            "its stream was reset in the middle of its response",
        ]);
        found.push(DissectorEvent::Void {
            exchange: stream.exchange,
            why,
        });
    }

    /// Gives up a side, and voids all exchanges in progress.
    fn lose(
        &mut self,
        side: EventStreamDirection,
        why: &'static str,
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        own.frames.lose();
        (own.fields, own.block) = (None, None);
        own.silent.get_or_insert(why);
        self.give_up_unanswered(found);
        self.void(found, |_| Some(why));
    }

    /// Voids the exchanges for which `why` returns a reason.
    fn void(
        &mut self,
        found: &mut Vec<DissectorEvent>,
        why: impl Fn(&Http2Stream) -> Option<&'static str>,
    ) {
        self.streams.retain(|_, stream| {
            let why = why(stream);
            found.extend(why.map(|why| DissectorEvent::Void {
                exchange: stream.exchange,
                why,
            }));
            why.is_none()
        });
    }
}

impl Http2Side {
    fn new(with_preface: bool) -> Self {
        Self {
            frames: Http2FrameParser::new(with_preface),
            fields: Some(hpack::Decoder::default()),
            block: None,
            highest: 0,
            silent: None,
        }
    }

    fn held(&self) -> usize {
        self.block.as_ref().map_or(0, Vec::len)
            + self.fields.as_ref().map_or(0, hpack::Decoder::held)
    }

    /// Adds bytes to the header block, unless it has a gap; drops it if it becomes too long.
    fn hold(&mut self, bytes: &[u8], found: &mut Vec<DissectorEvent>) {
        let Some(block) = &mut self.block else { return };
        if block.len() + bytes.len() > LONGEST_HEAD {
            self.block = None;
            return found.push(DissectorEvent::LeftOut(Bound::Head, 1));
        }
        block.extend_from_slice(bytes);
    }

    /// Decodes the complete header block; `None` if it, or an earlier one, could not be decoded.
    fn head(&mut self, found: &mut Vec<DissectorEvent>) -> Option<HttpMessageHead> {
        let (mut fields, block) = (self.fields.take()?, self.block.take()?);
        let mut head = HttpMessageHead::default();
        if let Err(cause) = fields.block(&block, |name, value| head.field(name, value)) {
            found.extend(
                (cause == Undecoded::Table)
                    .then_some(DissectorEvent::LeftOut(Bound::HeaderTable, 1)),
            );
            return None;
        }
        self.fields = Some(fields);
        Some(head)
    }
}

impl Http2Stream {
    /// Takes the header of the request; it is empty if it could not be decoded.
    fn request(&mut self, head: &HttpMessageHead, found: &mut Vec<DissectorEvent>) {
        self.asked = true;
        self.is_grpc = head.is_grpc;
        if let Some(name) = head.name() {
            found.push(DissectorEvent::named(
                self.exchange,
                ExchangeRole::Request,
                name,
            ));
        }
        found.extend(DissectorEvent::in_trace(self.exchange, head.context));
    }

    /// Takes a header of the response, or its trailers.
    fn response(
        &mut self,
        head: Option<HttpMessageHead>,
        last: bool,
        found: &mut Vec<DissectorEvent>,
    ) {
        let head = head.unwrap_or_default();
        if head.status.is_some_and(|status| status < 200) && !last {
            return; // An interim response: another head follows.
        }
        if !std::mem::replace(&mut self.answered, true) {
            self.status = head.status;
            self.is_grpc |= head.is_grpc;
            self.messages = self.is_grpc.then(GrpcMessages::default);
        }
        // For a gRPC call, the trailers hold the status; without them, the status of HTTP counts.
        let of_grpc = head
            .grpc_status
            .filter(|_| self.is_grpc)
            .map(|status| RedactedName::number("grpc-status ", status.into()));
        let of_http = self
            .status
            .filter(|_| last || !self.is_grpc)
            .map(|status| RedactedName::number("", status.into()));
        if let Some(name) = of_grpc.or(of_http)
            && !std::mem::replace(&mut self.named, true)
        {
            found.push(DissectorEvent::named(
                self.exchange,
                ExchangeRole::Response,
                name,
            ));
        }
    }

    /// Chooses the reason of a void: the request is incomplete, the response is missing, or the response is incomplete.
    const fn missing(&self, why: [&'static str; 3]) -> &'static str {
        match (self.request_whole, self.response_began) {
            (false, _) => why[0],
            (true, false) => why[1],
            (true, true) => why[2],
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
