//! A TCP segment: the fields of its header and the number of bytes that it carries. Its bytes on the wire are made only
//! for captures.

use super::ecn::Codepoint;
use super::sequence_numbers::TcpSequenceOrigin;

/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER: u32 = 20;
/// Bytes of a TCP header without options.
pub const TCP_HEADER: u32 = 20;
/// Bytes of the timestamps option with its padding.
pub const TIMESTAMPS: u32 = 12;
/// The most bytes of IP and TCP headers of one segment.
// 40 of IPv6 and the 60 that TCP's data offset (4 bits, words of 4 bytes) can describe.
pub const LARGEST_HEADERS: usize = 100;
/// Bytes by which an IPv6 header is longer than one of IPv4 without options.
pub const IPV6_MORE: u32 = 20;
/// The most ranges of a SACK option that fit beside the timestamps option.
// 40 bytes of options less 12 of timestamps hold 4 + 3 x 8.
pub const MOST_BLOCKS: usize = 3;
/// TCP's protocol number in the IPv4 header.
const PROTOCOL: u8 = 6;

/// Flags of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data follows.
    pub const FIN: Self = Self(0x01);
    /// The sender opens a connection.
    pub const SYN: Self = Self(0x02);
    /// The sender aborts the connection.
    pub const RST: Self = Self(0x04);
    /// The receiver need not wait for more.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// A packet arrived with a congestion mark (RFC 3168); in a SYN: the sender supports ECN.
    pub const ECE: Self = Self(0x40);
    /// The sender has reduced its congestion window (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all of those flags are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These flags and `flags` together.
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

/// The timestamps option (RFC 7323), in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The value of the peer that it echoes.
    pub echo: u32,
}

/// The options of a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syn {
    /// Largest segment it accepts, without options; 0 when absent.
    pub mss: u16,
    /// The number of bits by which later windows are shifted; `None` without window scaling.
    pub window_scale: Option<u8>,
    /// Whether the sender supports selective acknowledgements.
    pub sack_permitted: bool,
}

/// The addresses of a segment's packet: the sender's, the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentAddresses {
    /// Over IPv4.
    V4([[u8; 4]; 2]),
    /// Over IPv6.
    V6([[u8; 16]; 2]),
}

/// A TCP segment whose data is only a number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSegment {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// The sequence number of its first byte, SYN or FIN.
    pub sequence: u32,
    /// The sequence number of the next byte expected; valid with [`TcpFlags::ACK`].
    pub acknowledged: u32,
    /// Bytes of data.
    pub length: u32,
    /// The window as it is on the wire, before it is scaled.
    pub window: u16,
    /// Its flags.
    pub flags: TcpFlags,
    /// The ECN codepoint of its packet: whether queues may mark it or have marked it.
    pub codepoint: Codepoint,
    /// The number of ranges in `sack`.
    pub(super) blocks: u8,
    /// The options of a SYN; meaningless in other segments.
    pub syn: Syn,
    /// Ranges of selective acknowledgement: first sequence number, and the one after the last.
    pub(super) sack: [(u32, u32); MOST_BLOCKS],
    /// Its timestamps.
    pub timestamps: Option<Timestamps>,
}

