//! One connection: reassembles both directions, recognises the protocol and passes the bytes to its dissector. It knows no time.

use super::opening::ConversationOpening;
use super::protocol_recognition::{self, ENOUGH};
use super::proxy_header;
use super::reassembly::{ReassembledPiece, StreamReassembly};
use super::socks_set_up::{self, SocksSetUp};
use super::tls::session_secrets::Secrets;
use super::{Dissector, DissectorEvent, ExchangeKind, tls};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;

/// Bytes that came before the protocol was recognised.
#[derive(Debug)]
enum Early {
    /// Captured bytes of a side, with the stream offset of the first one.
    Bytes(EventStreamDirection, u64, Vec<u8>),
    /// Bytes of a side that were not captured: their stream offset and their number.
    Unseen(EventStreamDirection, u64, u64),
}

impl Early {
    const fn held(&self) -> usize {
        size_of::<Self>()
            + if let Self::Bytes(.., bytes) = self {
                bytes.len()
            } else {
                0
            }
    }
}

/// A connection whose exchanges are being found.
#[derive(Debug)]
pub struct Conversation {
    sides: [StreamReassembly; 2],
    /// The sides whose end was passed to the dissector.
    ended: [bool; 2],
    speaks: Speaks,
    /// The port of the responder.
    port: u16,
    /// Whether the start of the connection was not captured and no request has been seen yet.
    is_midway: bool,
}

/// The protocol of a connection, once it is recognised.
#[derive(Debug)]
enum Speaks {
    /// Not recognised yet: the bytes so far, and the TLS secrets, if there are any.
    Unknown(Vec<Early>, Option<Secrets>),
    /// Recognised: its dissector.
    Known(Box<dyn Dissector>),
}

impl Conversation {
    /// A connection to a responder's port, from its first byte on.
    #[must_use]
    pub fn new(port: u16) -> Self {
        Self {
            sides: Default::default(),
            ended: [false; 2],
            speaks: Speaks::Unknown(Vec::new(), None),
            port,
            is_midway: false,
        }
    }

    /// Marks a connection that began before the capture: responses that come before the first request are skipped, since their requests
    /// were not captured.
    #[must_use]
    pub fn begun_before(self, is_midway: bool) -> Self {
        Self { is_midway, ..self }
    }

    /// Sets the secrets with which TLS is decrypted, as far as they are known when a connection's keys are needed.
    #[must_use]
    pub fn with_secrets(self, secrets: Option<Secrets>) -> Self {
        Self {
            speaks: Speaks::Unknown(Vec::new(), secrets),
            ..self
        }
    }

    /// Takes a segment of one side at stream offset `at`: it has `length` bytes, of which `bytes` were captured.
    pub fn segment(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        length: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        self.is_midway &= side == EventStreamDirection::Back;
        let Self {
            sides,
            speaks,
            port,
            is_midway,
            ..
        } = self;
        sides[side as usize].segment(at, bytes, length, &mut |piece| {
            if !*is_midway {
                speaks.piece(side, &piece, *port, found);
            }
        });
        let given_up = sides[side as usize].take_given_up();
        found
            .extend((given_up > 0).then_some(DissectorEvent::LeftOut(Bound::BehindHole, given_up)));
        self.settle_end(side, found);
    }

    /// The receiver of `side` acknowledged all bytes up to the offset `to`, so gaps before it will not be filled.
    pub fn acknowledged(
        &mut self,
        side: EventStreamDirection,
        to: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let Self {
            sides,
            speaks,
            port,
            ..
        } = self;
        sides[side as usize]
            .acknowledged(to, &mut |piece| speaks.piece(side, &piece, *port, found));
        self.settle_end(side, found);
    }

    /// One side ends at an offset. Missing bytes before it may still come.
    pub fn end(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        self.sides[side as usize].end(at);
        self.settle_end(side, found);
    }

    /// Nothing more comes from one side, which has sent `at` bytes.
    pub fn cut(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        // A reset may lie beyond the end that a FIN already announced.
        if self.sides[side as usize].said_end().is_none() {
            self.sides[side as usize].end(at);
        }
        let Self {
            sides,
            speaks,
            port,
            ..
        } = self;
        sides[side as usize].finish(&mut |piece| speaks.piece(side, &piece, *port, found));
        self.settle_end(side, found);
    }

    /// Ends both sides, if a FIN announced their ends: missing bytes will not come any more.
    pub fn finish(&mut self, found: &mut Vec<DissectorEvent>) {
        for side in [EventStreamDirection::There, EventStreamDirection::Back] {
            if let Some(end) = self.sides[side as usize].said_end() {
                self.cut(side, end, found);
            }
        }
    }

    /// Tells the dissector that a side has ended, once all bytes of that side were passed on.
    fn settle_end(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let whole = &self.sides[side as usize];
        if !whole.has_ended() || std::mem::replace(&mut self.ended[side as usize], true) {
            return;
        }
        self.speaks.decide(self.port, true, found);
        if let Speaks::Known(dissector) = &mut self.speaks {
            dissector.end(side, whole.next(), found);
        }
    }

