//! HTTP/1.0 and 1.1 (RFC 9110, RFC 9112): httparse reads heads; bodies are skipped by their length, but for those of event streams.
//! Responses follow the order of requests, also of pipelined ones; interim responses, HEAD, CONNECT and upgrades are handled.

use super::{
    Dissector, DissectorEvent, ExchangeKind, ExchangeRole, LONGEST_HEAD, OpenTls, RedactedName,
    renumber, trace_context,
};
use crate::conversation::http2::Http2;
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::conversation::pending_requests::{
    PendingExchange, PendingExchangeQueue, known_exchange, of_answer,
};
use crate::conversation::tls::session_secrets::Secrets;
use crate::conversation::turn_dissector::TurnDissector;
use crate::conversation::websocket::WebSocket;
use crate::left_out::Bound;
use stackline_events::traceparent::Traceparent;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::http;

/// The most header lines of a message; with more, the message is not read.
const MOST_HEADERS: usize = Bound::HeaderLines.most();
/// The longest chunk-size line in bytes.
const LONGEST_CHUNK_LINE: usize = Bound::ChunkLine.most();
/// The methods by which a connection is recognised.
const METHODS: [&str; 11] = [
    "GET ",
    "POST ",
    "PUT ",
    "HEAD ",
    "DELETE ",
    "OPTIONS ",
    "PATCH ",
    "CONNECT ",
    "TRACE ",
    "PROPFIND ",
    "REPORT ",
];

/// Whether a connection speaks HTTP/1.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    let verdicts = METHODS.map(|method| ProtocolVerdict::begins(opening.there, method.as_bytes()));
    match () {
        () if verdicts.contains(&ProtocolVerdict::Yes) => ProtocolVerdict::Yes,
        () if verdicts.contains(&ProtocolVerdict::Perhaps) && opening.back.is_empty() => {
            ProtocolVerdict::Perhaps
        }
        () => ProtocolVerdict::No,
    }
}

/// The dissector of one HTTP/1 connection.
#[derive(Debug, Default)]
pub struct Http1 {
    sides: [Http1Side; 2],
    /// Requests without a response so far, in order.
    waiting: PendingExchangeQueue<PendingHttp1Request>,
    next: u64,
    /// Whether responses can no longer be matched to requests.
    is_out_of_step: bool,
    /// The dissector of what follows an upgrade or a CONNECT.
    tunnel: Option<Box<dyn Dissector>>,
    /// Creates the dissector for what follows a CONNECT; without it, the tunnel is read by turns.
    start_tunnel: Option<fn() -> Box<dyn Dissector>>,
    /// How many exchanges came before the tunnel; those of the tunnel are numbered from here.
    before_tunnel: u64,
    /// The TLS secrets for the tunnel, and the function that creates its TLS dissector.
    secrets: Option<(Secrets, OpenTls)>,
}

/// A request without a complete response.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PendingHttp1Request {
    exchange: u64,
    is_head: bool,
    is_connect: bool,
    upgrades: bool,
    answered: bool,
}

impl PendingExchange for PendingHttp1Request {
    fn exchange(&mut self) -> &mut u64 {
        &mut self.exchange
    }
}

