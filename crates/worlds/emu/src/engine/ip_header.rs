//! Reads the IP header of a packet, of either version, with IPv6's extension headers: lengths, traffic class, hops, protocol, addresses.
//!
//! Every field is checked, because a program with a raw socket can write any packet.

use super::header::read_u16;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of the IPv6 header without extension headers (RFC 8200, section 3).
pub(crate) const IPV6_HEADER: usize = 40;
/// IP protocol number of TCP.
pub(crate) const TCP: u8 = 6;
/// IP protocol number of UDP.
pub(crate) const UDP: u8 = 17;
/// IP protocol number of ICMP for IPv6.
const ICMPV6: u8 = 58;
/// How many extension headers are looked through. What is behind a longer chain is carried without a look at its ports.
const MOST_EXTENSIONS: usize = 8;

/// What a packet's IP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpHeader {
    /// Whether the packet is of IPv6.
    pub(crate) is_v6: bool,
    /// Bytes of the header, with its options or extension headers.
    pub(crate) length: usize,
    /// Bytes of the whole packet; padding may follow.
    pub(crate) total: usize,
    /// Code point and ECN: the byte that is called TOS in IPv4 and traffic class in IPv6 (RFC 2474, RFC 3168).
    pub(crate) traffic_class: u8,
    /// TTL or hop limit.
    pub(crate) hops: u8,
    /// The protocol that follows, behind extension headers.
    pub(crate) protocol: u8,
    /// Whether a whole transport header follows: not in fragments, nor where the checksum is of another address (routing header),
    /// nor behind a chain of extension headers that is too long.
    pub(crate) is_whole: bool,
    /// Destination.
    pub(crate) to: IpAddr,
}

impl IpHeader {
    /// The header of the packet, which may have padding behind it; `None` if its lengths contradict each other.
    #[inline]
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::v4(packet),
            6 => Self::v6(packet),
            _ => None,
        }
    }

    #[inline]
    fn v4(packet: &[u8]) -> Option<Self> {
        let length = usize::from(packet[0] & 15) * 4;
        let total = usize::from(read_u16(packet, 2));
        if length < 20 || length > total || total > packet.len() {
            return None;
        }
        Some(Self {
            is_v6: false,
            length,
            total,
            traffic_class: packet[1],
            hops: packet[8],
            protocol: packet[9],
            // An offset or the flag that more follow: the transport header may be elsewhere.
            is_whole: read_u16(packet, 6) & 0x3fff == 0,
            to: Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]).into(),
        })
    }

    fn v6(packet: &[u8]) -> Option<Self> {
        let total = IPV6_HEADER + usize::from(read_u16(packet, 4));
        if packet.len() < total {
            return None;
        }
        let address: [u8; 16] = packet[24..IPV6_HEADER].try_into().ok()?;
        let mut header = Self {
            is_v6: true,
            length: IPV6_HEADER,
            total,
            traffic_class: packet[0] << 4 | packet[1] >> 4,
            hops: packet[7],
            protocol: packet[6],
            is_whole: true,
            to: Ipv6Addr::from(address).into(),
        };
        for _ in 0..MOST_EXTENSIONS {
            let Some(extension) = ExtensionHeader::read(&packet[..total], &header)? else {
                return Some(header);
            };
            header.length += extension.length;
            header.protocol = extension.next;
            header.is_whole &= extension.is_transparent;
        }
        header.is_whole = false;
        Some(header)
    }

    /// Whether the packet is the kernel's own talk with its neighbours on a link: neighbour and router discovery (RFC 4861), multicast
    /// listener reports (RFC 2710, RFC 3810).
    pub(crate) fn is_neighbour_talk(&self, packet: &[u8]) -> bool {
        const KINDS: [u8; 9] = [130, 131, 132, 133, 134, 135, 136, 137, 143];
        let kind = packet.get(self.length);
        self.is_v6 && self.protocol == ICMPV6 && kind.is_some_and(|kind| KINDS.contains(kind))
    }
}

/// An extension header of IPv6 (RFC 8200, section 4).
struct ExtensionHeader {
    /// Its bytes.
    length: usize,
    /// What follows it.
    next: u8,
    /// Whether a whole transport header may follow, with a checksum of the addresses in the IP header.
    is_transparent: bool,
}

