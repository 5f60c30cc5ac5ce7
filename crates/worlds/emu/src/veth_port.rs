//! A host's port: the end of its veth pair where its frames enter and leave the emulator. `testbed` creates ports, the engine serves them.
//! Also computes the hosts' addresses.

use stackline_net::NodeIndex;
use std::net::Ipv4Addr;
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

/// The address of the host with this index in its network, which is below [`MOST_HOSTS`]: 10.71.0.1 to 10.71.255.250. Only 250 of the 256
/// values of the last byte are used, so that no address ends in 0 or 255.
#[must_use]
pub fn address(host: u32) -> Ipv4Addr {
    let [_, _, high, low] = (host / 250 * 256 + host % 250 + 1).to_be_bytes();
    Ipv4Addr::new(10, 71, high, low)
}

/// The host's index in its network; `None` for an address that no host has.
#[must_use]
pub fn host_index(address: Ipv4Addr) -> Option<u32> {
    let [first, second, high, low] = address.octets();
    let host = (u32::from(high) * 250 + u32::from(low)).checked_sub(1)?;
    ((first, second) == (10, 71) && (1..=250).contains(&low)).then_some(host)
}

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
            assert_eq!(host_index(address(host)), Some(host));
        }
        for nobody in [
            [10, 71, 0, 0],
            [10, 71, 3, 251],
            [10, 70, 0, 1],
            [255, 255, 255, 255],
        ] {
            assert_eq!(host_index(Ipv4Addr::from(nobody)), None);
        }
    }
}
