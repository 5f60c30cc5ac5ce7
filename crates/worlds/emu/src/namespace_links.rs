//! Composes the rtnetlink requests that set up a host: both ends of its veth pair, its address, its routes, its one neighbour. They are
//! sent by `netlink_requests`.

use crate::netlink_requests::RtnlBatch;
use crate::path_mtu::{LEAST_IPV6_MTU, PathMtus};
use crate::veth_port;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::RawFd;

/// The next hop of every IPv4 route of every host; no interface has this address.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(169, 254, 71, 1);
/// The next hop of every IPv6 route.
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x71, 1);
/// The gateway's Ethernet address. No interface has it, so the central namespace's own stack ignores the hosts' frames.
pub(crate) const GATEWAY_MAC: [u8; 6] = [0x02, 0x47, 0xa9, 0xfe, 0x47, 0x01];
/// Index of `lo` in every network namespace.
const LOOPBACK: u32 = 1;
/// The first index of the interfaces that are made here. It is so high because a new namespace has more interfaces than `lo` where
/// modules of tunnels are loaded: the kernel makes `tunl0`, `sit0` and others, with the indices behind that of `lo`.
const FIRST: u32 = 1000;
/// Index of `eth0` in every host's namespace.
const ETH0: u32 = FIRST;
/// Description of the request that fails if the kernel has no driver for virtual Ethernet.
pub(crate) const VETH: &str = "creating a virtual Ethernet pair";

/// Ethernet address of a host.
pub(crate) fn host_mac(number: u32) -> [u8; 6] {
    mac(0x0a, number)
}

/// Interface index of the central end of a host's pair.
pub(crate) const fn central_index(number: u32) -> u32 {
    FIRST + number
}

/// A locally administered Ethernet address; `kind` distinguishes the two ends of a pair.
fn mac(kind: u8, number: u32) -> [u8; 6] {
    let [a, b, c, d] = number.to_be_bytes();
    [0x02, kind, a, b, c, d]
}

/// Requests that `lo` be up.
pub(crate) fn set_loopback_up(batch: &mut RtnlBatch) {
    batch.change(
        "bringing up the loopback interface",
        Message::SetLink(up(LOOPBACK)),
    );
}

/// Requests that the central end of a host's pair be up.
pub(crate) fn set_central_end_up(number: u32, batch: &mut RtnlBatch) {
    batch.change(
        "bringing up the central end of a virtual Ethernet pair",
        Message::SetLink(up(central_index(number))),
    );
}

/// The message that brings an interface up.
fn up(index: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    link
}

/// The pair of one host, configured from the host's namespace.
pub(crate) struct HostVethPair<'a> {
    /// The host's index in its network.
    pub(crate) number: u32,
    /// Whether the host has IPv6.
    pub(crate) has_ipv6: bool,
    /// The MTUs of its interface and its routes.
    pub(crate) mtus: &'a PathMtus,
    /// The central namespace.
    pub(crate) central: RawFd,
}

impl HostVethPair<'_> {
    /// Requests both ends of the pair, neither of them up.
    pub(crate) fn make(&self, batch: &mut RtnlBatch) {
        batch.create(VETH, Message::NewLink(self.veth()));
    }

    /// Requests that the host's end be up, with address, neighbour and routes. The central end must be up already: in the other order
    /// the host's end would notice its carrier only some time later, and lose what is sent until then.
    pub(crate) fn open(&self, batch: &mut RtnlBatch) {
        batch.change("bringing up a host's interface", Message::SetLink(up(ETH0)));
        self.add_family(batch, &Family::V4);
        if self.has_ipv6 {
            self.add_family(batch, &Family::V6);
        }
    }

    /// Requests the address, the neighbour and the routes of a version of IP.
    fn add_family(&self, batch: &mut RtnlBatch, family: &Family) {
        batch.create(
            "adding a host's address",
            Message::NewAddress(family.address(self.number)),
        );
        batch.create(
            "adding a host's neighbour",
            Message::NewNeighbour(family.neighbour()),
        );
        let all = self.mtus.larger.iter().map(|(to, mtu)| (Some(*to), *mtu));
        let carried = all
            .chain([(None, self.mtus.route)])
            .filter(|(_, mtu)| *mtu >= family.least_mtu());
        for (to, mtu) in carried {
            batch.create(
                "adding a host's route",
                Message::NewRoute(family.route(to, mtu)),
            );
        }
    }

    /// The message that makes the pair: the host's end here, its peer in the central namespace.
    fn veth(&self) -> LinkMessage {
        let mut central = LinkMessage::default();
        central.header.index = central_index(self.number);
        central.attributes =
            self.properties(format!("port{}", self.number), mac(0x0b, self.number));
        central
            .attributes
            .push(LinkAttribute::NetNsFd(self.central));
        let mut host = LinkMessage::default();
        host.header.index = ETH0;
        host.attributes = self.properties("eth0".into(), host_mac(self.number));
        let data = InfoData::Veth(InfoVeth::Peer(central));
        host.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(data),
        ]));
        host
    }

    /// Attributes that both ends have.
    fn properties(&self, name: String, mac: [u8; 6]) -> Vec<LinkAttribute> {
        let mtu = LinkAttribute::Mtu(self.mtus.interface);
        vec![
            LinkAttribute::IfName(name),
            LinkAttribute::Address(mac.to_vec()),
            mtu,
        ]
    }
}

/// A version of IP: what its addresses, neighbours and routes are like.
enum Family {
    V4,
    V6,
}

impl Family {
    const fn of_kernel(&self) -> AddressFamily {
        match self {
            Self::V4 => AddressFamily::Inet,
            Self::V6 => AddressFamily::Inet6,
        }
    }

    /// The least MTU of a path that carries it.
    const fn least_mtu(&self) -> u32 {
        match self {
            Self::V4 => 0,
            Self::V6 => LEAST_IPV6_MTU,
        }
    }

    /// Bits of an address.
    const fn bits(&self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    const fn gateway(&self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(GATEWAY),
            Self::V6 => IpAddr::V6(GATEWAY_V6),
        }
    }

    fn address_of(&self, host: u32) -> IpAddr {
        match self {
            Self::V4 => veth_port::address(host).into(),
            Self::V6 => veth_port::address_v6(host).into(),
        }
    }

    /// A host's address.
    fn address(&self, host: u32) -> AddressMessage {
        let mut message = AddressMessage::default();
        message.header.family = self.of_kernel();
        // No subnet: everything goes to the gateway.
        message.header.prefix_len = self.bits();
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.index = ETH0;
        let address = self.address_of(host);
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        message
    }

    /// The entry of the gateway: permanent, so that no host asks for its Ethernet address.
    fn neighbour(&self) -> NeighbourMessage {
        let mut message = NeighbourMessage::default();
        message.header.family = self.of_kernel();
        message.header.ifindex = ETH0;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::from(self.gateway())),
            NeighbourAttribute::LinkLayerAddress(GATEWAY_MAC.to_vec()),
        ];
        message
    }

    /// A route through the gateway: to one host, or the default route if `to` is `None`.
    fn route(&self, to: Option<u32>, mtu: u32) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = self.of_kernel();
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        // The gateway is in none of the host's subnets.
        message.header.flags = RouteFlags::Onlink;
        message.attributes = vec![
            RouteAttribute::Oif(ETH0),
            RouteAttribute::Gateway(self.gateway().into()),
            RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)]),
        ];
        if let Some(to) = to {
            message.header.destination_prefix_length = self.bits();
            message
                .attributes
                .push(RouteAttribute::Destination(self.address_of(to).into()));
        }
        message
    }
}
