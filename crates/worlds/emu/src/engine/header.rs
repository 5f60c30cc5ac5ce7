//! Reads a frame's headers: its destination, its flow, its number of segments.
//!
//! ```text
//! 0        10             24                24 + ip          24 + ip + transport
//! virtio-net header | Ethernet header | IP header | TCP or UDP header | data
//! ```
//! `ip` includes options of IPv4 and extension headers of IPv6 (`ip_header`). Every field is checked, because a program with a raw socket can write any frame. Offsets are from the beginning of the virtio-net
//! header. A train is a frame that stands for several segments, to be cut later (segmentation offload).

use super::ip_header::{IpHeader, TCP, UDP};
use stackline_net::{EcnMarking, SegmentSizes};
use std::net::IpAddr;

/// Bytes of the virtio-net header (Virtual I/O Device 1.2, section 5.1.6, without the count of buffers).
pub(crate) const VIRTIO: usize = 10;
/// Where the IP header begins.
pub(crate) const NETWORK: usize = VIRTIO + 14;

/// Bit of the virtio-net header's flags: the checksum is still to be computed.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;
/// Kind of segmentation in the virtio-net header: none.
pub(crate) const GSO_NONE: u8 = 0;
/// Kind of segmentation: TCP over IPv4.
pub(crate) const GSO_TCP: u8 = 1;
/// Kind of segmentation: TCP over IPv6.
pub(crate) const GSO_TCP6: u8 = 4;
/// Kind of segmentation: UDP over either.
pub(crate) const GSO_UDP: u8 = 5;
/// Bit beside the kind: the first segment reduces the congestion window (CWR).
pub(crate) const GSO_ECN: u8 = 0x80;

/// EtherType of IPv4.
const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
const IPV6: u16 = 0x86dd;

/// Greatest length of all headers of a train together. A packet with more, in options of IPv6, is carried, but not as a train.
pub(crate) const LONGEST_HEADERS: usize = NETWORK + 40 + 256 + 60;

/// Why a frame cannot be forwarded through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsupported {
    /// ARP and the like.
    NotIp,
    /// Neighbour discovery and reports of multicast listeners, which the hosts' kernels send by themselves.
    NeighbourTalk,
    /// Lengths that contradict each other.
    Malformed,
    /// Segmentation of an unsupported kind.
    Segmentation,
}

/// The transport layer, as far as needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportHeaderKind {
    Tcp,
    Udp,
    Other,
}

/// What was read from a frame's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EmulatedFrameHeader {
    /// Destination address.
    pub(crate) to: IpAddr,
    /// A hash of addresses, protocol and ports.
    pub(crate) flow: u32,
    pub(crate) ecn: EcnMarking,
    /// Its code point of differentiated services.
    pub(crate) dscp: u8,
    pub(crate) segments: SegmentSizes,
    pub(crate) transport: TransportHeaderKind,
    /// Whether it is a packet of IPv6.
    pub(crate) is_v6: bool,
    /// Length of the IP header with its options or extension headers, bytes.
    pub(crate) ip: usize,
    /// Offset of the data behind the transport header, used for a train.
    pub(crate) data: usize,
    /// Offset of the packet's end; padding may follow.
    pub(crate) end: usize,
}

/// Two bytes in network order; zero where there are none.
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .map_or(0, |two| u16::from_be_bytes([two[0], two[1]]))
}

/// Bytes of data that each segment of a train carries, from the virtio-net header, which is in native byte order.
pub(crate) fn segment_bytes(frame: &[u8]) -> u32 {
    frame
        .get(4..6)
        .map_or(0, |two| u32::from(u16::from_ne_bytes([two[0], two[1]])))
}

/// Reads the headers of a frame, which begins with its virtio-net header.
pub(crate) fn read(frame: &[u8]) -> Result<EmulatedFrameHeader, Unsupported> {
    if frame.len() < NETWORK {
        return Err(Unsupported::Malformed);
    }
    let packet = &frame[NETWORK..];
    let version = packet.first().map_or(0, |first| first >> 4);
    match (read_u16(frame, NETWORK - 2), version) {
        (IPV4, 4) | (IPV6, 6) => {}
        (IPV4 | IPV6, _) => return Err(Unsupported::Malformed),
        _ => return Err(Unsupported::NotIp),
    }
    let ip = IpHeader::read(packet).ok_or(Unsupported::Malformed)?;
    let packet = &packet[..ip.total];
    if ip.is_neighbour_talk(packet) {
        return Err(Unsupported::NeighbourTalk);
    }
    let (transport, header) = if ip.is_whole {
        transport(packet, &ip)
    } else {
        (TransportHeaderKind::Other, 0)
    };
    let segments = segments(frame, transport, ip.length + header, &ip)?;
    Ok(EmulatedFrameHeader {
        to: ip.to,
        flow: flow(packet, &ip, transport),
        ecn: match ip.traffic_class & 3 {
            0 => EcnMarking::NotCapable,
            1 => EcnMarking::Scalable,
            2 => EcnMarking::Capable,
            _ => EcnMarking::Marked,
        },
        dscp: packet[1] >> 2,
        segments,
        transport,
        is_v6: ip.is_v6,
        ip: ip.length,
        data: NETWORK + ip.length + header,
        end: NETWORK + ip.total,
    })
}