impl ExtensionHeader {
    /// The next extension header of the packet: `None` if it does not fit, `Some(None)` if something else follows.
    #[expect(
        clippy::option_option,
        reason = "the outer one is an error, the inner one the end of the chain"
    )]
    fn read(packet: &[u8], header: &IpHeader) -> Option<Option<Self>> {
        // Hop-by-hop options, routing, fragment, authentication, destination options, mobility, HIP, Shim6.
        if ![0, 43, 44, 51, 60, 135, 139, 140].contains(&header.protocol) {
            return Some(None);
        }
        let [next, words] = *packet.get(header.length..header.length + 2)? else {
            return None;
        };
        let length = match header.protocol {
            44 => 8,
            // RFC 4302, section 2.2: in units of 4 bytes, minus 2.
            51 => (usize::from(words) + 2) * 4,
            _ => (usize::from(words) + 1) * 8,
        };
        let is_transparent = ![43, 44].contains(&header.protocol);
        (header.length + length <= packet.len()).then_some(Some(Self {
            length,
            next,
            is_transparent,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet of IPv6 with these extension headers (kind, bytes), each of which says what follows it, and `data` behind UDP's number.
    fn packet(extensions: &[(u8, &[u8])], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x62, 0xe0, 0, 0, 0, 0];
        bytes.extend([extensions.first().map_or(UDP, |(kind, _)| *kind), 63]);
        bytes.extend([0xfd; 16]);
        bytes.extend(Ipv6Addr::new(0xfd71, 0, 0, 0, 0, 0, 0, 2).octets());
        for (index, (_, content)) in extensions.iter().enumerate() {
            bytes.push(extensions.get(index + 1).map_or(UDP, |(kind, _)| *kind));
            bytes.extend(*content);
        }
        bytes.extend(data);
        let length = (bytes.len() - IPV6_HEADER) as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[test]
    fn a_plain_header() {
        let mut bytes = packet(&[], &[1; 20]);
        bytes.extend([0; 6]);
        let header = IpHeader::read(&bytes).unwrap();
        assert_eq!((header.length, header.total), (40, 60));
        assert_eq!((header.traffic_class, header.hops), (0x2e, 63));
        assert_eq!((header.protocol, header.is_whole), (UDP, true));
        assert_eq!(header.to, "fd71::2".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn extension_headers_are_looked_through() {
        let options = [0, 0, 0, 0, 0, 0, 0];
        let authentication = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let bytes = packet(
            &[(0, &options), (60, &options), (51, &authentication)],
            &[7; 8],
        );
        let header = IpHeader::read(&bytes).unwrap();
        assert_eq!((header.length, header.protocol), (40 + 8 + 8 + 12, UDP));
        assert!(header.is_whole);
    }

    #[test]
    fn behind_fragments_and_routing_headers_no_ports_are_read() {
        for kind in [43, 44] {
            let header = IpHeader::read(&packet(&[(kind, &[0; 7])], &[7; 8])).unwrap();
            assert_eq!((header.length, header.protocol), (48, UDP));
            assert!(!header.is_whole, "{kind}");
        }
    }

    #[test]
    fn a_chain_without_end_is_given_up() {
        let options: (u8, &[u8]) = (60, &[0; 7]);
        let header = IpHeader::read(&packet(&[options; 30], &[])).unwrap();
        assert_eq!(header.length, 40 + 8 * MOST_EXTENSIONS);
        assert!(!header.is_whole);
        let whole = IpHeader::read(&packet(&[options; MOST_EXTENSIONS - 1], &[1; 8])).unwrap();
        assert!(whole.is_whole);
    }

    #[test]
    fn contradicting_lengths_are_refused() {
        assert_eq!(IpHeader::read(&packet(&[], &[1; 20])[..59]), None);
        assert_eq!(IpHeader::read(&packet(&[(0, &[200, 0, 0])], &[])), None);
        assert_eq!(IpHeader::read(&[0x60; 39]), None);
        assert_eq!(IpHeader::read(&[0x15; 60]), None);
    }

    #[test]
    fn talk_of_the_kernel_is_known() {
        let mut bytes = packet(&[(0, &[0, 5, 2, 0, 0, 1, 0])], &[143, 0, 0, 0]);
        bytes[IPV6_HEADER] = ICMPV6;
        let known = |bytes: &[u8]| IpHeader::read(bytes).unwrap().is_neighbour_talk(bytes);
        assert!(known(&bytes));
        bytes[48] = 128;
        assert!(!known(&bytes), "an echo request is a program's");
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_read_without_harm(mut bytes in proptest::collection::vec(any::<u8>(), 40..300), six in any::<bool>()) {
            bytes[0] = if six { 0x60 } else { 0x45 };
            if let Some(header) = IpHeader::read(&bytes) {
                prop_assert!(header.length <= header.total && header.total <= bytes.len());
                header.is_neighbour_talk(&bytes);
            }
        }
    }
}
