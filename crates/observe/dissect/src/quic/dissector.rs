//! One QUIC connection: takes the datagrams of both sides and returns what they are and contain. The first datagram is the client's and
//! begins the connection.

use super::frames::{QuicFrame, next_frame};
use super::handshake::{PacketSpace, QuicHandshake};
use super::packet_header::{LongPacket, LongPacketKind, QuicPacket, QuicVersion, next_packet};
use super::packet_keys::is_retry;
use super::streams::QuicStreams;
use crate::conversation::tls::session_secrets::Secrets;
use crate::conversation::{DissectorEvent, RedactedName};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;

/// Application protocols (ALPN) that are named: as offered, as name, and as suffix of the handshake's name. Other texts of a program are
/// not kept.
const PROTOCOLS: [(&[u8], &str, &str); 4] = [
    (b"h3", "h3", " (h3)"),
    (b"doq", "doq", " (doq)"),
    (b"h3-29", "h3-29", " (h3-29)"),
    (b"hq-interop", "hq-interop", " (hq-interop)"),
];

/// What a handshake packet contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeNews {
    /// Something that was not seen before.
    New,
    /// Only what was seen before: it is a retransmission.
    Again,
    /// No handshake data: the packet acknowledges, or keeps the connection open.
    Nothing,
    /// The packet cannot be decrypted.
    Sealed,
}

/// What is found in a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicEvent {
    /// A handshake packet.
    Handshake {
        /// The side that sends it.
        side: EventStreamDirection,
        /// What it contributes to the handshake.
        news: HandshakeNews,
        /// The packet's length in bytes.
        bytes: u64,
    },
    /// The client's hello is complete: the name of the connection's handshake.
    Named(RedactedName),
    /// The side accepts packets to this connection id.
    NewId(EventStreamDirection, Vec<u8>),
    /// The server asks the client to prove its address.
    Retry,
    /// The server supports none of the client's versions.
    VersionNegotiation,
    /// A packet with application data.
    Data {
        /// The side that sends it.
        side: EventStreamDirection,
        /// The packet's spin bit.
        spin: bool,
    },
    /// A side closes the connection.
    Closed {
        /// The side that closes it.
        side: EventStreamDirection,
        /// The error code: of QUIC, or of the application protocol.
        code: u64,
        /// Whether the code is of the application protocol.
        is_application: bool,
    },
    /// Bytes of a stream.
    Passes {
        /// The side that sends them.
        side: EventStreamDirection,
        /// The stream's id.
        stream: u64,
        /// The offset of the first byte.
        from: u64,
        /// The offset behind the last byte.
        end: u64,
    },
    /// An event of an exchange. The number of the exchange is the stream's id divided by four; offsets are those of the stream.
    Exchange(DissectorEvent),
    /// Something was left out at a limit, and how often.
    LeftOut(Bound, u64),
}

impl From<DissectorEvent> for QuicEvent {
    fn from(event: DissectorEvent) -> Self {
        match event {
            DissectorEvent::LeftOut(bound, count) => Self::LeftOut(bound, count),
            event => Self::Exchange(event),
        }
    }
}

/// The dissector of one connection.
#[derive(Debug)]
pub struct QuicDissector {
    handshake: QuicHandshake,
    /// The connection id of the client's first packet.
    first_id: Vec<u8>,
    /// The connection id that the server chose in its first answer.
    server_id: Vec<u8>,
    /// The length of each side's connection ids, in bytes.
    id_lengths: [Option<usize>; 2],
    /// The streams, once data was decrypted.
    streams: Option<QuicStreams>,
    has_retried: bool,
    is_named: bool,
    /// The number of data packets that were not decrypted.
    sealed: u64,
}

impl QuicDissector {
    /// Begins a connection with its first datagram, which had `length` bytes on the wire; `None` if the datagram does not begin a
    /// connection. The datagram must also be passed to [`Self::datagram`].
    #[must_use]
    pub fn begin(datagram: &[u8], length: u64, secrets: Option<Secrets>) -> Option<Self> {
        let mut rest = datagram;
        let Some(QuicPacket::Long(packet)) = next_packet(&mut rest) else {
            return None;
        };
        // The conditions for a client's first Initial packet: RFC 9000, 7.2, 14.1 and 17.2.
        let is_first = packet.kind == LongPacketKind::Initial
            && datagram[0] & 0x40 != 0
            && packet.to.len() >= 8
            && length >= 1200;
        if !is_first {
            return None;
        }
        let mut handshake = QuicHandshake::new(packet.version, packet.to, secrets);
        let is_read =
            handshake.open_long(EventStreamDirection::There, PacketSpace::Initial, &packet);
        let is_cut = !packet.is_whole && (datagram.len() as u64) < length;
        (is_read.is_some() || is_cut).then(|| Self::new(handshake, packet.to))
    }