    /// The protocol's name, if it is recognised.
    #[must_use]
    pub fn protocol(&self) -> Option<&'static str> {
        match &self.speaks {
            Speaks::Unknown(..) => None,
            Speaks::Known(dissector) => Some(dissector.protocol()),
        }
    }

    /// The protocol's name for one exchange, on a connection that speaks several.
    #[must_use]
    pub fn protocol_of(&self, kind: ExchangeKind, number: u64) -> Option<&'static str> {
        match &self.speaks {
            Speaks::Unknown(..) => None,
            Speaks::Known(dissector) => Some(dissector.protocol_of(kind, number)),
        }
    }

    /// Whether exchanges are found from the protocol's own messages rather than from turns.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(&self.speaks, Speaks::Known(dissector) if dissector.is_exact())
    }

    /// How many bytes are held: behind gaps, before the protocol is recognised, and of incomplete messages.
    #[must_use]
    pub fn held(&self) -> usize {
        let behind: usize = self.sides.iter().map(StreamReassembly::held).sum();
        let own = match &self.speaks {
            Speaks::Unknown(early, _) => early.iter().map(Early::held).sum(),
            Speaks::Known(dissector) => dissector.held(),
        };
        behind + own
    }

    /// How many bytes of both sides were never captured.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sides.iter().map(StreamReassembly::lost).sum()
    }
}

impl Speaks {
    /// Passes a reassembled piece to the dissector, or keeps it until there is one.
    fn piece(
        &mut self,
        side: EventStreamDirection,
        piece: &ReassembledPiece<'_>,
        port: u16,
        found: &mut Vec<DissectorEvent>,
    ) {
        match (self, piece) {
            (Self::Known(dissector), ReassembledPiece::Bytes(at, bytes)) => {
                dissector.bytes(side, *at, bytes, found)
            }
            (Self::Known(dissector), ReassembledPiece::Unseen(at, count)) => {
                dissector.unseen(side, *at, *count, found)
            }
            (unknown @ Self::Unknown(..), piece) => {
                if let Self::Unknown(early, _) = unknown {
                    early.push(match piece {
                        ReassembledPiece::Bytes(at, bytes) => {
                            Early::Bytes(side, *at, bytes.to_vec())
                        }
                        ReassembledPiece::Unseen(at, count) => Early::Unseen(side, *at, *count),
                    });
                }
                unknown.decide(port, matches!(piece, ReassembledPiece::Unseen(..)), found);
            }
        }
    }

    /// Chooses a dissector, if enough bytes are known or `last` says that no more will come, and passes it all bytes so far.
    fn decide(&mut self, port: u16, last: bool, found: &mut Vec<DissectorEvent>) {
        let Self::Unknown(early, secrets) = self else {
            return;
        };
        let wanted = ENOUGH.max(socks_set_up::LONGEST);
        let first = |side: EventStreamDirection| {
            let mut bytes = Vec::new();
            for early in &*early {
                match early {
                    Early::Bytes(from, _, some) if *from == side && bytes.len() < wanted => {
                        bytes.extend_from_slice(some)
                    }
                    Early::Unseen(from, ..) if *from == side => break,
                    _ => {}
                }
            }
            bytes
        };
        let (there, back) = (
            first(EventStreamDirection::There),
            first(EventStreamDirection::Back),
        );
        // A proxy may put a header (PROXY protocol) before the bytes of its own client.
        let before = match proxy_header::length(&there) {
            Some(length) if length <= there.len() => length,
            Some(_) if !last => return,
            _ => 0,
        };
        // A SOCKS set-up stands before the protocol that is spoken through the proxy.
        let (before, before_back) = match socks_set_up::find_set_up(&there[before..], &back) {
            SocksSetUp::Begun if !last => return,
            SocksSetUp::Refused { version, code } => {
                let refusal = socks_set_up::name_refusal(version, code);
                let spans = [EventStreamDirection::There, EventStreamDirection::Back]
                    .map(|side| span_of(early, side));
                socks_set_up::find_refusal(refusal, spans, found);
                *self = Self::Known(Box::new(socks_set_up::RefusedSetUp));
                return;
            }
            SocksSetUp::Whole { there, back } => (before + there, back),
            _ => (before, 0),
        };
        let there = &there[before..];
        let opening = ConversationOpening {
            there,
            back: &back[before_back..],
            port,
        };
        let Some(mut dissector) = protocol_recognition::recognise(&opening, last) else {
            return;
        };
        if let Some(secrets) = secrets.take() {
            dissector = opened_with(secrets, dissector, &opening);
        }
        let mut skip = [before, before_back];
        for early in early.drain(..) {
            match early {
                Early::Bytes(side, at, bytes) => {
                    let header = skip[side as usize].min(bytes.len());
                    skip[side as usize] -= header;
                    if header < bytes.len() {
                        dissector.bytes(side, at + header as u64, &bytes[header..], found);
                    }
                }
                Early::Unseen(side, at, count) => dissector.unseen(side, at, count, found),
            }
        }
        *self = Self::Known(dissector);
    }
}

/// The port that is used for recognition within a tunnel, where no port hints at the protocol.
const NO_PORT: u16 = 0;

/// The dissector for a connection whose secrets are known: one that decrypts TLS, or one that is given the secrets for TLS within it.
fn opened_with(
    secrets: Secrets,
    dissector: Box<dyn Dissector>,
    opening: &ConversationOpening<'_>,
) -> Box<dyn Dissector> {
    if tls::is_client_hello(opening.there) {
        return Box::new(tls::decryption::Deciphered::new(secrets, opening.port));
    }
    let mut dissector = dissector;
    dissector.know_secrets(secrets, |secrets| {
        Box::new(tls::decryption::Deciphered::new(secrets, NO_PORT))
    });
    dissector
}

/// The offsets of the first byte and behind the last byte of a side, among the early bytes.
fn span_of(early: &[Early], side: EventStreamDirection) -> (u64, u64) {
    let of_side = early.iter().filter_map(|early| match early {
        Early::Bytes(from, at, bytes) if *from == side => Some((*at, *at + bytes.len() as u64)),
        _ => None,
    });
    of_side
        .reduce(|(first, _), (_, end)| (first, end))
        .unwrap_or_default()
}
