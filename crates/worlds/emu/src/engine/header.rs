//! Reads a frame's headers: its destination, its flow, its number of segments.
//!
//! ```text
//! 0        10             24                24 + ip          24 + ip + transport
//! virtio-net header | Ethernet header | IPv4 header | TCP or UDP header | data
//! ```
//! Every field is checked, because a program with a raw socket can write any frame. Offsets are from the beginning of the virtio-net
//! header. A train is a frame that stands for several segments, to be cut later (segmentation offload).

use stackline_net::{EcnMarking, SegmentSizes};
use std::net::Ipv4Addr;

/// Bytes of the virtio-net header (Virtual I/O Device 1.2, section 5.1.6, without the count of buffers).
pub(crate) const VIRTIO: usize = 10;
/// Where the IPv4 header begins.
pub(crate) const NETWORK: usize = VIRTIO + 14;

/// Bit of the virtio-net header's flags: the checksum is still to be computed.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;
/// Kind of segmentation in the virtio-net header: none.
pub(crate) const GSO_NONE: u8 = 0;
/// Kind of segmentation: TCP over IPv4.
pub(crate) const GSO_TCP: u8 = 1;
/// Kind of segmentation: UDP.
pub(crate) const GSO_UDP: u8 = 5;
/// Bit beside the kind: the first segment reduces the congestion window (CWR).
pub(crate) const GSO_ECN: u8 = 0x80;

/// EtherType of IPv4.
const IPV4: u16 = 0x0800;
/// IP protocol number of TCP.
const TCP: u8 = 6;
/// IP protocol number of UDP.
const UDP: u8 = 17;

/// Why a frame cannot be forwarded through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsupported {
    /// ARP, IPv6 and the like.
    NotIpv4,
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
    pub(crate) to: Ipv4Addr,
    /// A hash of addresses, protocol and ports.
    pub(crate) flow: u32,
    pub(crate) ecn: EcnMarking,
    /// Its code point of differentiated services.
    pub(crate) dscp: u8,
    pub(crate) segments: SegmentSizes,
    pub(crate) transport: TransportHeaderKind,
    /// Length of the IPv4 header, bytes.
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
    if read_u16(frame, NETWORK - 2) != IPV4 {
        return Err(Unsupported::NotIpv4);
    }
    let packet = &frame[NETWORK..];
    let (ip, total) = lengths(packet).ok_or(Unsupported::Malformed)?;
    let packet = &packet[..total];
    // An offset or the flag that more follow: the transport header may be elsewhere.
    let fragment = read_u16(packet, 6) & 0x3fff != 0;
    let (transport, header) = if fragment {
        (TransportHeaderKind::Other, 0)
    } else {
        transport(packet, ip)
    };
    let segments = segments(frame, transport, ip + header, total)?;
    Ok(EmulatedFrameHeader {
        to: Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]),
        flow: flow(packet, ip, transport),
        ecn: match packet[1] & 3 {
            0 => EcnMarking::NotCapable,
            1 => EcnMarking::Scalable,
            2 => EcnMarking::Capable,
            _ => EcnMarking::Marked,
        },
        dscp: packet[1] >> 2,
        segments,
        transport,
        ip,
        data: NETWORK + ip + header,
        end: NETWORK + total,
    })
}

/// The lengths of the IPv4 header and of the whole packet, bytes; `None` if they contradict each other.
fn lengths(packet: &[u8]) -> Option<(usize, usize)> {
    let first = *packet.first()?;
    let ip = usize::from(first & 15) * 4;
    let total = usize::from(read_u16(packet, 2));
    (first >> 4 == 4 && ip >= 20 && ip <= total && total <= packet.len()).then_some((ip, total))
}

/// Which transport header follows, and its length.
fn transport(packet: &[u8], ip: usize) -> (TransportHeaderKind, usize) {
    let behind = packet.len() - ip;
    match packet[9] {
        TCP if behind >= 20 => {
            let header = usize::from(packet[ip + 12] >> 4) * 4;
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

/// The number and sizes of segments. `header` is the length of the IPv4 and transport headers, `total` that of the packet.
fn segments(
    frame: &[u8],
    transport: TransportHeaderKind,
    header: usize,
    total: usize,
) -> Result<SegmentSizes, Unsupported> {
    let one = SegmentSizes::one(total as u32);
    let full = segment_bytes(frame);
    match (frame[1] & !GSO_ECN, transport) {
        (GSO_NONE, _) => return Ok(one),
        (GSO_TCP, TransportHeaderKind::Tcp) | (GSO_UDP, TransportHeaderKind::Udp) if full > 0 => {}
        _ => return Err(Unsupported::Segmentation),
    }
    let data = (total - header) as u32;
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

/// A hash of addresses, protocol and ports. Ports of fragments are ignored, because only the first fragment has them.
fn flow(packet: &[u8], ip: usize, transport: TransportHeaderKind) -> u32 {
    let pair =
        |at: usize| u64::from(read_u16(packet, at)) << 16 | u64::from(read_u16(packet, at + 2));
    let ports = if transport == TransportHeaderKind::Other {
        0
    } else {
        pair(ip)
    };
    let addresses = pair(12) << 32 | pair(16);
    // Multipliers of the golden ratio and of MurmurHash3; the upper half is mixed best.
    let mixed = (addresses
        ^ (ports << 8 | u64::from(packet[9])).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    .wrapping_mul(0xff51_afd7_ed55_8ccd);
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
        assert_eq!(header.to, Ipv4Addr::new(10, 71, 0, 2));
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
        assert_eq!(read(&frame), Err(Unsupported::NotIpv4));
        assert_eq!(read(&frame[..9]), Err(Unsupported::Malformed));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_read_without_harm(
            mut frame in proptest::collection::vec(any::<u8>(), 0..200),
            likely in any::<bool>(),
        ) {
            if likely && frame.len() > NETWORK {
                frame[NETWORK - 2..=NETWORK].copy_from_slice(&[8, 0, 0x45]);
            }
            if let Ok(header) = read(&frame) {
                prop_assert!(header.end <= frame.len() && header.data <= header.end);
                prop_assert_eq!(header.segments.count > 0, true);
            }
        }
    }
}
