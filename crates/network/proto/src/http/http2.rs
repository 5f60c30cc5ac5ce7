//! HTTP/2 as h2 speaks it: streams whose bodies wait for windows, frames that are written in h2's order and in its writes.
//!
//! h2 puts frames of streams one after the other into its buffer and writes when a DATA frame of at least 256 bytes is behind them, or the
//! buffer is full, or nothing else is to be sent; a client's head of a request is a write of its own. Streams take turns, one frame each.

use super::contract::{HttpArrival, HttpFrame, HttpHead, HttpMachine, HttpPiece, HttpWait};
use super::hpack::HpackEncoder;
use super::options::Http2Windows;
use super::windows::ReceiveWindow;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use stackline_core::time::Instant;

/// Bytes of the head of a frame (RFC 9113, 4.1).
pub const FRAME_HEAD: u64 = 9;
/// Most bytes of a body in one DATA frame: the initial and usual SETTINGS_MAX_FRAME_SIZE (RFC 9113, 6.5.2).
pub const LARGEST_DATA: u64 = 1 << 14;
/// The window of streams and of the connection before SETTINGS and WINDOW_UPDATE have come (RFC 9113, 6.9.2).
pub const FIRST_WINDOW: u32 = 65_535;
/// Bytes of the preface (RFC 9113, 3.4).
const PREFACE: u64 = 24;
/// Bytes of one parameter of SETTINGS; hyper's ends send four each.
const SETTINGS: u64 = FRAME_HEAD + 4 * 6;
/// WINDOW_UPDATE (RFC 9113, 6.9).
const WINDOW_UPDATE: u64 = FRAME_HEAD + 4;
/// GOAWAY without debug data (RFC 9113, 6.8).
const GO_AWAY: u64 = FRAME_HEAD + 8;
/// DATA of at least so many bytes ends a write.
const CHAINED: u64 = 256;
/// Bytes of h2's buffer for what goes before such DATA.
const BUFFER: u64 = 1 << 14;

/// What a stream has to send, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Http2Outgoing {
    Head {
        head: HttpHead,
        now: Instant,
    },
    /// The rest of a piece of the body.
    Data {
        bytes: u64,
        ends: bool,
    },
}

/// A stream at one end.
#[derive(Clone, Debug)]
struct Http2Stream {
    outgoing: VecDeque<Http2Outgoing>,
    /// Whether it stands in the queue of streams.
    is_queued: bool,
    /// What the other end lets this one send, bytes.
    send_window: i64,
    receive_window: ReceiveWindow,
    has_head: bool,
    readable: u64,
    is_ended: bool,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Http2End {
    is_client: bool,
    windows: Http2Windows,
    encoder: HpackEncoder,
    streams: BTreeMap<u32, Http2Stream>,
    next_stream: u32,
    /// Requests that have come, by their pairs.
    arrivals: BTreeMap<Option<u32>, VecDeque<HttpArrival>>,
    /// Frames that go before those of streams.
    control: VecDeque<HttpPiece>,
    /// Streams that may send, in their turns.
    queue: VecDeque<u32>,
    /// What the other end lets this one send on all streams, bytes.
    send_window: i64,
    receive_window: ReceiveWindow,
    /// The window with which the other end lets streams begin.
    first_send_window: u32,
    /// Whether the preface was polled, which h2 writes alone.
    has_begun: bool,
    has_settings: bool,
    is_acknowledged: bool,
    is_closed: bool,
}

impl Http2End {
    /// An end of a new connection.
    #[must_use]
    pub fn new(is_client: bool, windows: Http2Windows) -> Self {
        let mut end = Self {
            is_client,
            windows,
            encoder: HpackEncoder::default(),
            streams: BTreeMap::new(),
            next_stream: 1,
            arrivals: BTreeMap::new(),
            control: VecDeque::new(),
            queue: VecDeque::new(),
            send_window: i64::from(FIRST_WINDOW),
            receive_window: ReceiveWindow::new(FIRST_WINDOW),
            first_send_window: FIRST_WINDOW,
            has_begun: !is_client,
            has_settings: false,
            is_acknowledged: false,
            is_closed: false,
        };
        if is_client {
            end.put(PREFACE, HttpFrame::Filler);
        }
        end.put(SETTINGS, HttpFrame::Settings(windows.stream));
        end.receive_window.resize(FIRST_WINDOW, windows.connection);
        end.offer(0);
        end
    }

    fn put(&mut self, wire_bytes: u64, frame: HttpFrame) {
        self.control.push_back(HttpPiece { wire_bytes, frame });
    }

