//! A host's port: the end of its veth pair where its frames enter and leave the emulator. `testbed` creates ports, the engine serves them.
//! Also computes the hosts' addresses.

use stackline_net::interfaces::MOST_INTERFACES;
use stackline_net::{NodeIndex, packet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

/// The connection of an interface of a host to the emulator.
#[derive(Debug)]
pub struct VethPort {
    /// The interface of the host, as packets of the network name it.
    pub node: NodeIndex,
    /// The index of the host in its network.
    pub host: u32,
    /// The number of the interface among the host's.
    pub interface: u32,
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

/// The IPv4 address of an interface of the host with this index in its network, which is below [`MOST_HOSTS`]: 10.71.0.1 to 10.71.255.250
/// for first interfaces, 10.72.x.y for second ones. Only 250 of the 256 values of the last byte are used, so that no address ends in 0 or
/// 255.
#[must_use]
pub fn address(host: u32, interface: u32) -> Ipv4Addr {
    packet::interface_address(NodeIndex(host), interface).into()
}

/// The IPv6 address of an interface of the host with this index in its network: fd71::1 is the first of the first host, fd71:0:0:1::1 its
/// second.
#[must_use]
pub fn address_v6(host: u32, interface: u32) -> Ipv6Addr {
    packet::interface_address_v6(NodeIndex(host), interface).into()
}

/// The index of the host and the number of the interface with this address; `None` for an address that no host has.
#[must_use]
#[inline]
pub fn holder(address: IpAddr) -> Option<(u32, u32)> {
    match address {
        IpAddr::V4(address) => {
            let [first, second, high, low] = address.octets();
            let host = (u32::from(high) * 250 + u32::from(low)).checked_sub(1)?;
            let interface = second.checked_sub(71)?;
            let is_held =
                first == 10 && usize::from(interface) < MOST_INTERFACES && (1..=250).contains(&low);
            is_held.then_some((host, interface.into()))
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let host = (bits as u32).checked_sub(1)?;
            let interface = (bits >> 64) as u16;
            let is_held = bits >> 80 == PREFIX_V6
                && (bits >> 32) as u32 == 0
                && usize::from(interface) < MOST_INTERFACES;
            is_held.then_some((host, interface.into()))
        }
    }
}

/// The upper 48 bits of the hosts' IPv6 addresses; the next 16 are the number of the interface.
const PREFIX_V6: u128 = 0xfd71 << 32;

/// Number of possible host addresses.
pub const MOST_HOSTS: usize = 250 * 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_never_end_in_0_or_255() {
        assert_eq!(address(0, 0), Ipv4Addr::new(10, 71, 0, 1));
        assert_eq!(address(249, 0), Ipv4Addr::new(10, 71, 0, 250));
        assert_eq!(address(250, 1), Ipv4Addr::new(10, 72, 1, 1));
        assert_eq!(
            address(MOST_HOSTS as u32 - 1, 0),
            Ipv4Addr::new(10, 71, 255, 250)
        );
    }

    #[test]
    fn addresses_map_back_to_their_hosts() {
        for host in [0, 1, 249, 250, 12_345, MOST_HOSTS as u32 - 1] {
            for interface in [0, 1, MOST_INTERFACES as u32 - 1] {
                let there = Some((host, interface));
                assert_eq!(holder(address(host, interface).into()), there);
                assert_eq!(holder(address_v6(host, interface).into()), there);
            }
        }
        for nobody in [
            "10.71.0.0",
            "10.71.3.251",
            "10.70.0.1",
            "10.87.0.1",
            "255.255.255.255",
            "fd71::",
            "fd71:0:0:10::1",
            "fd71:0:1::1",
            "fd71::1:0:1",
            "fe80::1",
            "ff02::1",
        ] {
            assert_eq!(holder(nobody.parse().unwrap()), None, "{nobody}");
        }
    }
}
