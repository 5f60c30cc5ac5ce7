//! HTTP/1.1 as hyper speaks it: exchanges one after the other, bodies with a length or in chunks (RFC 9112, 6 and 7).

use super::contract::{
    HttpArrival, HttpFrame, HttpHead, HttpMachine, HttpPiece, HttpRequestKind, HttpWait,
};
use super::hpack::{AUTHORITY, DATE, digit_count};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use stackline_core::time::Instant;

/// Most pieces of bodies that hyper hands to the socket in one write.
const PIECES_A_WRITE: usize = 16;
/// Bytes from which on it hands them over.
const BYTES_A_WRITE: u64 = 8192 + 4096 * 100;
/// Bytes of the end of a line.
const LINE_END: u64 = 2;
/// The chunk without data that ends a body (RFC 9112, 7.1): `0`, and two ends of lines.
const LAST_CHUNK: u64 = 1 + 2 * LINE_END;
/// The field that says that a body is in chunks.
const CHUNKED: &str = "transfer-encoding: chunked";

/// An exchange at one end.
#[derive(Clone, Copy, Debug, Default)]
struct Http1Exchange {
    has_head: bool,
    /// Bytes of the other end's body that have come and were not taken.
    readable: u64,
    /// Whether the other end's body has ended.
    is_ended: bool,
    /// Whether this end's body is in chunks.
    is_chunked: bool,
    /// Pieces that wait to be written.
    waiting: u32,
}

/// One end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Http1End {
    exchanges: BTreeMap<u32, Http1Exchange>,
    /// The number of the last exchange.
    last: u32,
    arrivals: VecDeque<HttpArrival>,
    /// What is to be written: pieces, each of a stream.
    outgoing: VecDeque<(u32, HttpPiece)>,
}

impl Http1End {
    /// An end of a new connection, on which nothing is sent before the first request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn put(&mut self, stream: u32, wire_bytes: u64, frame: HttpFrame) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.waiting += 1;
        }
        let piece = HttpPiece { wire_bytes, frame };
        self.outgoing.push_back((stream, piece));
    }

    fn put_head(&mut self, stream: u32, wire_bytes: u64, head: HttpHead) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.is_chunked = !head.ends && head.length.is_none();
        }
        self.put(stream, wire_bytes, HttpFrame::Head { stream, head });
    }
}

const fn line(text: &str) -> u64 {
    text.len() as u64 + LINE_END
}

/// Bytes of the field that says where the body ends.
fn body_field(head: &HttpHead) -> u64 {
    match head.length {
        Some(bytes) => line("content-length: ") + digit_count(bytes),
        None if head.ends => 0,
        None => line(CHUNKED),
    }
}

/// Bytes of the head of a request.
fn request_bytes(kind: HttpRequestKind, head: &HttpHead) -> u64 {
    let first = line("  HTTP/1.1") + (kind.method().len() + kind.path().len()) as u64;
    let host = line("host: ") + AUTHORITY.len() as u64;
    first + host + body_field(head) + LINE_END
}

/// Bytes of the head of a response.
fn response_bytes(head: &HttpHead) -> u64 {
    line("HTTP/1.1 200 OK") + body_field(head) + line("date: ") + DATE + LINE_END
}

/// Bytes before and behind the data of a chunk: its length in hexadecimal digits, and the ends of two lines.
fn chunk_head(bytes: u64) -> u64 {
    let digits = u64::from(bytes.checked_ilog2().unwrap_or(0) / 4 + 1);
    digits + LINE_END
}

impl HttpMachine for Http1End {
    fn request(&mut self, head: HttpHead) -> u32 {
        self.last += 1;
        let stream = self.last;
        self.exchanges.insert(stream, Http1Exchange::default());
        let kind = head.request.unwrap_or(HttpRequestKind::Call);
        self.put_head(stream, request_bytes(kind, &head), head);
        stream
    }

    fn respond(&mut self, stream: u32, head: HttpHead, _now: Instant) {
        self.put_head(stream, response_bytes(&head), head);
    }

    fn send(&mut self, stream: u32, bytes: u64, ends: bool) {
        let is_chunked = self
            .exchanges
            .get(&stream)
            .is_some_and(|exchange| exchange.is_chunked);
        let data = |ends| HttpFrame::Data {
            stream,
            bytes,
            ends,
        };
        if is_chunked {
            self.put(stream, chunk_head(bytes) + bytes, data(false));
            self.put(stream, LINE_END, HttpFrame::Filler);
            if ends {
                self.end(stream);
            }
        } else {
            self.put(stream, bytes, data(ends));
        }
    }

    fn end(&mut self, stream: u32) {
        let data = HttpFrame::Data {
            stream,
            bytes: 0,
            ends: true,
        };
        self.put(stream, LAST_CHUNK, data);
    }

    fn close(&mut self) {}

    fn handle(&mut self, frame: HttpFrame) {
        match frame {
            HttpFrame::Head { stream, head } => {
                if let Some(kind) = head.request {
                    self.arrivals.push_back(HttpArrival { stream, kind });
                }
                let exchange = self.exchanges.entry(stream).or_default();
                exchange.has_head = true;
                exchange.is_ended = head.ends;
            }
            HttpFrame::Data {
                stream,
                bytes,
                ends,
            } => {
                if let Some(exchange) = self.exchanges.get_mut(&stream) {
                    exchange.readable += bytes;
                    exchange.is_ended |= ends;
                }
            }
            _ => {}
        }
    }

    fn poll(&mut self) -> Vec<HttpPiece> {
        let (mut pieces, mut bodies, mut bytes) = (Vec::new(), 0, 0);
        while bodies < PIECES_A_WRITE
            && bytes < BYTES_A_WRITE
            && let Some((stream, piece)) = self.outgoing.pop_front()
        {
            bodies += usize::from(matches!(piece.frame, HttpFrame::Data { .. }));
            bytes += piece.wire_bytes;
            pieces.push(piece);
            if let Some(exchange) = self.exchanges.get_mut(&stream) {
                exchange.waiting -= 1;
            }
        }
        // The end of a chunk's line leaves with the chunk.
        while let Some((stream, piece)) = self.outgoing.front().copied()
            && piece.frame == HttpFrame::Filler
        {
            self.outgoing.pop_front();
            pieces.push(piece);
            if let Some(exchange) = self.exchanges.get_mut(&stream) {
                exchange.waiting -= 1;
            }
        }
        pieces
    }

    fn accept(&mut self, _pair: Option<u32>) -> Option<HttpArrival> {
        self.arrivals.pop_front()
    }

    fn has_head(&self, stream: u32) -> bool {
        self.exchanges
            .get(&stream)
            .is_some_and(|exchange| exchange.has_head)
    }

    fn take(&mut self, stream: u32) -> u64 {
        self.exchanges
            .get_mut(&stream)
            .map_or(0, |exchange| core::mem::take(&mut exchange.readable))
    }

    fn is_ended(&self, stream: u32) -> bool {
        self.exchanges
            .get(&stream)
            .is_none_or(|exchange| exchange.is_ended && exchange.readable == 0)
    }

    fn is_sent(&self, stream: u32) -> bool {
        self.exchanges
            .get(&stream)
            .is_none_or(|exchange| exchange.waiting == 0)
    }

    fn waits_for(&self, _stream: u32) -> Option<HttpWait> {
        None
    }

    fn reads_ahead(&self) -> bool {
        false
    }

    fn is_settled(&self) -> bool {
        true
    }

    fn forget(&mut self, stream: u32) {
        self.exchanges.remove(&stream);
    }
}
