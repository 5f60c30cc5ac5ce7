//! From a captured packet of any link type to its TCP segment or UDP datagram.

use crate::encapsulation;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use pcap_parser::Linktype;
use std::net::{IpAddr, SocketAddr};

/// The link type of Linux cooked captures, version 2.
const LINUX_SLL2: Linktype = Linktype(276);

/// The header of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DissectedSegment {
    /// The sender's and the receiver's address.
    pub ends: (SocketAddr, SocketAddr),
    /// The sequence number of its first byte.
    pub sequence: u32,
    /// The number of data bytes, including those that the capture cut off.
    pub bytes: u64,
    /// Whether the SYN flag is set: the segment opens the stream.
    pub syn: bool,
    /// Whether the FIN flag is set: the segment ends the stream.
    pub fin: bool,
    /// Whether the RST flag is set: the segment aborts the connection.
    pub reset: bool,
    /// The acknowledgement number: the next byte that is expected of the other direction.
    pub acknowledged: Option<u32>,
    /// The highest right edge of the selective acknowledgements (RFC 2018) beyond the acknowledgement number.
    pub selectively_acknowledged: Option<u32>,
    /// The receive window as the header says it, without scaling.
    pub window: u16,
    /// By how many bits the sender's windows are scaled, if a SYN says it.
    pub window_scale: Option<u8>,
    /// The maximum segment size that the sender accepts, in bytes, if a SYN says it.
    pub largest_segment: Option<u16>,
    /// The time to live (or hop limit).
    pub ttl: u8,
    /// The length of the packet in bytes, from the IP header on.
    pub length: u64,
}

/// The header of a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DissectedDatagram {
    /// The sender's and the receiver's address.
    pub ends: (SocketAddr, SocketAddr),
    /// The number of data bytes, including those that the capture cut off.
    pub bytes: u64,
    /// The time to live (or hop limit).
    pub ttl: u8,
}

/// What a packet carries: the header, and the data bytes that were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketTransport<'p> {
    /// A TCP segment: part of a stream.
    Tcp(DissectedSegment, &'p [u8]),
    /// A UDP datagram: a message by itself.
    Udp(DissectedDatagram, &'p [u8]),
}

/// What an IP packet carries. `data` is what was captured from the IP header on; `length` is the packet's whole length in bytes.
#[must_use]
pub fn of_ip(data: &[u8], length: u64) -> Option<PacketTransport<'_>> {
    carried(&LaxSlicedPacket::from_ip(data).ok()?, data, length)
}

/// The TCP segment in a frame. `data` is what was captured of the frame; `length` is the frame's whole length in bytes.
pub(crate) fn of_packet(link: Linktype, data: &[u8], length: u64) -> Option<DissectedSegment> {
    match carried_by(link, data, length)? {
        PacketTransport::Tcp(segment, _) => Some(segment),
        PacketTransport::Udp(..) => None,
    }
}

/// Whether the capturing machine sent the packet, if the link header says it.
pub(crate) fn is_outgoing(link: Linktype, data: &[u8]) -> Option<bool> {
    /// `PACKET_OUTGOING` of packet(7).
    const OUTGOING: u8 = 4;
    let kind = match link {
        Linktype::LINUX_SLL => *data.get(1)?,
        LINUX_SLL2 => *data.get(10)?,
        _ => return None,
    };
    Some(kind == OUTGOING)
}

/// The bytes of a frame from the innermost IP header on.
pub(crate) fn ip_of(link: Linktype, data: &[u8]) -> Option<&[u8]> {
    data.get(encapsulation::find_ip(link, data).ok()?..)
}

/// Why a packet could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketReadError {
    /// The link type is not known.
    Link,
    /// The frame does not carry IP.
    NotIp,
    /// The packet is an IP fragment.
    Fragment,
    /// The packet carries neither TCP nor UDP.
    Protocol,
    /// The packet ends within its headers, or these are damaged.
    CutOff,
}

