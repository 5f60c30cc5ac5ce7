//! Reads the unprotected part of QUIC packet headers (RFC 8999, RFC 9000 section 17, RFC 9369 section 3), and finds where a packet ends
//! that others follow in its datagram.

use crate::conversation::varint;

/// The longest connection id in bytes.
pub(super) const LONGEST_ID: usize = 20;

/// The shortest packet with a short header, in bytes: the sample for header protection must fit (RFC 9001, 5.4.2).
const SHORTEST: usize = 21;

/// A version whose packets can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicVersion {
    /// RFC 9000.
    V1,
    /// RFC 9369.
    V2,
}

impl QuicVersion {
    const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            0x6b33_43cf => Some(Self::V2),
            _ => None,
        }
    }

    /// The version's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "QUIC v1",
            Self::V2 => "QUIC v2",
        }
    }
}

/// The types of packets with a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongPacketKind {
    Initial,
    Early,
    Handshake,
    Retry,
}

/// A packet with a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongPacket<'b> {
    pub(super) version: QuicVersion,
    pub(super) kind: LongPacketKind,
    /// The destination connection id.
    pub(super) to: &'b [u8],
    /// The source connection id.
    pub(super) from: &'b [u8],
    /// The offset of the packet number; in a Retry packet, of the token.
    pub(super) number_at: usize,
    /// The packet, as far as it was captured.
    pub(super) bytes: &'b [u8],
    /// Whether the packet was captured to its end.
    pub(super) is_whole: bool,
}

/// A packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuicPacket<'b> {
    Long(LongPacket<'b>),
    /// The server supports none of the client's versions.
    VersionNegotiation {
        to: &'b [u8],
        from: &'b [u8],
    },
    /// A packet with a short header, which carries data and extends to the end of its datagram.
    Short(&'b [u8]),
}

/// Whether the datagram begins with a long header, as those do that set up a connection, from either side.
#[must_use]
pub fn sets_up_connection(mut datagram: &[u8]) -> bool {
    matches!(next_packet(&mut datagram), Some(QuicPacket::Long(_)))
}

/// Takes the next packet off a datagram; `None` if there is none that can be read.
pub(super) fn next_packet<'b>(datagram: &mut &'b [u8]) -> Option<QuicPacket<'b>> {
    let all = *datagram;
    let first = *all.first()?;
    if first & 0x80 == 0 {
        *datagram = &[];
        // The second bit of the first byte may have any value (RFC 9287). A datagram of zeros is padding.
        let is_packet = all.len() >= SHORTEST && all.iter().any(|byte| *byte != 0);
        return is_packet.then_some(QuicPacket::Short(all));
    }
    *datagram = &[];
    let mut rest = &all[1..];
    let version = u32::from_be_bytes(*take(&mut rest, 4)?.first_chunk()?);
    let mut id = || {
        let length = usize::from(*take(&mut rest, 1)?.first()?);
        take(&mut rest, length).filter(|id| id.len() <= LONGEST_ID)
    };
    let (to, from) = (id()?, id()?);
    if version == 0 {
        let is_list = !rest.is_empty() && rest.len().is_multiple_of(4);
        return is_list.then_some(QuicPacket::VersionNegotiation { to, from });
    }
    let version = QuicVersion::from_number(version)?;
    let kind = kind_of(version, first >> 4 & 3);
    let packet = |number_at, bytes, is_whole| {
        QuicPacket::Long(LongPacket {
            version,
            kind,
            to,
            from,
            number_at,
            bytes,
            is_whole,
        })
    };
    if kind == LongPacketKind::Retry {
        return Some(packet(all.len() - rest.len(), all, true));
    }
    if kind == LongPacketKind::Initial {
        let token = usize::try_from(varint::take(&mut rest)?).ok()?;
        take(&mut rest, token)?;
    }
    let length = usize::try_from(varint::take(&mut rest)?).ok()?;
    let number_at = all.len() - rest.len();
    match take(&mut rest, length) {
        Some(_) => {
            *datagram = rest;
            Some(packet(number_at, &all[..number_at + length], true))
        }
        None => Some(packet(number_at, all, false)),
    }
}

const fn kind_of(version: QuicVersion, bits: u8) -> LongPacketKind {
    // The types of version 2 are numbered one higher (RFC 9369, 3.2).
    let bits = match version {
        QuicVersion::V1 => bits,
        QuicVersion::V2 => (bits + 3) % 4,
    };
    match bits {
        0 => LongPacketKind::Initial,
        1 => LongPacketKind::Early,
        2 => LongPacketKind::Handshake,
        _ => LongPacketKind::Retry,
    }
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, behind) = bytes.split_at_checked(count)?;
    *bytes = behind;
    Some(taken)
}
