//! The streams of a decrypted QUIC connection: reassembles them from frames in any order, and passes their bytes to the dissector of the
//! application protocol.

use super::closed_streams::ClosedStreams;
use super::dissector::QuicEvent;
use super::frames::StreamPiece;
use super::stream_calls::StreamCalls;
use crate::conversation::DissectorEvent;
use crate::conversation::http3::Http3;
use crate::conversation::reassembly::{MOST_HELD, ReassembledPiece, StreamReassembly};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::BTreeMap;

/// The most streams that are followed at a time.
const MOST_STREAMS: usize = Bound::QuicStreams.most();

/// A stream that is not complete.
#[derive(Debug, Default)]
struct OpenStream {
    sides: [StreamReassembly; 2],
    has_ended: [bool; 2],
}

/// The application protocol of the streams.
#[derive(Debug)]
enum StreamProtocol {
    Http3(Box<Http3>),
    Calls(StreamCalls),
}

impl StreamProtocol {
    fn piece(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        piece: &ReassembledPiece<'_>,
        found: &mut Vec<DissectorEvent>,
    ) {
        match (self, piece) {
            (Self::Http3(http), ReassembledPiece::Bytes(_, bytes)) => {
                http.bytes(side, stream, bytes, found)
            }
            (Self::Http3(http), ReassembledPiece::Unseen(_, count)) => {
                http.unseen(side, stream, *count, found)
            }
            (Self::Calls(calls), ReassembledPiece::Bytes(_, bytes)) => {
                calls.bytes(side, stream, bytes, found)
            }
            (Self::Calls(calls), ReassembledPiece::Unseen(..)) => calls.unseen(side, stream, found),
        }
    }

    fn end(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        at: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        match self {
            Self::Http3(http) => http.end(side, stream, at, found),
            Self::Calls(calls) => calls.end(side, stream, at, found),
        }
    }
}

/// All streams of one connection.
#[derive(Debug)]
pub(super) struct QuicStreams {
    open: BTreeMap<u64, OpenStream>,
    closed: ClosedStreams,
    /// How many bytes all streams hold behind gaps.
    held: usize,
    protocol: StreamProtocol,
}

impl QuicStreams {
    /// The streams of a connection with this application protocol (ALPN).
    pub(super) fn new(protocol: &[u8]) -> Self {
        let protocol = match protocol {
            [b'h', b'3', ..] => StreamProtocol::Http3(Box::default()),
            other => StreamProtocol::Calls(StreamCalls::new(other == b"doq")),
        };
        Self {
            open: BTreeMap::new(),
            closed: ClosedStreams::default(),
            held: 0,
            protocol,
        }
    }