/// What a frame carries. `data` is what was captured of the frame; `length` is the frame's whole length in bytes.
pub(crate) fn carried_by(link: Linktype, data: &[u8], length: u64) -> Option<PacketTransport<'_>> {
    let (packet, at) = sliced(link, data).ok()?;
    carried(&packet, &data[at..], length.saturating_sub(at as u64))
}

/// The reason why [`carried_by`] returns `None`.
pub(crate) fn unread(link: Linktype, data: &[u8]) -> PacketReadError {
    let packet = match sliced(link, data) {
        Ok((packet, _)) => packet,
        Err(unread) => return unread,
    };
    match packet.net {
        _ if packet.stop_err.is_some() => PacketReadError::CutOff,
        None | Some(LaxNetSlice::Arp(_)) => PacketReadError::NotIp,
        Some(LaxNetSlice::Ipv4(ip)) if ip.payload().fragmented => PacketReadError::Fragment,
        Some(LaxNetSlice::Ipv6(ip)) if ip.payload().fragmented => PacketReadError::Fragment,
        Some(_) => PacketReadError::Protocol,
    }
}

/// The headers of the innermost IP packet, as far as they were captured, and the offset of that packet in the frame.
fn sliced(link: Linktype, data: &[u8]) -> Result<(LaxSlicedPacket<'_>, usize), PacketReadError> {
    let at = encapsulation::find_ip(link, data)?;
    let packet = data.get(at..).ok_or(PacketReadError::CutOff)?;
    let packet = LaxSlicedPacket::from_ip(packet).map_err(|_| PacketReadError::CutOff)?;
    Ok((packet, at))
}

/// The fields of an IP header.
struct NetworkHeader {
    from: IpAddr,
    to: IpAddr,
    /// The length of the IP header with its extensions, in bytes.
    bytes: usize,
    /// The length of the packet in bytes; 0 if it is longer than the header's field can say.
    total: u64,
    ttl: u8,
}

impl NetworkHeader {
    fn read(net: &LaxNetSlice<'_>) -> Option<Self> {
        match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                Some(Self {
                    from: header.source_addr().into(),
                    to: header.destination_addr().into(),
                    bytes: header.slice().len(),
                    total: u64::from(header.total_len()),
                    ttl: header.ttl(),
                })
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let payload = u64::from(header.payload_length());
                Some(Self {
                    from: header.source_addr().into(),
                    to: header.destination_addr().into(),
                    bytes: 40 + ip.extensions().slice().len(),
                    total: if payload == 0 { 0 } else { 40 + payload },
                    ttl: header.hop_limit(),
                })
            }
            LaxNetSlice::Arp(_) => None,
        }
    }

    /// The length of the IP and TCP headers, in bytes.
    fn before(&self, tcp: &TcpSlice<'_>) -> u64 {
        (self.bytes + tcp.header_slice().len()) as u64
    }

    /// The TCP segment behind this header; `bytes` is the length of its data.
    fn segment(&self, tcp: &TcpSlice<'_>, bytes: u64) -> DissectedSegment {
        let option = |wanted: fn(&TcpOptionElement) -> Option<u16>| {
            let mut options = tcp.options_iterator().filter(|_| tcp.syn()).flatten();
            options.find_map(|element| wanted(&element))
        };
        let scale = |element: &TcpOptionElement| match element {
            // RFC 7323, 2.3: a larger shift count is treated as 14.
            TcpOptionElement::WindowScale(bits) => Some(u16::from(*bits).min(14)),
            _ => None,
        };
        let largest = |element: &TcpOptionElement| match element {
            TcpOptionElement::MaximumSegmentSize(bytes) => Some(*bytes),
            _ => None,
        };
        DissectedSegment {
            ends: self.ends(tcp.source_port(), tcp.destination_port()),
            sequence: tcp.sequence_number(),
            bytes,
            syn: tcp.syn(),
            fin: tcp.fin(),
            reset: tcp.rst(),
            acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
            selectively_acknowledged: farthest_selective(tcp),
            window: tcp.window_size(),
            window_scale: option(scale).map(|bits| bits as u8),
            largest_segment: option(largest),
            ttl: self.ttl,
            length: self.before(tcp) + bytes,
        }
    }

    fn ends(&self, from: u16, to: u16) -> (SocketAddr, SocketAddr) {
        (
            SocketAddr::new(self.from, from),
            SocketAddr::new(self.to, to),
        )
    }
}

