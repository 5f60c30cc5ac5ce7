//! The format of a packet: a header of 32 bytes, little-endian, and a body. Packets of any other form are ignored.
//!
//! | bytes | field | of data | of an answer |
//! | --- | --- | --- | --- |
//! | 0 | kind | | |
//! | 1 | flags | [`ACK_REQUEST`], [`FIN`] | [`COMPLETE`], [`LIMIT`], [`UNSOLICITED`] |
//! | 2..4 | round | of this blast | the one answered |
//! | 4..8 | connection | | |
//! | 8..12 | blast | its number | its number |
//! | 12..16 | length | bytes of the blast | 0 |
//! | 16..24 | start | stream position of the blast | the limit: as far as the receiver grants |
//! | 24..26 | index | of the packet in the blast | first missing packet |
//! | 26..28 | spare | 0 | 0 |
//! | 28..32 | check | CRC-32C of the blast, with [`ACK_REQUEST`], where agreed | how many are missing |
//!
//! [`BlastPacketKind::Close`] reports in `start` and with [`FIN`] what its sender has received: up to which position, and whether
//! to the end. With [`ABORT`] its sender has given up.

/// Bytes of a header.
pub const HEADER: usize = 32;
/// Bytes between header and payload of a packet that is sealed: its number (8) and the tag of its encryption (16).
pub const SEAL: usize = 8 + 16;

/// The kinds of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlastPacketKind {
    /// A packet of a blast.
    Data = 1,
    /// An answer: which packets of a blast have arrived, and how far the sender may go on.
    Answer = 2,
    /// Requests the receiver's limit only.
    Probe = 3,
    /// Requests a connection; parameters follow.
    Open = 4,
    /// The connection is open; the agreed parameters follow.
    Accept = 5,
    /// The connection is refused; one byte has the reason.
    Refuse = 6,
    /// The connection is closed.
    Close = 7,
    /// Acknowledges a Close.
    Closed = 8,
    /// A message that awaits its reply ([`crate::ikp`]).
    Send = 16,
    /// The reply.
    Reply = 17,
    /// The message has arrived, and its reply has not been made yet.
    Pending = 18,
    /// Requests a range of the readable segment.
    MoveFrom = 19,
}

const KINDS: [BlastPacketKind; 12] = [
    BlastPacketKind::Data,
    BlastPacketKind::Answer,
    BlastPacketKind::Probe,
    BlastPacketKind::Open,
    BlastPacketKind::Accept,
    BlastPacketKind::Refuse,
    BlastPacketKind::Close,
    BlastPacketKind::Closed,
    BlastPacketKind::Send,
    BlastPacketKind::Reply,
    BlastPacketKind::Pending,
    BlastPacketKind::MoveFrom,
];

/// The receiver is to answer: set on the last packet of a round.
pub const ACK_REQUEST: u8 = 1;
/// No more comes in this direction: set on all packets of the last blast, which is empty.
pub const FIN: u8 = 2;
/// The whole blast has arrived.
pub const COMPLETE: u8 = 4;
/// The answer reports only the limit.
pub const LIMIT: u8 = 8;
/// Sent without a request, because nothing more came.
pub const UNSOLICITED: u8 = 16;
/// With [`BlastPacketKind::Close`]: its sender gives up, perhaps before everything was sent.
pub const ABORT: u8 = 32;

/// How many rounds a packet may be late; beyond, its round counts as a later one whose number has wrapped.
const LATE: u16 = 256;

/// Whether a round of a blast is before another one. After very many missed rounds any number counts as later.
#[must_use]
pub const fn is_before(round: u16, other: u16) -> bool {
    let late = other.wrapping_sub(round);
    late != 0 && late <= LATE
}