    fn add_stream(&mut self, stream: u32) -> &mut Http2Stream {
        let (send_window, receives) = (i64::from(self.first_send_window), self.windows.stream);
        self.streams.entry(stream).or_insert_with(|| Http2Stream {
            outgoing: VecDeque::new(),
            is_queued: false,
            send_window,
            receive_window: ReceiveWindow::new(receives),
            has_head: false,
            readable: 0,
            is_ended: false,
        })
    }

    fn push(&mut self, stream: u32, outgoing: Http2Outgoing) {
        if let Some(known) = self.streams.get_mut(&stream) {
            known.outgoing.push_back(outgoing);
        }
        self.enqueue(stream);
    }

    /// Puts a stream with something to send into the queue.
    fn enqueue(&mut self, stream: u32) {
        if let Some(known) = self.streams.get_mut(&stream)
            && !known.outgoing.is_empty()
            && !core::mem::replace(&mut known.is_queued, true)
        {
            self.queue.push_back(stream);
        }
    }

    /// Offers the room of a window, or of the connection's (0), if it is worth a frame. A body that has ended needs none.
    fn offer(&mut self, stream: u32) {
        let window = match self.streams.get_mut(&stream) {
            _ if stream == 0 => &mut self.receive_window,
            Some(known) if !known.is_ended => &mut known.receive_window,
            _ => return,
        };
        if let Some(bytes) = window.offer() {
            self.put(WINDOW_UPDATE, HttpFrame::WindowUpdate { stream, bytes });
        }
    }

    /// The other end lets this one send more.
    fn widen(&mut self, stream: u32, bytes: i64) {
        if stream == 0 {
            self.send_window += bytes;
            let all: Vec<u32> = self.streams.keys().copied().collect();
            all.into_iter().for_each(|stream| self.enqueue(stream));
        } else if let Some(known) = self.streams.get_mut(&stream) {
            known.send_window += bytes;
            self.enqueue(stream);
        }
    }

    /// The next frame of a stream; `None` when a window is used up.
    fn frame(&mut self, stream: u32) -> Option<HttpPiece> {
        let known = self.streams.get_mut(&stream)?;
        match known.outgoing.front_mut()? {
            Http2Outgoing::Head { head, now } => {
                let fields = match head.request {
                    Some(kind) => self.encoder.request_bytes(kind, head),
                    None => self.encoder.response_bytes(head, *now),
                };
                let frame = HttpFrame::Head {
                    stream,
                    head: *head,
                };
                known.outgoing.pop_front();
                Some(HttpPiece {
                    wire_bytes: FRAME_HEAD + fields,
                    frame,
                })
            }
            Http2Outgoing::Data { bytes, ends } => {
                let window = u64::try_from(known.send_window.min(self.send_window)).unwrap_or(0);
                let here = (*bytes).min(LARGEST_DATA).min(window);
                if here == 0 && *bytes > 0 {
                    return None;
                }
                *bytes -= here;
                let (is_whole, ends) = (*bytes == 0, *ends && *bytes == 0);
                if is_whole {
                    known.outgoing.pop_front();
                }
                let taken = i64::try_from(here).unwrap_or(i64::MAX);
                known.send_window -= taken;
                self.send_window -= taken;
                Some(HttpPiece {
                    wire_bytes: FRAME_HEAD + here,
                    frame: HttpFrame::Data {
                        stream,
                        bytes: here,
                        ends,
                    },
                })
            }
        }
    }

    /// A head has come.
    fn handle_head(&mut self, stream: u32, head: HttpHead) {
        if let Some(kind) = head.request {
            let arrival = HttpArrival { stream, kind };
            self.arrivals
                .entry(head.pair)
                .or_default()
                .push_back(arrival);
        }
        // A response to a stream that was dropped is of no use.
        if self.is_client && !self.streams.contains_key(&stream) {
            return;
        }
        let known = self.add_stream(stream);
        known.has_head = true;
        known.is_ended = head.ends;
    }
}

impl HttpMachine for Http2End {
    fn request(&mut self, head: HttpHead) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        self.add_stream(stream);
        let now = Instant(0);
        self.push(stream, Http2Outgoing::Head { head, now });
        stream
    }

    fn respond(&mut self, stream: u32, head: HttpHead, now: Instant) {
        self.push(stream, Http2Outgoing::Head { head, now });
    }

    /// hyper cuts what it is given at 16 KiB, so that a unit's last frame is shorter.
    fn send(&mut self, stream: u32, bytes: u64, ends: bool) {
        self.push(stream, Http2Outgoing::Data { bytes, ends });
    }

