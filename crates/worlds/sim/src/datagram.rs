//! Packets of the simulated world: a real IPv4 header, the headers of the stacks, and the data that they carry, as far
//! as anybody reads it.
//!
//! The bytes of data units are counted and not stored, since nobody reads them, unless the stack encrypts them.
//! Checksums are computed only when a capture takes the bytes. Only encrypted packets use the heap.

use bytes::BytesMut;
use stackline_net::PacketPayload;
use stackline_net::packet::{NodeIndex, host_address, host_address_v6};
use stackline_proto::papers::imp::ImpDeliveryFailure;
use stackline_proto::papers::imp::packet::FULL_BITS;
use stackline_proto::papers::ncp;
use stackline_proto::tcp::segment::{LARGEST_HEADERS, SegmentAddresses};
use stackline_proto::tcp::{Codepoint, TcpSegment};

/// The most bytes of headers of one packet: IPv4 without options, and TCP with timestamps and one range of selective
/// acknowledgement (or all options of a SYN).
pub(crate) const HEADERS: usize = 20 + 20 + 12 + 12;
/// Protocol numbers of IPv4.
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP: u8 = 1;

/// A simulated packet.
#[derive(Clone, Debug)]
pub struct SimDatagram {
    /// The pair that it belongs to.
    pub(crate) pair: u32,
    /// The number of the connection among the pair's.
    pub(crate) connection: u32,
    /// The stream offset of the first byte of data; the id of the data unit where packets are datagrams; [`NOWHERE`]
    /// without either.
    place: u64,
    /// The number of data bytes.
    bytes: u32,
    /// The code point of differentiated services in its IP header.
    dscp: u8,
    what: SimDatagramContent,
}

/// The `place` of a packet that carries nothing of a stream.
const NOWHERE: u64 = u64::MAX;
/// The `place` of an encrypted packet of a connection: which bytes of its streams it carries, only its ends know.
const SEALED: u64 = u64::MAX - 1;

/// Data of an application that a packet carries, for traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedData {
    /// The pair, numbered over all parts of the run.
    pub pair: u32,
    /// The id of the data unit, where a packet is one.
    pub unit: Option<i64>,
    /// The stream offset of its first byte, where there is a stream.
    pub offset: Option<u64>,
    /// The number of data bytes, 0 in an acknowledgement; `None` in an encrypted packet.
    pub bytes: Option<u64>,
}

/// The content of a packet.
#[derive(Clone, Debug)]
enum SimDatagramContent {
    /// Headers as they are on a wire, and what follows.
    Headed {
        header: [u8; HEADERS],
        length: u8,
        body: SimDatagramBody,
    },
    /// A TCP segment by its fields, with the hosts it goes from and to, and the version of IP.
    Segment {
        nodes: [NodeIndex; 2],
        is_v6: bool,
        segment: TcpSegment,
    },
}

/// What follows the headers.
#[derive(Clone, Debug)]
pub(crate) enum SimDatagramBody {
    /// This many bytes that nobody reads.
    Zeros(u32),
    /// A datagram of `bytes` bytes that begins with this number.
    Unit { number: u64, bytes: u32 },
    /// Bytes that somebody reads.
    Bytes(BytesMut),
    /// A control datagram.
    Control([u8; 25]),
    /// A part of an IP datagram that was too large for the path.
    Fragment {
        whole: ReassembledSimDatagram,
        index: u16,
        count: u16,
        bytes: u32,
    },
    /// An ICMP message from a host that nobody listens there, with the first 28 bytes of the packet.
    Refused,
    /// A message between hosts of IMPs.
    Message(ncp::NcpMessage),
    /// The answer of the IMPs to a message: its link, and the verdict.
    Answer(u16, ImpDeliveryVerdict),
}

/// What has become of a message between hosts of IMPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImpDeliveryVerdict {
    /// It was delivered (RFNM).
    Delivered,
    /// It was not delivered.
    Failed(ImpDeliveryFailure),
}

/// The whole datagram of which a fragment is a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReassembledSimDatagram {
    /// Its identification in the IP header.
    pub(crate) identification: u16,
    pub(crate) number: u64,
    pub(crate) bytes: u32,
}