/// The parser of one direction.
#[derive(Debug, Default)]
struct Http1Side {
    state: Http1ParserState,
    /// The bytes held of a head or a chunk-size line, and the offset of the first one.
    held: Vec<u8>,
    held_at: u64,
    /// The exchange of the current message, if it is known.
    exchange: Option<u64>,
    /// For the body of an event stream: the line ends in a row, 0 or 1.
    events: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Http1ParserState {
    /// Before or within a head.
    #[default]
    Head,
    /// This many bytes of the body are still to come.
    Body(u64),
    /// The body ends with the connection.
    UntilEnd,
    /// Before or within a chunk-size line.
    ChunkLine,
    /// This many bytes of a chunk's data are still to come.
    Chunk(u64),
    /// Behind the last chunk, before the end of the trailers.
    Trailers,
    /// Skips bytes until a head begins.
    Lost,
}

/// What a head says about the body and the connection after it.
#[derive(Clone, Copy, Debug, Default)]
struct Framing {
    length: Option<u64>,
    chunked: bool,
    upgrades: bool,
    to_http2: bool,
    to_websocket: bool,
    events: bool,
}

impl Http1 {
    /// A connection on which `start` creates the dissector for what follows a CONNECT.
    pub(super) fn with_tunnels(start: fn() -> Box<dyn Dissector>) -> Self {
        Self {
            start_tunnel: Some(start),
            ..Self::default()
        }
    }
}

impl Dissector for Http1 {
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        let (mut at, mut left) = (at, bytes);
        while !left.is_empty() {
            if self.tunnel.is_some() {
                return self.tunnelled(|tunnel, found| tunnel.bytes(side, at, left, found), found);
            }
            let used = self.step(side, at, left, found).clamp(1, left.len());
            at += used as u64;
            left = &left[used..];
        }
    }

    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        if self.tunnel.is_some() {
            return self.tunnelled(|tunnel, found| tunnel.unseen(side, at, count, found), found);
        }
        let own = &mut self.sides[side as usize];
        match own.state {
            Http1ParserState::Body(left) if count < left => {
                own.state = Http1ParserState::Body(left - count)
            }
            Http1ParserState::Body(left) if count == left => self.ends(side, at + count, found),
            Http1ParserState::Chunk(left) if count <= left => {
                own.state = if count == left {
                    Http1ParserState::ChunkLine
                } else {
                    Http1ParserState::Chunk(left - count)
                };
            }
            Http1ParserState::UntilEnd => {}
            _ => self.lose(side, "some of its bytes were not captured", found),
        }
    }

    fn end(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        if self.tunnel.is_some() {
            return self.tunnelled(|tunnel, found| tunnel.end(side, at, found), found);
        }
        match self.sides[side as usize].state {
            Http1ParserState::UntilEnd => self.ends(side, at, found),
            Http1ParserState::Head if self.sides[side as usize].held.is_empty() => {}
            Http1ParserState::Lost => {}
            _ => self.lose(side, "the connection ended in the middle of it", found),
        }
    }

    fn protocol(&self) -> &'static str {
        match &self.tunnel {
            None => "HTTP/1.1",
            Some(tunnel) if tunnel.protocol() == "alternating" => "HTTP/1.1, then alternating",
            Some(tunnel) => tunnel.protocol(),
        }
    }

    fn protocol_of(&self, kind: ExchangeKind, number: u64) -> &'static str {
        match (&self.tunnel, number.checked_sub(self.before_tunnel)) {
            (Some(tunnel), Some(within)) if tunnel.protocol() != "alternating" => {
                tunnel.protocol_of(kind, within)
            }
            (Some(_), Some(_)) => self.protocol(),
            _ => "HTTP/1.1",
        }
    }

    fn know_secrets(&mut self, secrets: Secrets, open: OpenTls) {
        self.secrets = Some((secrets, open));
    }

    fn is_exact(&self) -> bool {
        self.tunnel.as_ref().is_none_or(|tunnel| tunnel.is_exact())
    }

    fn held(&self) -> usize {
        let heads: usize = self.sides.iter().map(|side| side.held.len()).sum();
        heads
            + self.waiting.len() * size_of::<(PendingHttp1Request, u64)>()
            + self.tunnel.as_ref().map_or(0, |tunnel| tunnel.held())
    }
}

impl Http1 {
    /// Takes some of the bytes; returns how many.
    fn step(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) -> usize {
        let own = &mut self.sides[side as usize];
        match own.state {
            Http1ParserState::Lost
                if !begins_head(side, bytes)
                    || (self.is_out_of_step && side == EventStreamDirection::Back) =>
            {
                bytes.len()
            }
            Http1ParserState::Lost => {
                (own.state, own.held) = (Http1ParserState::Head, Vec::new());
                self.step(side, at, bytes, found)
            }
            Http1ParserState::Head | Http1ParserState::Trailers => {
                self.head(side, at, bytes, found)
            }
            Http1ParserState::ChunkLine => self.chunk_line(side, at, bytes, found),
            Http1ParserState::UntilEnd => {
                self.parts(side, at, bytes, found);
                bytes.len()
            }
            Http1ParserState::Body(left) => {
                let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                self.parts(side, at, &bytes[..used], found);
                self.sides[side as usize].state = Http1ParserState::Body(left - used as u64);
                if used as u64 == left {
                    self.ends(side, at + left, found);
                }
                used
            }
            Http1ParserState::Chunk(left) => {
                let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                self.parts(side, at, &bytes[..used], found);
                let left = left - used as u64;
                self.sides[side as usize].state = if left == 0 {
                    Http1ParserState::ChunkLine
                } else {
                    Http1ParserState::Chunk(left)
                };
                used
            }
        }
    }