    fn new(handshake: QuicHandshake, first_id: &[u8]) -> Self {
        Self {
            handshake,
            first_id: first_id.to_vec(),
            server_id: Vec::new(),
            id_lengths: [None; 2],
            streams: None,
            has_retried: false,
            is_named: false,
            sealed: 0,
        }
    }

    /// A connection with this application protocol and no packets yet. For tests of decrypted content.
    #[doc(hidden)]
    #[must_use]
    pub fn speaking(protocol: &[u8]) -> Self {
        let mut begun = Self::new(QuicHandshake::new(QuicVersion::V1, &[0; 8], None), &[0; 8]);
        begun.streams = Some(QuicStreams::new(protocol));
        begun
    }

    /// Takes the content of a decrypted data packet. For tests.
    #[doc(hidden)]
    pub fn opened(
        &mut self,
        side: EventStreamDirection,
        payload: &[u8],
        found: &mut Vec<QuicEvent>,
    ) {
        let _ = self.frames(side, PacketSpace::Data, payload, found);
    }

    /// Takes a datagram of one side, as far as it was captured.
    pub fn datagram(
        &mut self,
        side: EventStreamDirection,
        datagram: &[u8],
        found: &mut Vec<QuicEvent>,
    ) {
        let mut rest = datagram;
        while let Some(packet) = next_packet(&mut rest) {
            match packet {
                QuicPacket::Long(packet) => self.long(side, &packet, found),
                QuicPacket::VersionNegotiation { .. } if side == EventStreamDirection::Back => {
                    found.push(QuicEvent::VersionNegotiation);
                }
                QuicPacket::VersionNegotiation { .. } => {}
                QuicPacket::Short(packet) => self.short(side, packet, found),
            }
        }
        let left_out = std::mem::take(&mut self.handshake.left_out);
        found.extend(
            left_out
                .iter()
                .map(|(bound, count)| QuicEvent::LeftOut(bound, count)),
        );
    }

    /// Takes a packet with a long header.
    fn long(
        &mut self,
        side: EventStreamDirection,
        packet: &LongPacket<'_>,
        found: &mut Vec<QuicEvent>,
    ) {
        if packet.kind == LongPacketKind::Retry {
            let is_first = side == EventStreamDirection::Back && !self.has_retried;
            if is_first && is_retry(packet.version, packet.bytes, &self.first_id) {
                self.has_retried = true;
                found.push(QuicEvent::Retry);
            }
            return;
        }
        let known = &mut self.id_lengths[side as usize];
        if known.is_none() {
            *known = Some(packet.from.len());
            if side == EventStreamDirection::Back {
                self.server_id = packet.from.to_vec();
            }
            found.push(QuicEvent::NewId(side, packet.from.to_vec()));
        }
        let space = match packet.kind {
            LongPacketKind::Initial => PacketSpace::Initial,
            LongPacketKind::Handshake => PacketSpace::Handshake,
            _ => return,
        };
        let payload = self.handshake.open_long(side, space, packet);
        let said = payload.map(|payload| self.frames(side, space, &payload, found));
        let news = match said {
            None => HandshakeNews::Sealed,
            Some(None) => HandshakeNews::Nothing,
            Some(Some(true)) => HandshakeNews::New,
            Some(Some(false)) => HandshakeNews::Again,
        };
        let bytes = packet.bytes.len() as u64;
        found.push(QuicEvent::Handshake { side, news, bytes });
        self.name(found);
    }

    /// Takes a packet with a short header, which carries data.
    fn short(&mut self, side: EventStreamDirection, packet: &[u8], found: &mut Vec<QuicEvent>) {
        let spin = packet[0] & 0x20 != 0;
        found.push(QuicEvent::Data { side, spin });
        let receiver = self.id_lengths[1 - side as usize];
        self.handshake.unlock();
        let payload = receiver.and_then(|length| {
            self.handshake
                .open(side, PacketSpace::Data, packet, 1 + length)
        });
        match payload {
            Some(payload) => {
                let _ = self.frames(side, PacketSpace::Data, &payload, found);
            }
            None => self.sealed += 1,
        }
    }