/// Which transport header follows, and its length.
fn transport(packet: &[u8], ip: &IpHeader) -> (TransportHeaderKind, usize) {
    let behind = packet.len() - ip.length;
    match ip.protocol {
        TCP if behind >= 20 => {
            let header = usize::from(packet[ip.length + 12] >> 4) * 4;
            if header >= 20 && header <= behind {
                (TransportHeaderKind::Tcp, header)
            } else {
                (TransportHeaderKind::Other, 0)
            }
        }
        UDP if behind >= 8 => (TransportHeaderKind::Udp, 8),
        _ => (TransportHeaderKind::Other, 0),
    }
}

/// The number and sizes of segments. `header` is the length of the IP and transport headers.
fn segments(
    frame: &[u8],
    transport: TransportHeaderKind,
    header: usize,
    ip: &IpHeader,
) -> Result<SegmentSizes, Unsupported> {
    let one = SegmentSizes::one(ip.total as u32);
    let full = segment_bytes(frame);
    match (frame[1] & !GSO_ECN, transport) {
        (GSO_NONE, _) => return Ok(one),
        (kind, TransportHeaderKind::Tcp) if full > 0 && kind == tcp_segmentation(ip.is_v6) => {}
        (GSO_UDP, TransportHeaderKind::Udp) if full > 0 => {}
        _ => return Err(Unsupported::Segmentation),
    }
    if NETWORK + header > LONGEST_HEADERS {
        return Err(Unsupported::Segmentation);
    }
    let data = (ip.total - header) as u32;
    let count = data.div_ceil(full);
    if count < 2 {
        return Ok(one);
    }
    Ok(SegmentSizes {
        count,
        header: header as u32,
        full,
        last: data - (count - 1) * full,
    })
}

/// The kind of segmentation of TCP over a version of IP.
pub(crate) const fn tcp_segmentation(is_v6: bool) -> u8 {
    if is_v6 { GSO_TCP6 } else { GSO_TCP }
}

