//! The format of the Ethernet frames that carry packets of a connection. Frames of another format are ignored.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..6 | destination |
//! | 6..12 | source |
//! | 12..14 | ethertype, big-endian |
//! | 14..16 | bytes of the packet, little-endian; needed because a short frame is padded with zeros |
//! | 16 | format number: 1; other programs may use the same ethertype |
//! | 17 | flags: [`WAKE`] |
//! | 18.. | packet: head and payload |

use super::mac::Mac;
use crate::carrier::LONGEST_HEAD;

/// Bytes of a frame before the packet.
pub(super) const PREFIX: usize = 18;
/// Bytes of the Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes between the Ethernet header and the packet: length, format number, flags.
pub(super) const OURS: usize = PREFIX - ETHERNET;
/// Position of the format number.
pub(super) const FORMAT_AT: usize = 16;
/// Value of the format number.
pub(super) const FORMAT: u8 = 1;
/// Position of the flags.
pub(super) const FLAGS_AT: usize = 17;
/// The flag that wakes a sleeping receiver: set on the last frame of a send, and on every 64th before it.
pub(super) const WAKE: u8 = 1;
/// Position of the connection's number: bytes 4..8 of the head.
pub(super) const NUMBER_AT: usize = PREFIX + 4;

/// A frame of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlastFrame<'a> {
    pub(super) to: Mac,
    pub(super) from: Mac,
    /// Head and payload, without the padding of a short frame.
    pub(super) packet: &'a [u8],
}

impl<'a> BlastFrame<'a> {
    /// Reads the frame in these bytes; `None` when it is too short, has another ethertype or format number, or is shorter than it says.
    pub(super) fn read(bytes: &'a [u8], ethertype: u16) -> Option<Self> {
        let (prefix, rest) = bytes.split_first_chunk::<PREFIX>()?;
        let [
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            i,
            j,
            k,
            l,
            high,
            low,
            length,
            more,
            form,
            _,
        ] = *prefix;
        if u16::from_be_bytes([high, low]) != ethertype || form != FORMAT {
            return None;
        }
        let packet = rest.get(..usize::from(u16::from_le_bytes([length, more])))?;
        Some(Self {
            to: Mac([a, b, c, d, e, f]),
            from: Mac([g, h, i, j, k, l]),
            packet,
        })
    }

    /// The number of the connection, where the packet is long enough to have one.
    pub(super) fn number(&self) -> Option<u32> {
        self.packet
            .get(4..8)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_le_bytes)
    }
}

/// The kind of packet and the number of the connection in a head.
pub(super) fn kind_and_number(head: &[u8; LONGEST_HEAD]) -> (u8, u32) {
    let [kind, _, _, _, a, b, c, d, ..] = *head;
    (kind, u32::from_le_bytes([a, b, c, d]))
}

/// Writes the prefix of a packet of `length` bytes.
pub(super) fn write(
    prefix: &mut [u8; PREFIX],
    to: Mac,
    from: Mac,
    ethertype: u16,
    length: u16,
    flags: u8,
) {
    prefix[..6].copy_from_slice(&to.0);
    prefix[6..12].copy_from_slice(&from.0);
    prefix[12..14].copy_from_slice(&ethertype.to_be_bytes());
    prefix[14..16].copy_from_slice(&length.to_le_bytes());
    prefix[FORMAT_AT] = FORMAT;
    prefix[FLAGS_AT] = flags;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(packet: &[u8], fill: usize) -> Vec<u8> {
        let mut prefix = [0; PREFIX];
        write(
            &mut prefix,
            Mac([1; 6]),
            Mac([2; 6]),
            0x88B5,
            packet.len() as u16,
            WAKE,
        );
        [&prefix[..], packet, &vec![0; fill]].concat()
    }

    proptest! {
        #[test]
        fn a_frame_is_read_without_its_padding(packet: Vec<u8>, fill in 0_usize..60) {
            let bytes = frame(&packet, fill);
            let read = BlastFrame::read(&bytes, 0x88B5).unwrap();
            prop_assert_eq!(read, BlastFrame { to: Mac([1; 6]), from: Mac([2; 6]), packet: &packet });
            prop_assert_eq!(read.number().is_some(), packet.len() >= 8);
        }

        #[test]
        fn any_bytes_are_read_or_not(bytes in prop::collection::vec(any::<u8>(), 0..64), ethertype: u16) {
            if let Some(frame) = BlastFrame::read(&bytes, ethertype) {
                prop_assert!(PREFIX + frame.packet.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn foreign_and_inconsistent_frames_are_ignored() {
        let whole = frame(&[7; 40], 2);
        assert!(BlastFrame::read(&whole, 0x88B6).is_none());
        assert!(BlastFrame::read(&whole[..PREFIX + 39], 0x88B5).is_none());
        assert!(BlastFrame::read(&whole[..PREFIX - 1], 0x88B5).is_none());
        for (at, byte) in [(FORMAT_AT, 2), (14, 43), (15, 1), (12, 0x08)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert!(BlastFrame::read(&other, 0x88B5).is_none(), "byte {at}");
        }
    }
}
