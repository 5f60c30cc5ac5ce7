//! A host's port: the end of its veth pair where its frames enter and leave the emulator. `testbed` creates ports, the engine serves them.
//! Also computes the hosts' addresses.

use stackline_net::{NodeIndex, packet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

/// One host's connection to the emulator.
#[derive(Debug)]
pub struct VethPort {
    /// The host.
    pub node: NodeIndex,
    /// `AF_PACKET`, `SOCK_RAW`, bound to the central end of the host's veth pair for all protocols, non-blocking, with
    /// `PACKET_VNET_HDR` (a virtio-net header before every frame, both ways) and `PACKET_IGNORE_OUTGOING`.
    pub socket: OwnedFd,
    /// Ethernet address of the host's end.
    pub host_mac: [u8; 6],
    /// Ethernet address that the host sends everything to, and that frames to the host come from.
    pub gateway_mac: [u8; 6],
    /// Address of the host.
    pub address: Ipv4Addr,
    /// Largest packet the host sends, in bytes of the network layer (a train of segments may be longer).
    pub mtu: u32,
}

/// The IPv4 address of the host with this index in its network, which is below [`MOST_HOSTS`]: 10.71.0.1 to 10.71.255.250. Only 250 of the
/// 256 values of the last byte are used, so that no address ends in 0 or 255.
#[must_use]
pub fn address(host: u32) -> Ipv4Addr {
    packet::host_address(NodeIndex(host)).into()
}

/// The IPv6 address of the host with this index in its network: fd71::1 is that of the first.
#[must_use]
pub fn address_v6(host: u32) -> Ipv6Addr {
    packet::host_address_v6(NodeIndex(host)).into()
}

/// The host's index in its network; `None` for an address that no host has.
#[must_use]
#[inline]
pub fn host_index(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) => {
            let [first, second, high, low] = address.octets();
            let host = (u32::from(high) * 250 + u32::from(low)).checked_sub(1)?;
            ((first, second) == (10, 71) && (1..=250).contains(&low)).then_some(host)
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let host = (bits as u32).checked_sub(1)?;
            (bits >> 32 == PREFIX_V6).then_some(host)
        }
    }
}

/// The upper 96 bits of the hosts' IPv6 addresses.
const PREFIX_V6: u128 = 0xfd71 << 80;

/// Number of possible host addresses.
pub const MOST_HOSTS: usize = 250 * 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_never_end_in_0_or_255() {
        assert_eq!(address(0), Ipv4Addr::new(10, 71, 0, 1));
        assert_eq!(address(249), Ipv4Addr::new(10, 71, 0, 250));
        assert_eq!(address(250), Ipv4Addr::new(10, 71, 1, 1));
        assert_eq!(
            address(MOST_HOSTS as u32 - 1),
            Ipv4Addr::new(10, 71, 255, 250)
        );
    }

    #[test]
    fn addresses_map_back_to_their_hosts() {
        for host in [0, 1, 249, 250, 12_345, MOST_HOSTS as u32 - 1] {
            assert_eq!(host_index(address(host).into()), Some(host));
            assert_eq!(host_index(address_v6(host).into()), Some(host));
        }
        for nobody in [
            [10, 71, 0, 0],
            [10, 71, 3, 251],
            [10, 70, 0, 1],
            [255, 255, 255, 255],
        ] {
            assert_eq!(host_index(IpAddr::from(nobody)), None);
        }
        for nobody in ["fd71::", "fd71:0:0:1::1", "fe80::1", "ff02::1"] {
            assert_eq!(host_index(nobody.parse().unwrap()), None, "{nobody}");
        }
    }
}