    /// Holds the bytes of a head or of trailers until they are complete; returns how many bytes were taken.
    fn head(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) -> usize {
        let own = &mut self.sides[side as usize];
        if own.held.is_empty() {
            // Empty lines before a head are skipped (RFC 9112, 2.2); in trailers an empty line is the end.
            if own.state == Http1ParserState::Head && matches!(bytes[0], b'\r' | b'\n') {
                return 1;
            }
            own.held_at = at;
            if own.state == Http1ParserState::Head {
                self.begins(side, at, found);
            }
        }
        let own = &mut self.sides[side as usize];
        let before = own.held.len();
        own.held.extend_from_slice(
            &bytes[..bytes.len().min(LONGEST_HEAD + 1 - before.min(LONGEST_HEAD))],
        );
        let end = end_of_head(&own.held, own.state == Http1ParserState::Trailers);
        let Some(end) = end.filter(|end| *end <= LONGEST_HEAD) else {
            if own.held.len() > LONGEST_HEAD {
                found.push(DissectorEvent::LeftOut(Bound::Head, 1));
                self.lose(side, "its header is longer than 16 KiB", found);
            }
            return bytes.len();
        };
        let held = std::mem::take(&mut own.held);
        if own.state == Http1ParserState::Trailers {
            let behind = own.held_at + end as u64;
            self.ends(side, behind, found);
        } else {
            self.headed(side, &held[..end], found);
        }
        end - before
    }

    /// The first byte of a message was seen.
    fn begins(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        let (exchange, role) = match side {
            EventStreamDirection::There => {
                self.next += 1;
                (self.next - 1, ExchangeRole::Request)
            }
            EventStreamDirection::Back => match self.waiting.front() {
                Some(waiting) => (waiting.exchange, ExchangeRole::Response),
                None => return self.sides[1].exchange = None,
            },
        };
        self.sides[side as usize].exchange = known_exchange(exchange);
        // Interim responses and the final one count as one response, which begins with the first.
        let first = self
            .waiting
            .front_mut()
            .filter(|_| role == ExchangeRole::Response);
        if !first.is_some_and(|waiting| std::mem::replace(&mut waiting.answered, true)) {
            let kind = ExchangeKind::Call;
            of_answer(DissectorEvent::begins(exchange, role, kind, at), found);
        }
    }

    /// A head is complete.
    fn headed(&mut self, side: EventStreamDirection, head: &[u8], found: &mut Vec<DissectorEvent>) {
        let end = self.sides[side as usize].held_at + head.len() as u64;
        match side {
            EventStreamDirection::There => self.request(head, end, found),
            EventStreamDirection::Back => self.response(head, end, found),
        }
    }

    fn request(&mut self, head: &[u8], end: u64, found: &mut Vec<DissectorEvent>) {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(head).map(|_| ());
        let Some(exchange) = self.sides[0].exchange.filter(|_| parsed.is_ok()) else {
            return self.foreign(EventStreamDirection::There, parsed, found);
        };
        let (method, target) = (
            request.method.unwrap_or_default(),
            request.path.unwrap_or_default(),
        );
        let framing = framing(request.headers);
        found.push(DissectorEvent::named(
            exchange,
            ExchangeRole::Request,
            http::redact_request(method.as_bytes(), target.as_bytes()),
        ));
        found.extend(DissectorEvent::in_trace(
            exchange,
            context_of(request.headers),
        ));
        let (is_head, is_connect) = (method == "HEAD", method == "CONNECT");
        let (upgrades, answered) = (framing.upgrades, false);
        self.waiting.push_back(PendingHttp1Request {
            exchange,
            is_head,
            is_connect,
            upgrades,
            answered,
        });
        let before = found.len();
        if !self.waiting.settle(exchange, found) {
            (self.sides[1], self.is_out_of_step) = (
                Http1Side {
                    state: Http1ParserState::Lost,
                    ..Http1Side::default()
                },
                true,
            );
        }
        if found.len() > before {
            self.sides[0].exchange = None;
        }
        let length = if framing.chunked {
            None
        } else {
            Some(framing.length.unwrap_or(0))
        };
        self.body(EventStreamDirection::There, length, end, found);
    }