    /// The name of the protocol.
    pub(super) const fn protocol(&self) -> &'static str {
        match &self.protocol {
            StreamProtocol::Http3(_) => "HTTP/3",
            StreamProtocol::Calls(StreamCalls { is_dns: true, .. }) => "DNS over QUIC",
            StreamProtocol::Calls(_) => "QUIC, by streams",
        }
    }

    /// Whether exchanges are found from the protocol's own messages.
    pub(super) const fn is_exact(&self) -> bool {
        !matches!(
            self.protocol,
            StreamProtocol::Calls(StreamCalls { is_dns: false, .. })
        )
    }

    /// Takes bytes of a stream.
    pub(super) fn piece(
        &mut self,
        side: EventStreamDirection,
        piece: StreamPiece<'_>,
        found: &mut Vec<QuicEvent>,
    ) {
        let StreamPiece {
            stream,
            offset,
            bytes,
            is_last,
        } = piece;
        let end = offset + bytes.len() as u64;
        // Repeated bytes are reported as passing too, but not passed on to the dissector.
        found.push(QuicEvent::Passes {
            side,
            stream,
            from: offset,
            end,
        });
        if !self.open.contains_key(&stream) {
            if self.closed.has(stream) {
                return;
            }
            if self.open.len() >= MOST_STREAMS {
                return found.push(QuicEvent::LeftOut(Bound::QuicStreams, 1));
            }
        }
        let Self {
            open,
            held,
            protocol,
            ..
        } = self;
        let known = open.entry(stream).or_default();
        let own = &mut known.sides[side as usize];
        let mut exchanges = Vec::new();
        let before = own.held();
        let mut give =
            |piece: ReassembledPiece<'_>| protocol.piece(side, stream, &piece, &mut exchanges);
        if is_last {
            own.end(end);
        }
        own.segment(offset, bytes, bytes.len() as u64, &mut give);
        let mut given_up = own.take_given_up();
        if *held + own.held() > before + MOST_HELD {
            own.finish(&mut give);
            given_up += 1;
        }
        if given_up > 0 {
            found.push(QuicEvent::LeftOut(Bound::BehindHole, given_up));
        }
        *held = (*held + own.held()).saturating_sub(before);
        self.settle(side, stream, &mut exchanges);
        found.extend(exchanges.into_iter().map(QuicEvent::from));
    }

    /// Ends a side of a stream once all its bytes were seen.
    fn settle(
        &mut self,
        side: EventStreamDirection,
        stream: u64,
        exchanges: &mut Vec<DissectorEvent>,
    ) {
        let Some(known) = self.open.get_mut(&stream) else {
            return;
        };
        let own = &known.sides[side as usize];
        if own.has_ended() && !std::mem::replace(&mut known.has_ended[side as usize], true) {
            self.protocol.end(side, stream, own.next(), exchanges);
        }
        let is_one_way = stream % 4 >= 2;
        let ended = known
            .has_ended
            .iter()
            .filter(|has_ended| **has_ended)
            .count();
        if ended == 2 || is_one_way && ended == 1 {
            self.drop_stream(stream);
        }
    }

    /// Forgets a stream that has ended.
    fn drop_stream(&mut self, stream: u64) {
        if let Some(known) = self.open.remove(&stream) {
            let held: usize = known.sides.iter().map(StreamReassembly::held).sum();
            self.held = self.held.saturating_sub(held);
            self.closed.add(stream);
        }
    }

    /// A stream was reset.
    pub(super) fn reset(&mut self, stream: u64, found: &mut Vec<QuicEvent>) {
        let mut exchanges = Vec::new();
        match &mut self.protocol {
            StreamProtocol::Http3(http) => http.reset(stream, &mut exchanges),
            StreamProtocol::Calls(calls) => calls.reset(stream, &mut exchanges),
        }
        found.extend(exchanges.into_iter().map(QuicEvent::from));
        self.drop_stream(stream);
    }

    /// The connection has ended.
    pub(super) fn close(&mut self, found: &mut Vec<QuicEvent>) {
        let mut exchanges = Vec::new();
        for (stream, mut known) in std::mem::take(&mut self.open) {
            for side in [EventStreamDirection::There, EventStreamDirection::Back] {
                let (own, protocol) = (&mut known.sides[side as usize], &mut self.protocol);
                own.finish(&mut |piece| protocol.piece(side, stream, &piece, &mut exchanges));
                if own.has_ended() && !known.has_ended[side as usize] {
                    self.protocol.end(side, stream, own.next(), &mut exchanges);
                }
            }
        }
        match &mut self.protocol {
            StreamProtocol::Http3(http) => http.close(&mut exchanges),
            StreamProtocol::Calls(calls) => calls.close(&mut exchanges),
        }
        self.held = 0;
        found.extend(exchanges.into_iter().map(QuicEvent::from));
    }

    /// How many bytes are held.
    pub(super) fn held(&self) -> usize {
        let of_protocol = match &self.protocol {
            StreamProtocol::Http3(http) => http.held(),
            StreamProtocol::Calls(calls) => calls.held(),
        };
        self.held + self.closed.held() + self.open.len() * size_of::<OpenStream>() + of_protocol
    }
}