impl SimDatagram {
    pub(crate) fn new(pair: u32, connection: u32, header: &[u8], body: SimDatagramBody) -> Self {
        let mut kept = [0; HEADERS];
        debug_assert!(header.len() <= HEADERS, "no stack sends longer headers");
        let length = header.len().min(HEADERS);
        kept[..length].copy_from_slice(&header[..length]);
        Self {
            pair,
            connection,
            place: NOWHERE,
            bytes: 0,
            dscp: 0,
            what: SimDatagramContent::Headed {
                header: kept,
                length: length as u8,
                body,
            },
        }
    }

    pub(crate) const fn of_segment(
        pair: u32,
        connection: u32,
        nodes: [NodeIndex; 2],
        segment: TcpSegment,
    ) -> Self {
        Self {
            pair,
            connection,
            place: NOWHERE,
            bytes: 0,
            dscp: 0,
            what: SimDatagramContent::Segment {
                nodes,
                is_v6: false,
                segment,
            },
        }
    }

    /// The same packet over that version of IP, if it is a segment in fields.
    pub(crate) const fn over(mut self, over_ipv6: bool) -> Self {
        if let SimDatagramContent::Segment { is_v6, .. } = &mut self.what {
            *is_v6 = over_ipv6;
        }
        self
    }

    /// Adds the position of the data: `bytes` bytes from that stream offset on, or of the data unit with that id.
    pub(crate) const fn at(mut self, place: u64, bytes: u32) -> Self {
        (self.place, self.bytes) = (place, bytes);
        self
    }

    /// Says that it is an encrypted packet of its pair's connection.
    pub(crate) const fn sealed(self) -> Self {
        self.at(SEALED, 0)
    }

    /// A message between hosts of IMPs.
    pub(crate) fn of_message(
        pair: u32,
        connection: u32,
        header: &[u8],
        message: ncp::NcpMessage,
    ) -> Self {
        let new = Self::new(pair, connection, header, SimDatagramBody::Message(message));
        if message.bytes > 0 {
            new.at(message.place, message.bytes)
        } else {
            new
        }
    }

    /// The answer to the sender of this message on what has become of it.
    pub(crate) fn verdict(&self, verdict: ImpDeliveryVerdict) -> Self {
        let link = if let SimDatagramBody::Message(message) = self.body() {
            message.link
        } else {
            0
        };
        Self::new(
            self.pair,
            self.connection,
            self.header(),
            SimDatagramBody::Answer(link, verdict),
        )
    }

    /// One of the packets that carry a message: part number `part` with `bytes` bytes. The first part begins with a
    /// header of `header` bytes.
    pub(crate) fn part(mut self, part: u8, bytes: u32, header: u32) -> Self {
        let before = u32::from(part) * (FULL_BITS / 8);
        if self.place != NOWHERE {
            let begins = before.saturating_sub(header);
            let ends = (before + bytes).saturating_sub(header).min(self.bytes);
            self.place += u64::from(begins);
            self.bytes = ends.saturating_sub(begins);
        }
        self
    }

    /// The data that the packet carries, as far as its stack reports it.
    #[must_use]
    pub fn data(&self) -> Option<CarriedData> {
        let place = (self.place != NOWHERE).then_some(self.place)?;
        if place == SEALED {
            return Some(CarriedData {
                pair: self.pair,
                unit: None,
                offset: None,
                bytes: None,
            });
        }
        let numbered = matches!(
            &self.what,
            SimDatagramContent::Headed {
                body: SimDatagramBody::Unit { .. } | SimDatagramBody::Fragment { .. },
                ..
            }
        );
        let (unit, offset) = if numbered {
            (Some(place as i64), None)
        } else {
            (None, Some(place))
        };
        Some(CarriedData {
            pair: self.pair,
            unit,
            offset,
            bytes: Some(u64::from(self.bytes)),
        })
    }

    /// The TCP segment, if the packet is one in fields.
    pub(crate) const fn segment(&self) -> Option<&TcpSegment> {
        match &self.what {
            SimDatagramContent::Segment { segment, .. } => Some(segment),
            SimDatagramContent::Headed { .. } => None,
        }
    }

    /// The headers; empty for a segment in fields.
    pub(crate) fn header(&self) -> &[u8] {
        match &self.what {
            SimDatagramContent::Headed { header, length, .. } => &header[..usize::from(*length)],
            SimDatagramContent::Segment { .. } => &[],
        }
    }

    /// What follows the headers.
    pub(crate) const fn body(&self) -> &SimDatagramBody {
        match &self.what {
            SimDatagramContent::Headed { body, .. } => body,
            SimDatagramContent::Segment { .. } => &SimDatagramBody::Zeros(0),
        }
    }