    fn response(&mut self, head: &[u8], end: u64, found: &mut Vec<DissectorEvent>) {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(head).map(|_| ());
        if parsed.is_err() {
            return self.foreign(EventStreamDirection::Back, parsed, found);
        }
        let Some(waiting) = self.waiting.front().copied() else {
            return self.lose(EventStreamDirection::Back, "it answers no request", found);
        };
        let (status, framing) = (response.code.unwrap_or(0), framing(response.headers));
        if (100..200).contains(&status) && status != 101 {
            return; // An interim response: another head follows.
        }
        if waiting.upgrades && status == 101 && framing.to_http2 {
            // The upgrade response is also interim: the final response to this request comes over HTTP/2.
            self.waiting.pop_front();
            self.tunnel = Some(Box::new(Http2::upgraded(
                known_exchange(waiting.exchange),
                self.next,
            )));
            return;
        }
        let (role, name) = (
            ExchangeRole::Response,
            RedactedName::number("", status.into()),
        );
        of_answer(DissectorEvent::named(waiting.exchange, role, name), found);
        let becomes_tunnel = (waiting.is_connect && (200..300).contains(&status))
            || (waiting.upgrades && status == 101);
        let is_empty = waiting.is_head || becomes_tunnel || matches!(status, 204 | 304);
        self.sides[1].events = framing.events.then_some(0);
        match (is_empty, framing.chunked, framing.length) {
            (true, ..) => self.body(EventStreamDirection::Back, Some(0), end, found),
            (false, true, _) => self.body(EventStreamDirection::Back, None, end, found),
            (false, false, Some(length)) => {
                self.body(EventStreamDirection::Back, Some(length), end, found)
            }
            (false, false, None) => self.sides[1].state = Http1ParserState::UntilEnd,
        }
        if becomes_tunnel {
            let start = self.start_tunnel.filter(|_| waiting.is_connect);
            self.tunnel = Some(match (framing.to_websocket, start) {
                (true, _) => Box::<WebSocket>::default(),
                (false, Some(start)) => start(),
                (false, None) => Box::new(TurnDissector::new(
                    "alternating",
                    EventStreamDirection::There,
                )),
            });
            if let (Some(tunnel), Some((secrets, open))) = (&mut self.tunnel, &self.secrets) {
                tunnel.know_secrets(secrets.clone(), *open);
            }
            self.before_tunnel = self.next;
        }
    }

    /// A body of `length` bytes follows, or a chunked one if this is `None`.
    fn body(
        &mut self,
        side: EventStreamDirection,
        length: Option<u64>,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        self.sides[side as usize].state = match length {
            None => Http1ParserState::ChunkLine,
            Some(0) => return self.ends(side, end, found),
            Some(length) => Http1ParserState::Body(length),
        };
    }

    fn chunk_line(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) -> usize {
        let own = &mut self.sides[side as usize];
        // The line end behind the previous chunk's data.
        if own.held.is_empty() && matches!(bytes[0], b'\r' | b'\n') {
            return 1;
        }
        if own.held.is_empty() {
            own.held_at = at;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |end| end + 1);
        own.held.extend_from_slice(&bytes[..used]);
        if end.is_none() {
            if own.held.len() > LONGEST_CHUNK_LINE {
                found.push(DissectorEvent::LeftOut(Bound::ChunkLine, 1));
                self.lose(side, "one of its chunks has an invalid length", found);
            }
            return used;
        }
        let line = std::mem::take(&mut own.held);
        let digits = line
            .split(|byte| !byte.is_ascii_hexdigit())
            .next()
            .unwrap_or_default();
        let length = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        match length {
            Some(0) => own.state = Http1ParserState::Trailers,
            Some(length) => own.state = Http1ParserState::Chunk(length),
            None => self.lose(side, "one of its chunks has an invalid length", found),
        }
        used
    }