/// The TCP options of a segment with a time stamp only begin with these bytes: two NOPs and kind 8.
const TIME_STAMP: [u8; 3] = [1, 1, 8];

/// The highest right edge of a segment's selective acknowledgements, if it lies beyond the acknowledgement number.
fn farthest_selective(tcp: &TcpSlice<'_>) -> Option<u32> {
    let options = tcp.options();
    // A selective acknowledgement takes 10 bytes at least; most segments have a time stamp only.
    let is_bare = options.len() < 10 || options.len() == 12 && options.starts_with(&TIME_STAMP);
    if tcp.syn() || is_bare {
        return None;
    }
    let behind = tcp.ack().then(|| tcp.acknowledgment_number())?;
    let blocks = |element| match element {
        TcpOptionElement::SelectiveAcknowledgement(first, others) => Some((first, others)),
        _ => None,
    };
    let (first, others) = tcp.options_iterator().flatten().find_map(blocks)?;
    let ends = others
        .into_iter()
        .flatten()
        .chain([first])
        .map(|(_, end)| end);
    // A block below the acknowledgement number reports a duplicate (RFC 2883).
    let ahead = |end: &u32| end.wrapping_sub(behind).cast_signed();
    ends.filter(|end| ahead(end) > 0).max_by_key(ahead)
}

/// Reads the transport header of a sliced packet; `data` and `length` count from the IP header on.
fn carried<'p>(
    packet: &LaxSlicedPacket<'p>,
    data: &[u8],
    length: u64,
) -> Option<PacketTransport<'p>> {
    let header = NetworkHeader::read(packet.net.as_ref()?)?;
    match packet.transport.as_ref()? {
        TransportSlice::Tcp(tcp) => {
            let bytes = if header.total == 0 {
                // Segmentation offload joined segments into a packet longer than the header's field can say.
                length.saturating_sub((data.len() - tcp.payload().len()) as u64)
            } else {
                header.total.saturating_sub(header.before(tcp))
            };
            let segment = header.segment(tcp, bytes);
            Some(PacketTransport::Tcp(segment, tcp.payload()))
        }
        TransportSlice::Udp(udp) => {
            let ends = header.ends(udp.source_port(), udp.destination_port());
            let bytes = header
                .total
                .saturating_sub(header.bytes as u64 + 8)
                // A length of 0 in the header says nothing: what was captured is the least.
                .max(udp.payload().len() as u64);
            Some(PacketTransport::Udp(
                DissectedDatagram {
                    ends,
                    bytes,
                    ttl: header.ttl,
                },
                udp.payload(),
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment that acknowledges 1000, with those options.
    fn farthest(options: &[u8]) -> Option<u32> {
        let mut bytes = vec![0, 80, 0, 90, 0, 0, 0, 0];
        bytes.extend(1000_u32.to_be_bytes());
        bytes.extend([(5 + options.len() as u8 / 4) << 4, 0x10, 1, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        farthest_selective(&TcpSlice::from_slice(&bytes).unwrap())
    }

    #[test]
    fn the_farthest_block_ahead_is_what_arrived() {
        let block = |from: u32, to: u32| [from.to_be_bytes(), to.to_be_bytes()].concat();
        let time_stamp = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!((farthest(&[]), farthest(&time_stamp)), (None, None));
        let two = [vec![1, 1, 5, 18], block(3000, 4000), block(6000, 7000)].concat();
        assert_eq!(farthest(&two), Some(7000));
        assert_eq!(farthest(&[&time_stamp[..], &two].concat()), Some(7000));
        // What came twice says nothing of what is ahead; numbers go round.
        let twice = [vec![1, 1, 5, 18], block(500, 900), block(u32::MAX, 2000)].concat();
        assert_eq!(farthest(&twice), Some(2000));
        let twice = [vec![1, 1, 5, 10], block(500, 900)].concat();
        assert_eq!(farthest(&twice), None);
    }
}