    /// The number of bytes behind the headers.
    pub(crate) fn carried(&self) -> usize {
        match self.body() {
            SimDatagramBody::Zeros(bytes)
            | SimDatagramBody::Unit { bytes, .. }
            | SimDatagramBody::Fragment { bytes, .. } => *bytes as usize,
            SimDatagramBody::Bytes(bytes) => bytes.len(),
            SimDatagramBody::Control(_) => 25,
            SimDatagramBody::Refused
                if self.header().first().is_some_and(|first| first >> 4 == 6) =>
            {
                48
            }
            SimDatagramBody::Refused => 28,
            SimDatagramBody::Message(message) => (message.bits() / 8) as usize,
            SimDatagramBody::Answer(..) => 0,
        }
    }

    /// Takes the stored bytes out of a packet that has arrived, if it has any.
    pub(crate) fn take_bytes(&mut self) -> Option<BytesMut> {
        match &mut self.what {
            SimDatagramContent::Headed {
                body: SimDatagramBody::Bytes(bytes),
                ..
            } => Some(std::mem::take(bytes)),
            _ => None,
        }
    }

    /// The bytes of the whole packet as on a wire, from its IPv4 header on, with checksums: for captures.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        if let SimDatagramContent::Segment {
            nodes,
            is_v6,
            segment,
        } = &self.what
        {
            let addresses = if *is_v6 {
                SegmentAddresses::V6(nodes.map(host_address_v6))
            } else {
                SegmentAddresses::V4(nodes.map(host_address))
            };
            let mut headers = [0; LARGEST_HEADERS];
            let length = segment.write_headers(addresses, &mut headers);
            let mut bytes = headers[..length].to_vec();
            bytes.resize(length + segment.length as usize, 0);
            self.fill_service(&mut bytes);
            return bytes;
        }
        let mut bytes = self.header().to_vec();
        let headers = bytes.len();
        bytes.resize(headers + self.carried(), 0);
        let body = &mut bytes[headers..];
        match self.body() {
            SimDatagramBody::Zeros(_)
            | SimDatagramBody::Refused
            | SimDatagramBody::Message(_)
            | SimDatagramBody::Answer(..) => {}
            SimDatagramBody::Unit { number, .. } => put_number(body, *number),
            SimDatagramBody::Fragment { index, whole, .. } if *index == 0 => {
                put_number(body, whole.number)
            }
            SimDatagramBody::Fragment { .. } => {}
            SimDatagramBody::Bytes(bytes) => body.copy_from_slice(bytes),
            SimDatagramBody::Control(control) => body.copy_from_slice(control),
        }
        self.fill_service(&mut bytes);
        self.fill_checksums(&mut bytes);
        bytes
    }

    /// Writes the code point of differentiated services and the checksum of an IPv4 header.
    fn fill_service(&self, bytes: &mut [u8]) {
        if bytes[0] >> 4 == 6 {
            // The traffic class lies across two bytes.
            bytes[0] |= self.dscp >> 2;
            bytes[1] |= self.dscp << 6;
            return;
        }
        bytes[1] |= self.dscp << 2;
        bytes[10..12].fill(0);
        let checksum = finish(sum(0, &bytes[..20]));
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Writes the checksum of a transport header.
    fn fill_checksums(&self, bytes: &mut [u8]) {
        if bytes[0] >> 4 == 6 {
            return self.fill_checksum_v6(bytes);
        }
        if !matches!(self.body(), SimDatagramBody::Fragment { .. }) && bytes[9] == TCP {
            let (ip, segment) = bytes.split_at_mut(20);
            let length = segment.len() as u32;
            let pseudo = sum(u32::from(TCP) + length, &ip[12..20]);
            let checksum = finish(sum(pseudo, segment));
            segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

impl SimDatagram {
    /// The checksum of UDP or ICMP over IPv6, which neither may leave out (RFC 8200, section 8.1).
    fn fill_checksum_v6(&self, bytes: &mut [u8]) {
        let (ip, message) = bytes.split_at_mut(IPV6_HEADER);
        let at = match ip[6] {
            UDP => 6,
            ICMPV6 => 2,
            // A fragment's checksum is that of the whole datagram, which is not here.
            _ => return,
        };
        let pseudo = sum(u32::from(ip[6]) + message.len() as u32, &ip[8..IPV6_HEADER]);
        let checksum = match finish(sum(pseudo, message)) {
            0 => 0xffff,
            checksum => checksum,
        };
        message[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Bytes of an IPv6 header without extension headers.
pub(crate) const IPV6_HEADER: usize = 40;
/// Bytes of the extension header of a fragment (RFC 8200, section 4.5).
pub(crate) const FRAGMENT_HEADER: usize = 8;
/// Number of that extension header.
pub(crate) const FRAGMENT: u8 = 44;
/// Protocol number of ICMP for IPv6.
pub(crate) const ICMPV6: u8 = 58;

/// An IPv6 header (RFC 8200, section 3) before `length` bytes of that protocol.
pub(crate) fn ipv6_header(
    from: NodeIndex,
    to: NodeIndex,
    protocol: u8,
    length: usize,
) -> [u8; IPV6_HEADER] {
    let mut header = [0; IPV6_HEADER];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    (header[6], header[7]) = (protocol, 64);
    header[8..24].copy_from_slice(&host_address_v6(from));
    header[24..40].copy_from_slice(&host_address_v6(to));
    header
}

fn put_number(body: &mut [u8], number: u64) {
    let n = body.len().min(8);
    body[..n].copy_from_slice(&number.to_le_bytes()[..n]);
}

/// The Internet checksum (RFC 1071), before it is folded.
fn sum(start: u32, bytes: &[u8]) -> u32 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    words.fold(start, u32::wrapping_add)
}

/// Folds the carries of the Internet checksum and inverts it.
const fn finish(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An IPv4 header without options; the checksum is left to [`SimDatagram::bytes`].
pub(crate) fn ipv4_header(
    from: NodeIndex,
    to: NodeIndex,
    protocol: u8,
    length: usize,
    identification: u16,
    fragment: u16,
) -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[6..8].copy_from_slice(&fragment.to_be_bytes());
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&host_address(from));
    header[16..20].copy_from_slice(&host_address(to));
    header
}

impl PacketPayload for SimDatagram {
    fn split(&mut self, _: u32) -> Self {
        // Every simulated packet has one segment, so there is nothing to cut.
        self.clone()
    }

    fn mark(&mut self) {
        // Both bits of the ECN field (RFC 3168): congestion experienced.
        match &mut self.what {
            SimDatagramContent::Headed { header, .. } if header[0] >> 4 == 6 => {
                header[1] |= 0b11 << 4
            }
            SimDatagramContent::Headed { header, .. } => header[1] |= 0b11,
            SimDatagramContent::Segment { segment, .. } => segment.codepoint = Codepoint::Marked,
        }
    }

    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }

    fn again(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_header_has_a_right_checksum() {
        let header = ipv4_header(NodeIndex(0), NodeIndex(1), UDP, 20 + 100, 7, 0);
        let bytes = SimDatagram::new(0, 0, &header, SimDatagramBody::Zeros(100)).bytes();
        assert_eq!(bytes.len(), 120);
        assert_eq!(finish(sum(0, &bytes[..20])), 0);
        assert_eq!(&bytes[12..20], &[10, 71, 0, 1, 10, 71, 0, 2]);
    }

    #[test]
    fn a_captured_datagram_of_ipv6_has_a_right_checksum() {
        let mut header = ipv6_header(NodeIndex(0), NodeIndex(1), UDP, 8 + 100).to_vec();
        header.extend([0x9c, 0x40, 0x0f, 0xa0, 0, 108, 0, 0]);
        let mut datagram = SimDatagram::new(0, 0, &header, SimDatagramBody::Zeros(100));
        datagram.mark();
        let bytes = datagram.bytes();
        assert_eq!((bytes.len(), bytes[1] >> 4), (148, 0b11));
        let pseudo = sum(u32::from(UDP) + 108, &bytes[8..40]);
        assert_eq!(finish(sum(pseudo, &bytes[40..])), 0);
    }

    #[test]
    fn a_mark_is_in_the_header() {
        let mut datagram = SimDatagram::new(
            0,
            0,
            &ipv4_header(NodeIndex(0), NodeIndex(1), UDP, 20, 0, 0),
            SimDatagramBody::Zeros(0),
        );
        datagram.mark();
        assert_eq!(datagram.bytes()[1], 0b11);
        datagram.set_dscp(46);
        let bytes = datagram.bytes();
        assert_eq!(bytes[1], 46 << 2 | 0b11);
        assert_eq!(finish(sum(0, &bytes[..20])), 0);
    }
}