    /// Reports the parts of an event stream: an event ends with an empty line.
    fn parts(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        let Some((ends, exchange)) = own.events.as_mut().zip(own.exchange) else {
            return;
        };
        for (index, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' if *ends == 1 => {
                    *ends = 0;
                    found.push(DissectorEvent::Part {
                        exchange,
                        side,
                        at: at + index as u64 + 1,
                    });
                }
                b'\n' => *ends = 1,
                b'\r' => {}
                _ => *ends = 0,
            }
        }
    }

    /// A message is complete.
    fn ends(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        let own = &mut self.sides[side as usize];
        (own.state, own.events) = (Http1ParserState::Head, None);
        let role = if side == EventStreamDirection::There {
            ExchangeRole::Request
        } else {
            ExchangeRole::Response
        };
        found.extend(
            own.exchange
                .take()
                .map(|exchange| DissectorEvent::ends(exchange, role, at)),
        );
        if side == EventStreamDirection::Back {
            self.waiting.pop_front();
        }
    }

    /// Gives up on a head that cannot be read.
    fn foreign(
        &mut self,
        side: EventStreamDirection,
        parsed: Result<(), httparse::Error>,
        found: &mut Vec<DissectorEvent>,
    ) {
        if parsed == Err(httparse::Error::TooManyHeaders) {
            found.push(DissectorEvent::LeftOut(Bound::HeaderLines, 1));
            return self.lose(side, "its header has more than 128 lines", found);
        }
        self.lose(side, "its header is not HTTP/1", found);
    }

    /// Skips this side until a head begins, and voids all requests that wait for a response.
    fn lose(
        &mut self,
        side: EventStreamDirection,
        why: &'static str,
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        own.held = Vec::new();
        let within = own
            .exchange
            .take()
            .filter(|_| side == EventStreamDirection::There);
        (own.state, own.events) = (Http1ParserState::Lost, None);
        let waiting = self.waiting.clear();
        // A request in its body is in `waiting` already; one in its head is not.
        found.extend(
            within
                .filter(|within| !waiting.contains(within))
                .map(|exchange| DissectorEvent::Void { exchange, why }),
        );
        self.sides[0].exchange = self.sides[0]
            .exchange
            .filter(|exchange| !waiting.contains(exchange));
        found.extend(
            waiting
                .into_iter()
                .map(|exchange| DissectorEvent::Void { exchange, why }),
        );
        self.sides[1].state = Http1ParserState::Lost;
    }

    /// Passes data to the tunnel's dissector and renumbers the exchanges it finds.
    fn tunnelled(
        &mut self,
        pass: impl FnOnce(&mut dyn Dissector, &mut Vec<DissectorEvent>),
        found: &mut Vec<DissectorEvent>,
    ) {
        let from = found.len();
        if let Some(tunnel) = &mut self.tunnel {
            pass(&mut **tunnel, found);
        }
        renumber(&mut found[from..], self.before_tunnel);
    }
}

/// Whether the bytes begin like a head of that side.
fn begins_head(side: EventStreamDirection, bytes: &[u8]) -> bool {
    match side {
        EventStreamDirection::There => METHODS
            .iter()
            .any(|method| bytes.starts_with(method.as_bytes())),
        EventStreamDirection::Back => bytes.starts_with(b"HTTP/1."),
    }
}

/// The end of a head, with its empty line; trailers may be an empty line alone.
fn end_of_head(held: &[u8], trailers: bool) -> Option<usize> {
    if trailers && held.starts_with(b"\r\n") {
        return Some(2);
    }
    let mut ends = 0;
    for (at, byte) in held.iter().enumerate() {
        match byte {
            b'\n' if ends == 1 => return Some(at + 1),
            b'\n' => ends = 1,
            b'\r' => {}
            _ => ends = 0,
        }
    }
    None
}

/// The trace context of a request; `None` if there are several, since it is unclear which counts.
fn context_of(headers: &[httparse::Header<'_>]) -> Option<Traceparent> {
    let mut found = headers
        .iter()
        .filter_map(|header| trace_context(header.name.as_bytes(), header.value));
    found.next().filter(|_| found.next().is_none())
}

fn framing(headers: &[httparse::Header<'_>]) -> Framing {
    let mut framing = Framing::default();
    for header in headers {
        let value = || std::str::from_utf8(header.value).unwrap_or_default().trim();
        let has = |word: &str| {
            value()
                .split(',')
                .any(|part| part.trim().eq_ignore_ascii_case(word))
        };
        match header.name {
            name if name.eq_ignore_ascii_case("content-length") => {
                framing.length = value().parse().ok()
            }
            name if name.eq_ignore_ascii_case("transfer-encoding") => {
                framing.chunked |= has("chunked")
            }
            name if name.eq_ignore_ascii_case("upgrade") => {
                framing.upgrades = true;
                framing.to_http2 |= has("h2c");
                framing.to_websocket |= has("websocket");
            }
            name if name.eq_ignore_ascii_case("content-type") => {
                framing.events |= value()
                    .to_ascii_lowercase()
                    .starts_with("text/event-stream");
            }
            _ => {}
        }
    }
    framing
}

#[cfg(test)]
mod tests;