/// A packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastHeader {
    /// What the packet is.
    pub kind: BlastPacketKind,
    /// [`ACK_REQUEST`] and the others.
    pub flags: u8,
    /// The number of the transmission of the blast, from 0; wraps.
    pub round: u16,
    /// The number of the connection.
    pub connection: u32,
    /// The number of the blast in its direction; wraps.
    pub blast: u32,
    /// Bytes of the blast.
    pub length: u32,
    /// Stream position of the blast's first byte; in answers the limit.
    pub start: u64,
    /// The index of the packet in the blast; in answers the first missing packet.
    pub index: u16,
    /// The checksum of the blast's bytes; in answers the number of missing packets.
    pub check: u32,
}

impl BlastHeader {
    /// A header with only a kind and a connection.
    #[must_use]
    pub const fn new(kind: BlastPacketKind, connection: u32) -> Self {
        Self {
            kind,
            flags: 0,
            round: 0,
            connection,
            blast: 0,
            length: 0,
            start: 0,
            index: 0,
            check: 0,
        }
    }

    /// Whether a flag is set.
    #[must_use]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The header as bytes.
    #[must_use]
    #[inline]
    pub fn write(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind as u8;
        bytes[1] = self.flags;
        bytes[2..4].copy_from_slice(&self.round.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.connection.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.blast.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.start.to_le_bytes());
        bytes[24..26].copy_from_slice(&self.index.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.check.to_le_bytes());
        bytes
    }

    /// The header at the beginning of `packet`; `None` when it is too short or of an unknown kind.
    #[must_use]
    #[inline]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER] = packet.get(..HEADER)?.try_into().ok()?;
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == bytes[0])?;
        let four = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let two = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Some(Self {
            kind,
            flags: bytes[1],
            round: two(2),
            connection: four(4),
            blast: four(8),
            length: four(12),
            start: u64::from(four(16)) | u64::from(four(20)) << 32,
            index: two(24),
            check: four(28),
        })
    }
}

/// Whether the bytes of a header are those of a data packet that requests no answer.
#[must_use]
#[inline]
pub fn begins_row(header: &[u8]) -> bool {
    header.len() >= HEADER
        && header[0] == BlastPacketKind::Data as u8
        && header[1] & ACK_REQUEST == 0
}

/// Whether the bytes of two headers differ in nothing but the index, which is `ahead` more in the second.
#[must_use]
#[inline]
pub fn follows(first: &[u8], second: &[u8], ahead: u16) -> bool {
    let (Some(first), Some(second)) = (
        first.first_chunk::<HEADER>(),
        second.first_chunk::<HEADER>(),
    ) else {
        return false;
    };
    let index = |header: &[u8; HEADER]| u16::from_le_bytes([header[24], header[25]]);
    first[..24] == second[..24]
        && first[26..] == second[26..]
        && index(first).checked_add(ahead) == Some(index(second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(kind in 0..KINDS.len(), flags: u8, round: u16, connection: u32, blast: u32,
                                   length: u32, start: u64, index: u16, check: u32) {
            let header = BlastHeader { kind: KINDS[kind], flags, round, connection, blast, length, start, index, check };
            prop_assert_eq!(BlastHeader::read(&header.write()), Some(header));
        }

        #[test]
        fn headers_follow_when_only_the_index_goes_on(index: u16, ahead: u16, bit in 0..8 * HEADER, flags: u8) {
            let first = BlastHeader { index, flags, start: 77, ..BlastHeader::new(BlastPacketKind::Data, 7) };
            let second = BlastHeader { index: index.wrapping_add(ahead), ..first };
            let fits = index.checked_add(ahead).is_some();
            prop_assert_eq!(follows(&first.write(), &second.write(), ahead), fits);
            let mut changed = second.write();
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!follows(&first.write(), &changed, ahead));
            prop_assert!(!follows(&first.write()[..31], &second.write(), ahead));
            prop_assert_eq!(begins_row(&first.write()), flags & ACK_REQUEST == 0);
        }

        #[test]
        fn any_bytes_are_read_or_not(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(header) = BlastHeader::read(&bytes) {
                prop_assert!(bytes.len() >= HEADER && bytes[0] == header.kind as u8);
            }
        }
    }
}