    fn end(&mut self, stream: u32) {
        self.push(
            stream,
            Http2Outgoing::Data {
                bytes: 0,
                ends: true,
            },
        );
    }

    fn close(&mut self) {
        if !core::mem::replace(&mut self.is_closed, true) {
            self.put(GO_AWAY, HttpFrame::GoAway);
        }
    }

    fn handle(&mut self, frame: HttpFrame) {
        match frame {
            HttpFrame::Filler => {}
            HttpFrame::SettingsAck => self.is_acknowledged = true,
            HttpFrame::Settings(window) => {
                self.put(FRAME_HEAD, HttpFrame::SettingsAck);
                self.has_settings = true;
                let more = i64::from(window) - i64::from(self.first_send_window);
                self.first_send_window = window;
                let streams: Vec<u32> = self.streams.keys().copied().collect();
                streams
                    .into_iter()
                    .for_each(|stream| self.widen(stream, more));
            }
            HttpFrame::WindowUpdate { stream, bytes } => self.widen(stream, i64::from(bytes)),
            HttpFrame::GoAway => self.close(),
            HttpFrame::Head { stream, head } => self.handle_head(stream, head),
            HttpFrame::Data {
                stream,
                bytes,
                ends,
            } => {
                self.receive_window.receive(bytes);
                match self.streams.get_mut(&stream) {
                    Some(known) => {
                        known.receive_window.receive(bytes);
                        known.readable += bytes;
                        known.is_ended |= ends;
                    }
                    // What nobody reads makes room at once.
                    None => {
                        self.receive_window.release(bytes);
                        self.offer(0);
                    }
                }
            }
        }
    }

    fn poll(&mut self) -> Vec<HttpPiece> {
        let (mut pieces, mut buffered) = (Vec::new(), 0);
        while buffered + CHAINED + FRAME_HEAD <= BUFFER {
            if let Some(piece) = self.control.pop_front() {
                buffered += piece.wire_bytes;
                pieces.push(piece);
                if !core::mem::replace(&mut self.has_begun, true) {
                    break;
                }
                continue;
            }
            let Some(stream) = self.queue.pop_front() else {
                break;
            };
            if let Some(known) = self.streams.get_mut(&stream) {
                known.is_queued = false;
            }
            let Some(piece) = self.frame(stream) else {
                continue;
            };
            self.enqueue(stream);
            buffered += piece.wire_bytes;
            pieces.push(piece);
            let ends_write = match piece.frame {
                HttpFrame::Data { bytes, .. } => bytes >= CHAINED,
                // hyper's client hands the body on in a turn of its own, after the head has been written.
                HttpFrame::Head { .. } => self.is_client,
                _ => false,
            };
            if ends_write {
                break;
            }
        }
        pieces
    }

    fn accept(&mut self, pair: Option<u32>) -> Option<HttpArrival> {
        self.arrivals.get_mut(&pair)?.pop_front()
    }

    fn has_head(&self, stream: u32) -> bool {
        self.streams
            .get(&stream)
            .is_some_and(|known| known.has_head)
    }

    fn take(&mut self, stream: u32) -> u64 {
        let Some(known) = self.streams.get_mut(&stream) else {
            return 0;
        };
        let taken = core::mem::take(&mut known.readable);
        if taken > 0 {
            known.receive_window.release(taken);
            self.receive_window.release(taken);
            self.offer(0);
            self.offer(stream);
        }
        taken
    }

    fn is_ended(&self, stream: u32) -> bool {
        self.streams
            .get(&stream)
            .is_none_or(|known| known.is_ended && known.readable == 0)
    }

    fn is_sent(&self, stream: u32) -> bool {
        self.streams
            .get(&stream)
            .is_none_or(|known| known.outgoing.is_empty())
    }

    fn waits_for(&self, stream: u32) -> Option<HttpWait> {
        let known = self.streams.get(&stream)?;
        match known.outgoing.front()? {
            Http2Outgoing::Data { bytes: 1.., .. } if known.send_window <= 0 => {
                Some(HttpWait::StreamWindow)
            }
            Http2Outgoing::Data { bytes: 1.., .. } if self.send_window <= 0 => {
                Some(HttpWait::ConnectionWindow)
            }
            _ => None,
        }
    }

    fn reads_ahead(&self) -> bool {
        true
    }

    fn is_settled(&self) -> bool {
        self.has_settings && self.is_acknowledged
    }

    fn forget(&mut self, stream: u32) {
        // What was not read makes room for the other streams.
        self.take(stream);
        if self.is_sent(stream) {
            self.streams.remove(&stream);
        }
    }
}