/// A hash of addresses, protocol and ports. Ports of fragments are ignored, because only the first fragment has them.
fn flow(packet: &[u8], ip: &IpHeader, transport: TransportHeaderKind) -> u32 {
    // Multipliers of the golden ratio and of MurmurHash3; the upper half is mixed best.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    const MURMUR: u64 = 0xff51_afd7_ed55_8ccd;
    let pair =
        |at: usize| u64::from(read_u16(packet, at)) << 16 | u64::from(read_u16(packet, at + 2));
    let ports = if transport == TransportHeaderKind::Other {
        0
    } else {
        pair(ip.length)
    };
    let addresses = if ip.is_v6 {
        // Two by two: the source's and the destination's words at the same place.
        (8..24).step_by(4).fold(0_u64, |mixed, at| {
            (mixed ^ (pair(at) << 32 | pair(at + 16)))
                .wrapping_mul(GOLDEN)
                .rotate_left(29)
        })
    } else {
        pair(12) << 32 | pair(16)
    };
    let mixed = (addresses ^ (ports << 8 | u64::from(ip.protocol)).wrapping_mul(GOLDEN))
        .wrapping_mul(MURMUR);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sample_frames;
    use proptest::prelude::*;

    #[test]
    fn a_train_of_tcp_segments() {
        let header = read(&sample_frames::tcp_train(1448, 4 * 1448 + 100)).unwrap();
        assert_eq!(header.to, IpAddr::from([10, 71, 0, 2]));
        assert_eq!(
            header.segments,
            SegmentSizes {
                count: 5,
                header: 52,
                full: 1448,
                last: 100
            }
        );
        assert_eq!(header.data, NETWORK + 52);
        assert_eq!(header.ecn, EcnMarking::Capable);
    }

    #[test]
    fn the_byte_behind_the_version_has_the_class_and_the_marks() {
        let mut frame = sample_frames::tcp_train(1448, 100);
        for (byte, dscp, ecn) in [
            (46 << 2, 46, EcnMarking::NotCapable),
            (1, 0, EcnMarking::Scalable),
            (34 << 2 | 2, 34, EcnMarking::Capable),
            (255, 63, EcnMarking::Marked),
        ] {
            frame[NETWORK + 1] = byte;
            let header = read(&frame).unwrap();
            assert_eq!((header.dscp, header.ecn), (dscp, ecn));
        }
    }

    #[test]
    fn a_train_of_datagrams() {
        let header = read(&sample_frames::udp_train(1000, 2500)).unwrap();
        assert_eq!(
            header.segments,
            SegmentSizes {
                count: 3,
                header: 28,
                full: 1000,
                last: 500
            }
        );
    }

    #[test]
    fn trains_over_ipv6() {
        let tcp = read(&sample_frames::over_ipv6(&sample_frames::tcp_train(
            1428, 3000,
        )))
        .unwrap();
        assert_eq!(tcp.to, "fd71::2".parse::<IpAddr>().unwrap());
        assert_eq!((tcp.segments.count, tcp.segments.header), (3, 72));
        assert_eq!((tcp.ecn, tcp.data), (EcnMarking::Capable, NETWORK + 72));
        let udp = read(&sample_frames::over_ipv6(&sample_frames::udp_train(
            1000, 2500,
        )))
        .unwrap();
        assert_eq!((udp.segments.count, udp.segments.header), (3, 48));
        let mut wrong = sample_frames::over_ipv6(&sample_frames::tcp_train(1428, 3000));
        wrong[1] = GSO_TCP;
        assert_eq!(read(&wrong), Err(Unsupported::Segmentation));
    }

    #[test]
    fn flows_over_ipv6_differ_by_port_and_address() {
        let frame = sample_frames::over_ipv6(&sample_frames::udp_train(1000, 100));
        for at in [NETWORK + 40, NETWORK + 23, NETWORK + 39] {
            let mut other = frame.clone();
            other[at] ^= 1;
            assert_ne!(read(&frame).unwrap().flow, read(&other).unwrap().flow);
        }
    }

    #[test]
    fn a_single_segment_is_the_whole_packet() {
        let header = read(&sample_frames::tcp_train(1448, 1448)).unwrap();
        assert_eq!(header.segments, SegmentSizes::one(1500));
    }

    #[test]
    fn padding_does_not_count() {
        let mut frame = sample_frames::udp_train(1000, 4);
        frame.resize(frame.len() + 14, 0);
        assert_eq!(read(&frame).unwrap().segments, SegmentSizes::one(32));
    }

    #[test]
    fn flows_differ_by_port_and_fragments_have_none() {
        let mut frame = sample_frames::udp_train(1000, 100);
        frame[1] = GSO_NONE;
        let mut other = frame.clone();
        other[NETWORK + 20] ^= 1;
        assert_ne!(read(&frame).unwrap().flow, read(&other).unwrap().flow);
        let fragment = |mut frame: Vec<u8>| {
            frame[NETWORK + 6] = 0x20;
            read(&frame).unwrap().flow
        };
        assert_eq!(fragment(frame), fragment(other));
    }

    #[test]
    fn other_frames_are_rejected_with_the_reason() {
        let mut frame = sample_frames::tcp_train(1448, 3000);
        frame[1] = GSO_UDP;
        assert_eq!(read(&frame), Err(Unsupported::Segmentation));
        frame[NETWORK + 3] = 255;
        frame[NETWORK + 2] = 255;
        assert_eq!(read(&frame), Err(Unsupported::Malformed));
        frame[NETWORK - 2] = 0x86;
        assert_eq!(read(&frame), Err(Unsupported::NotIp));
        frame[NETWORK - 1] = 0xdd;
        assert_eq!(read(&frame), Err(Unsupported::Malformed));
        assert_eq!(read(&frame[..9]), Err(Unsupported::Malformed));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_read_without_harm(
            mut frame in proptest::collection::vec(any::<u8>(), 0..200),
            likely in any::<bool>(), six in any::<bool>(),
        ) {
            if likely && frame.len() > NETWORK {
                let begin = if six { [0x86, 0xdd, 0x60] } else { [8, 0, 0x45] };
                frame[NETWORK - 2..=NETWORK].copy_from_slice(&begin);
            }
            if let Ok(header) = read(&frame) {
                prop_assert!(header.end <= frame.len() && header.data <= header.end);
                prop_assert_eq!(header.segments.count > 0, true);
            }
        }
    }
}