    /// Takes the frames of a packet. Returns whether its handshake data was new; `None` if it had none.
    fn frames(
        &mut self,
        side: EventStreamDirection,
        space: PacketSpace,
        mut payload: &[u8],
        found: &mut Vec<QuicEvent>,
    ) -> Option<bool> {
        let mut is_new = None;
        while let Some(frame) = next_frame(&mut payload) {
            match frame {
                QuicFrame::Crypto(offset, bytes) if !bytes.is_empty() => {
                    let new = self.handshake.say(side, space, offset, bytes);
                    is_new = Some(is_new.unwrap_or(false) || new);
                }
                QuicFrame::Stream(piece) if space == PacketSpace::Data => {
                    let protocol = self.handshake.protocol();
                    let streams = self
                        .streams
                        .get_or_insert_with(|| QuicStreams::new(protocol));
                    streams.piece(side, piece, found);
                }
                QuicFrame::Reset(stream) if space == PacketSpace::Data => {
                    if let Some(streams) = &mut self.streams {
                        streams.reset(stream, found);
                    }
                }
                QuicFrame::Close {
                    code,
                    is_application,
                } => {
                    found.push(QuicEvent::Closed {
                        side,
                        code,
                        is_application,
                    });
                }
                QuicFrame::NewId(id) => found.push(QuicEvent::NewId(side, id.to_vec())),
                QuicFrame::Crypto(..)
                | QuicFrame::Stream(_)
                | QuicFrame::Reset(_)
                | QuicFrame::Other => {}
            }
        }
        is_new
    }

    /// Reports the name of the connection once it is known.
    fn name(&mut self, found: &mut Vec<QuicEvent>) {
        let Some(offer) = self.handshake.offer().filter(|_| !self.is_named) else {
            return;
        };
        self.is_named = true;
        let words = if offer.name.is_empty() {
            "QUIC handshake"
        } else {
            "QUIC handshake "
        };
        let protocol = PROTOCOLS
            .iter()
            .find(|(name, ..)| *name == self.handshake.protocol());
        let behind = protocol.map_or("", |(.., behind)| behind);
        found.push(QuicEvent::Named(RedactedName::host(
            words,
            &offer.name,
            behind,
        )));
    }

    /// Whether a datagram of the client begins another connection: it goes to none of this connection's ids.
    #[must_use]
    pub fn is_followed_by(&self, mut datagram: &[u8]) -> bool {
        let Some(QuicPacket::Long(packet)) = next_packet(&mut datagram) else {
            return false;
        };
        let is_known = packet.to == self.first_id
            || packet.to == self.handshake.id()
            || packet.to == self.server_id;
        packet.kind == LongPacketKind::Initial && packet.to.len() >= 8 && !is_known
    }

    /// The connection has ended.
    pub fn close(&mut self, found: &mut Vec<QuicEvent>) {
        if let Some(streams) = &mut self.streams {
            streams.close(found);
        }
    }

    /// The version in use.
    #[must_use]
    pub const fn version(&self) -> QuicVersion {
        self.handshake.version()
    }

    /// The application protocol (ALPN), if it is one of the named ones; else empty.
    #[must_use]
    pub fn application(&self) -> &'static str {
        let known = PROTOCOLS
            .iter()
            .find(|(name, ..)| *name == self.handshake.protocol());
        known.map_or("", |(_, name, _)| name)
    }

    /// The name of the protocol of its exchanges.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        self.streams.as_ref().map_or("QUIC", QuicStreams::protocol)
    }

    /// Whether exchanges are found from the protocol's own messages.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.streams.as_ref().is_none_or(QuicStreams::is_exact)
    }

    /// Whether data packets were seen whose secrets are not known.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed > 0 && !self.handshake.is_unlocked()
    }

    /// The number of data packets that could not be decrypted although the secrets are known: they were cut, damaged, or used other keys.
    #[must_use]
    pub fn unopened(&self) -> u64 {
        if self.handshake.is_unlocked() {
            self.sealed
        } else {
            0
        }
    }

    /// How many bytes are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.handshake.held() + self.streams.as_ref().map_or(0, QuicStreams::held)
    }
}

#[cfg(test)]
mod tests;
