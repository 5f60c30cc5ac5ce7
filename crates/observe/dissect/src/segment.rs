//! A captured packet of any kind of link to its TCP segment or UDP datagram.

use crate::encapsulation;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use pcap_parser::Linktype;
use std::net::{IpAddr, SocketAddr};

/// Linux cooked, second version.
const LINUX_SLL2: Linktype = Linktype(276);

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DissectedSegment {
    /// Who sends and who receives.
    pub ends: (SocketAddr, SocketAddr),
    /// The sequence number of its first byte.
    pub sequence: u32,
    /// Of data, also where the capture cut the packet.
    pub bytes: u64,
    /// Whether it opens the stream.
    pub syn: bool,
    /// Whether it ends the stream.
    pub fin: bool,
    /// Whether it breaks the connection off.
    pub reset: bool,
    /// The sequence number up to which the other direction has arrived.
    pub acknowledged: Option<u32>,
    /// The sequence number behind the farthest byte of the other direction that arrived ahead of others (RFC 2018).
    pub selectively_acknowledged: Option<u32>,
    /// What the sender is ready to receive, as its header says: without the scale.
    pub window: u16,
    /// By how many bits windows of the sender are scaled, where a SYN says it.
    pub window_scale: Option<u8>,
    /// The largest segment it accepts, where a SYN says it.
    pub largest_segment: Option<u16>,
    /// How many more hops it was allowed.
    pub ttl: u8,
    /// Of the packet from the network layer's header on.
    pub length: u64,
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DissectedDatagram {
    /// Who sends and who receives.
    pub ends: (SocketAddr, SocketAddr),
    /// Of data, also where the capture cut the packet.
    pub bytes: u64,
    /// How many more hops it was allowed.
    pub ttl: u8,
}

/// What a packet carries, beside the bytes of it that were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketTransport<'p> {
    /// Part of a stream.
    Tcp(DissectedSegment, &'p [u8]),
    /// A message by itself.
    Udp(DissectedDatagram, &'p [u8]),
}

/// What a packet carries of which those bytes were captured from the network layer's header on, and which had that length from
/// there on.
#[must_use]
pub fn of_ip(data: &[u8], length: u64) -> Option<PacketTransport<'_>> {
    carried(&LaxSlicedPacket::from_ip(data).ok()?, data, length)
}

/// The TCP segment of a packet of which those bytes were captured, and which had that length.
pub(crate) fn of_packet(link: Linktype, data: &[u8], length: u64) -> Option<DissectedSegment> {
    match carried_by(link, data, length)? {
        PacketTransport::Tcp(segment, _) => Some(segment),
        PacketTransport::Udp(..) => None,
    }
}

/// Whether the machine of the capture sent a packet, where its link's header says it.
pub(crate) fn is_outgoing(link: Linktype, data: &[u8]) -> Option<bool> {
    /// Types of packets (packet(7)).
    const OUTGOING: u8 = 4;
    let kind = match link {
        Linktype::LINUX_SLL => *data.get(1)?,
        LINUX_SLL2 => *data.get(10)?,
        _ => return None,
    };
    Some(kind == OUTGOING)
}

/// A packet from the header of IP on.
pub(crate) fn ip_of(link: Linktype, data: &[u8]) -> Option<&[u8]> {
    data.get(encapsulation::find_ip(link, data).ok()?..)
}

/// Why nothing is known of what a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketReadError {
    /// Its kind of link is not known.
    Link,
    /// It does not carry IP.
    NotIp,
    /// It is a fragment of a packet of IP.
    Fragment,
    /// It carries neither TCP nor UDP.
    Protocol,
    /// It ends within its headers, or these are damaged.
    CutOff,
}

/// What a packet carries of which those bytes were captured, and which had that length.
pub(crate) fn carried_by(link: Linktype, data: &[u8], length: u64) -> Option<PacketTransport<'_>> {
    let (packet, at) = sliced(link, data).ok()?;
    carried(&packet, &data[at..], length.saturating_sub(at as u64))
}

/// Why [`carried_by`] finds nothing.
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

/// The headers of the innermost packet of IP, as far as they were captured, and how many bytes stand before it.
fn sliced(link: Linktype, data: &[u8]) -> Result<(LaxSlicedPacket<'_>, usize), PacketReadError> {
    let at = encapsulation::find_ip(link, data)?;
    let packet = data.get(at..).ok_or(PacketReadError::CutOff)?;
    let packet = LaxSlicedPacket::from_ip(packet).map_err(|_| PacketReadError::CutOff)?;
    Ok((packet, at))
}

/// What the header of the network layer says.
struct NetworkHeader {
    from: IpAddr,
    to: IpAddr,
    /// Its own bytes, with its extensions.
    bytes: usize,
    /// Of the packet; 0 where it is longer than the header can say.
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

    /// Bytes of a packet before the data of its segment.
    fn before(&self, tcp: &TcpSlice<'_>) -> u64 {
        (self.bytes + tcp.header_slice().len()) as u64
    }

    /// The segment behind it, with so many bytes of data.
    fn segment(&self, tcp: &TcpSlice<'_>, bytes: u64) -> DissectedSegment {
        let option = |wanted: fn(&TcpOptionElement) -> Option<u16>| {
            let mut options = tcp.options_iterator().filter(|_| tcp.syn()).flatten();
            options.find_map(|element| wanted(&element))
        };
        let scale = |element: &TcpOptionElement| match element {
            // RFC 7323: a larger one counts as 14.
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

/// Options of a segment that has a time stamp alone begin so.
const TIME_STAMP: [u8; 3] = [1, 1, 8];

/// Behind the farthest byte that a segment acknowledges selectively.
fn farthest_selective(tcp: &TcpSlice<'_>) -> Option<u32> {
    let options = tcp.options();
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
    // A block before the acknowledgement says what came twice (RFC 2883).
    let ahead = |end: &u32| end.wrapping_sub(behind).cast_signed();
    ends.filter(|end| ahead(end) > 0).max_by_key(ahead)
}

fn carried<'p>(
    packet: &LaxSlicedPacket<'p>,
    data: &[u8],
    length: u64,
) -> Option<PacketTransport<'p>> {
    let header = NetworkHeader::read(packet.net.as_ref()?)?;
    match packet.transport.as_ref()? {
        TransportSlice::Tcp(tcp) => {
            let bytes = if header.total == 0 {
                // Segments that offload joined into more than the header can say.
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