impl TcpSegment {
    /// Ranges of selective acknowledgement: first number, number behind the last.
    #[must_use]
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.blocks).min(MOST_BLOCKS)]
    }

    /// Adds a range of selective acknowledgement; false when there is no room for another.
    pub fn add_block(&mut self, start: u32, end: u32) -> bool {
        let Some(place) = self.sack.get_mut(usize::from(self.blocks)) else {
            return false;
        };
        *place = (start, end);
        self.blocks += 1;
        true
    }

    /// Whether the first SACK range reports a duplicate (RFC 2883): it lies below the acknowledgement number, or inside
    /// the second range.
    #[must_use]
    pub fn reports_duplicate(&self) -> bool {
        // Sequence numbers are compared modulo 2^32 (RFC 9293, section 3.4).
        let before = |a: u32, b: u32| (b.wrapping_sub(a) as i32) > 0;
        let within = |(from, to): (u32, u32), (start, end): (u32, u32)| {
            !before(from, start) && !before(end, to)
        };
        match self.sack() {
            [first, ..] if before(first.0, self.acknowledged) => true,
            [first, second, ..] => within(*first, *second),
            _ => false,
        }
    }

    /// Bytes of the TCP header with its options.
    #[must_use]
    pub const fn tcp_header(&self) -> u32 {
        let mut bytes = TCP_HEADER;
        if self.flags.has(TcpFlags::SYN) {
            bytes += if self.syn.mss > 0 { 4 } else { 0 };
            bytes += if self.syn.window_scale.is_some() {
                4
            } else {
                0
            };
            // Without timestamps it is padded; with them it uses their padding.
            bytes += if self.syn.sack_permitted && self.timestamps.is_none() {
                4
            } else {
                0
            };
        }
        bytes += if self.timestamps.is_some() {
            TIMESTAMPS
        } else {
            0
        };
        bytes
            + if self.blocks > 0 {
                4 + 8 * self.blocks as u32
            } else {
                0
            }
    }

    /// Bytes of the IPv4 and TCP headers.
    #[must_use]
    pub const fn headers(&self) -> u32 {
        IPV4_HEADER + self.tcp_header()
    }

    /// Bytes of the whole packet, from its IPv4 header on.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.headers() + self.length
    }

    /// The number of sequence numbers that it takes: its data, SYN and FIN.
    #[must_use]
    pub const fn span(&self) -> u32 {
        self.length + self.flags.has(TcpFlags::SYN) as u32 + self.flags.has(TcpFlags::FIN) as u32
    }

    /// Writes the headers as on the wire, with correct checksums for data that is all zeros. Returns their length in
    /// bytes.
    pub fn write_headers(
        &self,
        addresses: SegmentAddresses,
        into: &mut [u8; LARGEST_HEADERS],
    ) -> usize {
        *into = [0; LARGEST_HEADERS];
        let length = match addresses {
            SegmentAddresses::V4(addresses) => self.write_v4(addresses, into),
            SegmentAddresses::V6(addresses) => self.write_v6(addresses, into),
        };
        let (ip, tcp) = into.split_at_mut(length);
        self.write_tcp(tcp);
        let addresses = if length == IPV4_HEADER as usize {
            &ip[12..]
        } else {
            &ip[8..]
        };
        // The pseudo header: addresses, protocol, length. Data of zeros adds nothing to the sum.
        let pseudo = sum(
            u32::from(PROTOCOL) + self.tcp_header() + self.length,
            addresses,
        );
        let checksum = finish(sum(pseudo, tcp));
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        length + self.tcp_header() as usize
    }

    /// Writes the IPv4 header; returns its length.
    fn write_v4(&self, [from, to]: [[u8; 4]; 2], into: &mut [u8]) -> usize {
        let ip = &mut into[..IPV4_HEADER as usize];
        // Version 4, a header of 5 words.
        ip[0] = 0x45;
        ip[1] = self.codepoint.bits();
        ip[2..4].copy_from_slice(&(self.bytes() as u16).to_be_bytes());
        // Don't Fragment.
        ip[6] = 0x40;
        ip[8] = 64;
        ip[9] = PROTOCOL;
        ip[12..16].copy_from_slice(&from);
        ip[16..20].copy_from_slice(&to);
        let checksum = finish(sum(0, ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip.len()
    }

    /// Writes the IPv6 header (RFC 8200, section 3); returns its length.
    fn write_v6(&self, [from, to]: [[u8; 16]; 2], into: &mut [u8]) -> usize {
        let ip = &mut into[..(IPV4_HEADER + IPV6_MORE) as usize];
        ip[0] = 0x60;
        ip[1] = self.codepoint.bits() << 4;
        let behind = (self.tcp_header() + self.length) as u16;
        ip[4..6].copy_from_slice(&behind.to_be_bytes());
        (ip[6], ip[7]) = (PROTOCOL, 64);
        ip[8..24].copy_from_slice(&from);
        ip[24..40].copy_from_slice(&to);
        ip.len()
    }

    fn write_tcp(&self, tcp: &mut [u8]) {
        tcp[0..2].copy_from_slice(&self.source.to_be_bytes());
        tcp[2..4].copy_from_slice(&self.destination.to_be_bytes());
        tcp[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.acknowledged.to_be_bytes());
        tcp[12] = (self.tcp_header() as u8 / 4) << 4;
        tcp[13] = self.flags.0;
        tcp[14..16].copy_from_slice(&self.window.to_be_bytes());
        let mut at = TCP_HEADER as usize;
        let mut put = |bytes: &[u8]| {
            tcp[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let syn = self.flags.has(TcpFlags::SYN);
        // Kinds: 1 padding, 2 MSS, 3 window scale, 4 SACK permitted, 5 SACK, 8 timestamps; each
        // option is padded to words of 4 bytes.
        if syn && self.syn.mss > 0 {
            put(&[2, 4]);
            put(&self.syn.mss.to_be_bytes());
        }
        let sack_permitted = syn && self.syn.sack_permitted;
        if let Some(stamps) = &self.timestamps {
            put(if sack_permitted {
                &[4, 2, 8, 10]
            } else {
                &[1, 1, 8, 10]
            });
            put(&stamps.value.to_be_bytes());
            put(&stamps.echo.to_be_bytes());
        } else if sack_permitted {
            put(&[1, 1, 4, 2]);
        }
        if let (true, Some(scale)) = (syn, self.syn.window_scale) {
            put(&[1, 3, 3, scale]);
        }
        if !self.sack().is_empty() {
            put(&[1, 1, 5, 2 + 8 * self.blocks]);
        }
        for (start, end) in self.sack() {
            put(&start.to_be_bytes());
            put(&end.to_be_bytes());
        }
    }

    /// The reset with which a host answers a segment for which it has no connection (RFC 9293, 3.10.7.1); `None` if the
    /// segment is a reset.
    #[must_use]
    pub fn refusal(&self) -> Option<Self> {
        if self.flags.has(TcpFlags::RST) {
            return None;
        }
        let next = TcpSequenceOrigin(self.sequence).wire(u64::from(self.span()));
        let bare = Self {
            source: self.destination,
            destination: self.source,
            ..Self::default()
        };
        Some(if self.flags.has(TcpFlags::ACK) {
            Self {
                sequence: self.acknowledged,
                flags: TcpFlags::RST,
                ..bare
            }
        } else {
            Self {
                acknowledged: next,
                flags: TcpFlags::RST.with(TcpFlags::ACK),
                ..bare
            }
        })
    }
}

/// The sum of the Internet checksum (RFC 1071) over 16-bit words, before the carries are folded.
fn sum(start: u32, bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).fold(start, |sum, pair| {
        sum + (u32::from(pair[0]) << 8 | u32::from(pair[1]))
    })
}

/// Folds the carries of the Internet checksum and inverts it.
const fn finish(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(segment: &TcpSegment) -> alloc::vec::Vec<u8> {
        let mut bytes = [0; LARGEST_HEADERS];
        let addresses = SegmentAddresses::V4([[10, 0, 0, 1], [10, 0, 0, 2]]);
        let n = segment.write_headers(addresses, &mut bytes);
        bytes[..n].to_vec()
    }

    #[test]
    fn a_syn_has_the_forty_bytes_of_linux_behind_ip() {
        let syn = Syn {
            mss: 1460,
            window_scale: Some(7),
            sack_permitted: true,
        };
        let timestamps = Some(Timestamps { value: 1, echo: 0 });
        let segment = TcpSegment {
            flags: TcpFlags::SYN,
            syn,
            timestamps,
            ..TcpSegment::default()
        };
        let bytes = written(&segment);
        assert_eq!((bytes.len(), segment.bytes()), (60, 60));
        assert_eq!(
            &bytes[40..],
            &[
                2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7
            ]
        );
    }

    #[test]
    fn checksums_are_right_and_sizes_count_every_option() {
        let timestamps = Some(Timestamps { value: 7, echo: 9 });
        let mut segment = TcpSegment {
            source: 1,
            destination: 2,
            length: 1448,
            timestamps,
            ..TcpSegment::default()
        };
        assert_eq!(segment.bytes(), 1500);
        segment.length = 0;
        assert!(
            (0..3).all(|n| segment.add_block(n * 100, n * 100 + 50)) && !segment.add_block(1, 2)
        );
        let bytes = written(&segment);
        assert_eq!(bytes.len(), 80);
        assert_eq!(finish(sum(0, &bytes[..20])), 0);
        let pseudo = sum(6 + 60, &bytes[12..20]);
        assert_eq!(finish(sum(pseudo, &bytes[20..])), 0);
    }

    #[test]
    fn over_ipv6_the_headers_have_twenty_bytes_more() {
        let segment = TcpSegment {
            source: 1,
            destination: 2,
            length: 100,
            codepoint: Codepoint::Marked,
            ..TcpSegment::default()
        };
        let mut bytes = [0; LARGEST_HEADERS];
        let addresses = SegmentAddresses::V6([[0xfd; 16], [0x71; 16]]);
        assert_eq!(segment.write_headers(addresses, &mut bytes), 60);
        assert_eq!(bytes[..8], [0x60, 0x30, 0, 0, 0, 120, 6, 64]);
        let pseudo = sum(6 + 120, &bytes[8..40]);
        assert_eq!(finish(sum(pseudo, &bytes[40..60])), 0);
    }

    #[test]
    fn a_segment_is_small() {
        assert!(size_of::<TcpSegment>() <= 72, "{}", size_of::<TcpSegment>());
    }
}
