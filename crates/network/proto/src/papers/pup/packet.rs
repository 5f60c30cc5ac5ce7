//! The format of a PUP packet: header, data and checksum.
//!
//! ```text
//! length 2 (without the byte of padding) | hops 1 | kind 1 | id 4 | to: network 1, host 1, socket 4 | from: the same | data | checksum 2
//! ```

use alloc::vec::Vec;

/// Bytes before the data.
pub const HEADER: usize = 20;
/// Bytes after the data.
pub const CHECKSUM: usize = 2;
/// The most bytes of data in a packet.
pub const MOST_DATA: usize = 532;
/// The value in the checksum's place that means there is none.
const NONE: u16 = 0xffff;

/// Where a packet comes from or goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PupPort {
    /// The network; 0 is this one.
    pub network: u8,
    /// The host; 0 is any.
    pub host: u8,
    /// The socket.
    pub socket: u32,
}

impl PupPort {
    /// Bytes of a port in a header.
    pub const BYTES: usize = 6;

    /// The port as in headers and in the data of a rendezvous.
    #[must_use]
    pub const fn bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.socket.to_be_bytes();
        [self.network, self.host, a, b, c, d]
    }

    /// Reads a port from the first six bytes; `None` if there are fewer.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [network, host, a, b, c, d] = *bytes.first_chunk()?;
        Some(Self {
            network,
            host,
            socket: u32::from_be_bytes([a, b, c, d]),
        })
    }
}

/// The type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(
    missing_docs,
    reason = "names from the memo; the module's diagram shows their uses"
)]
pub enum PupPacketKind {
    EchoMe = 1,
    Echo = 2,
    Error = 4,
    Rfc = 8,
    Abort = 9,
    End = 10,
    EndReply = 11,
    Data = 16,
    AData = 17,
    Ack = 18,
    Mark = 19,
    Interrupt = 20,
    InterruptReply = 21,
    AMark = 22,
}

impl PupPacketKind {
    /// All types.
    const ALL: [Self; 14] = [
        Self::EchoMe,
        Self::Echo,
        Self::Error,
        Self::Rfc,
        Self::Abort,
        Self::End,
        Self::EndReply,
        Self::Data,
        Self::AData,
        Self::Ack,
        Self::Mark,
        Self::Interrupt,
        Self::InterruptReply,
        Self::AMark,
    ];
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PupPacket<'p> {
    /// Its type.
    pub kind: PupPacketKind,
    /// Its id; in data packets, the number of the first byte.
    pub id: u32,
    /// Where it goes.
    pub to: PupPort,
    /// Where it comes from.
    pub from: PupPort,
    /// Its data, at most [`MOST_DATA`] bytes.
    pub data: &'p [u8],
}

/// Why bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The length is wrong: shorter than a header, longer than allowed, or more bytes than there are.
    Length,
    /// The checksum is wrong.
    Checksum,
    /// The type is unknown.
    Kind,
}

/// The PUP checksum: 16-bit words are added in ones' complement, and the sum is rotated left by one bit after each.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u16;
    for word in bytes.chunks_exact(2) {
        let (added, carry) = sum.overflowing_add(u16::from_be_bytes([word[0], word[1]]));
        sum = added.wrapping_add(u16::from(carry)).rotate_left(1);
    }
    // All ones mean "no checksum", and are another 0 in ones' complement.
    if sum == NONE { 0 } else { sum }
}

impl<'p> PupPacket<'p> {
    /// The bytes of the packet, with a checksum if `checked`. Data beyond [`MOST_DATA`] bytes is cut off.
    #[must_use]
    pub fn bytes(&self, checked: bool) -> Vec<u8> {
        let data = self.data.get(..MOST_DATA).unwrap_or(self.data);
        let length = HEADER + data.len() + CHECKSUM;
        let mut out = Vec::with_capacity(length + 1);
        out.extend((length as u16).to_be_bytes());
        out.extend([0, self.kind as u8]);
        out.extend(self.id.to_be_bytes());
        out.extend(self.to.bytes());
        out.extend(self.from.bytes());
        out.extend_from_slice(data);
        if data.len() % 2 == 1 {
            out.push(0);
        }
        let sum = if checked { checksum(&out) } else { NONE };
        out.extend(sum.to_be_bytes());
        out
    }

    /// Reads a packet from the bytes of a datagram, which may have others after it.
    ///
    /// # Errors
    /// When the bytes are not a packet.
    pub fn read(bytes: &'p [u8]) -> Result<Self, Bad> {
        let length = usize::from(u16::from_be_bytes(*bytes.first_chunk().ok_or(Bad::Length)?));
        let count = length
            .checked_sub(HEADER + CHECKSUM)
            .filter(|count| *count <= MOST_DATA)
            .ok_or(Bad::Length)?;
        let sum_at = HEADER + count + count % 2;
        let sum = bytes.get(sum_at..sum_at + CHECKSUM).ok_or(Bad::Length)?;
        let sum = u16::from_be_bytes([sum[0], sum[1]]);
        if sum != NONE && sum != checksum(&bytes[..sum_at]) {
            return Err(Bad::Checksum);
        }
        let kind = PupPacketKind::ALL
            .into_iter()
            .find(|kind| *kind as u8 == bytes[3])
            .ok_or(Bad::Kind)?;
        let id = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let to = PupPort::read(&bytes[8..]).ok_or(Bad::Length)?;
        let from = PupPort::read(&bytes[14..]).ok_or(Bad::Length)?;
        Ok(Self {
            kind,
            id,
            to,
            from,
            data: &bytes[HEADER..HEADER + count],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(data: &[u8]) -> PupPacket<'_> {
        let (to, from) = (
            PupPort {
                network: 1,
                host: 2,
                socket: 3,
            },
            PupPort {
                network: 4,
                host: 5,
                socket: 0x0607_0809,
            },
        );
        PupPacket {
            kind: PupPacketKind::AData,
            id: 0x0a0b_0c0d,
            to,
            from,
            data,
        }
    }

    #[test]
    fn a_packet_is_as_the_memo_draws_it() {
        let bytes = packet(b"abc").bytes(false);
        assert_eq!(bytes, b"\x00\x19\x00\x11\x0a\x0b\x0c\x0d\x01\x02\0\0\0\x03\x04\x05\x06\x07\x08\x09abc\0\xff\xff");
        // Words 1 and 2: 1 turned is 2, with 2 it is 4, turned 8. A carry comes in again below: 0x8000 turned is 1.
        assert_eq!(
            (
                checksum(&[0, 1, 0, 2]),
                checksum(&[0x80, 0]),
                checksum(&[0xff, 0xff])
            ),
            (8, 1, 0)
        );
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read_and_a_changed_bit_is_seen(data in prop::collection::vec(any::<u8>(), 0..533), at: usize, bit in 0..8_u8) {
            let mut bytes = packet(&data).bytes(true);
            prop_assert_eq!(PupPacket::read(&bytes), Ok(packet(&data)));
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let read = PupPacket::read(&bytes);
            // One bit of the checksum itself can make it one that says there is none; nothing else is believed.
            let unchecked = bytes[bytes.len() - 2..] == [0xff, 0xff];
            prop_assert!(read.is_err() || unchecked, "{read:?}");
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok(packet) = PupPacket::read(&bytes) {
                prop_assert!(packet.data.len() + HEADER + CHECKSUM <= bytes.len());
            }
        }
    }
}
