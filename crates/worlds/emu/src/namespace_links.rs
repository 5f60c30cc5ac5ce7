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
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use stackline_net::interfaces::InterfaceOfHost;
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
/// The table of routes that packets from a host's first interface take, where it has several; further ones follow.
const FIRST_TABLE: u8 = 100;
/// The priority of the rule that chooses that table.
const FIRST_PRIORITY: u32 = 1000;
/// Description of the request that fails if the kernel has no driver for virtual Ethernet.
pub(crate) const VETH: &str = "creating a virtual Ethernet pair";

/// Ethernet address of a host's end of a pair.
pub(crate) fn host_mac(number: u32) -> [u8; 6] {
    mac(0x0a, number)
}

/// Interface index of the central end of a host's pair.
pub(crate) const fn central_index(number: u32) -> u32 {
    FIRST + number
}

/// Index of the host's end in its namespace: that of `eth0` and those behind it.
pub(crate) const fn host_index(interface: u32) -> u32 {
    FIRST + interface
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

/// The pair of one interface of a host, configured from the host's namespace.
pub(crate) struct HostVethPair<'a> {
    /// The interface's place among all.
    pub(crate) number: u32,
    /// All interfaces.
    pub(crate) all: &'a [InterfaceOfHost],
    /// Whether the host has others.
    pub(crate) has_others: bool,
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
        let index = host_index(self.interface().index);
        batch.change(
            "bringing up a host's interface",
            Message::SetLink(up(index)),
        );
        self.add_family(batch, &HostAddressFamily::V4);
        if self.has_ipv6 {
            self.add_family(batch, &HostAddressFamily::V6);
        }
    }

    /// The interface itself.
    const fn interface(&self) -> InterfaceOfHost {
        self.all[self.number as usize]
    }

    /// Requests the address, the neighbour and the routes of a version of IP.
    fn add_family(&self, batch: &mut RtnlBatch, family: &HostAddressFamily) {
        let own = self.interface();
        batch.create(
            "adding a host's address",
            Message::NewAddress(family.address(&own)),
        );
        batch.create(
            "adding a host's neighbour",
            Message::NewNeighbour(family.neighbour(own.index)),
        );
        let mut routes: Vec<RouteMessage> = Vec::new();
        for (to, mtu) in &self.mtus.routes {
            let mtu = family.mtu(self.mtus, *mtu);
            if mtu >= family.least_mtu() {
                routes.push(family.route(own.index, Some(&self.all[*to as usize]), mtu));
            }
        }
        let mtu = family.mtu(self.mtus, self.mtus.route);
        if mtu >= family.least_mtu() {
            let mut default = family.route(own.index, None, mtu);
            if self.has_others {
                let mut of_source = default.clone();
                of_source.header.table = FIRST_TABLE + own.index as u8;
                routes.push(of_source);
                batch.create(
                    "adding a host's rule for one of its addresses",
                    Message::NewRule(family.rule(&own)),
                );
                // So that the first interface is the default, and others can be chosen by name.
                let metric = u32::from(FIRST_TABLE) + own.index;
                default.attributes.push(RouteAttribute::Priority(metric));
            }
            routes.push(default);
        }
        for route in routes {
            batch.create("adding a host's route", Message::NewRoute(route));
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
        let own = self.interface().index;
        host.header.index = host_index(own);
        host.attributes = self.properties(format!("eth{own}"), host_mac(self.number));
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
enum HostAddressFamily {
    V4,
    V6,
}

impl HostAddressFamily {
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

    /// The MTU of a route whose MTU is that of IPv4.
    const fn mtu(&self, mtus: &PathMtus, mtu: u32) -> u32 {
        match self {
            Self::V4 => mtu,
            Self::V6 => mtus.of_ipv6(mtu),
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

    fn address_of(&self, one: &InterfaceOfHost) -> IpAddr {
        match self {
            Self::V4 => veth_port::address(one.host.0, one.index).into(),
            Self::V6 => veth_port::address_v6(one.host.0, one.index).into(),
        }
    }

    /// The address of an interface.
    fn address(&self, own: &InterfaceOfHost) -> AddressMessage {
        let mut message = AddressMessage::default();
        message.header.family = self.of_kernel();
        // No subnet: everything goes to the gateway.
        message.header.prefix_len = self.bits();
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.index = host_index(own.index);
        let address = self.address_of(own);
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        message
    }

    /// The entry of the gateway: permanent, so that no host asks for its Ethernet address.
    fn neighbour(&self, interface: u32) -> NeighbourMessage {
        let mut message = NeighbourMessage::default();
        message.header.family = self.of_kernel();
        message.header.ifindex = host_index(interface);
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::from(self.gateway())),
            NeighbourAttribute::LinkLayerAddress(GATEWAY_MAC.to_vec()),
        ];
        message
    }

    /// The rule by which packets from an address of a host leave by its interface.
    fn rule(&self, own: &InterfaceOfHost) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = self.of_kernel();
        message.header.src_len = self.bits();
        message.header.table = FIRST_TABLE + own.index as u8;
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Source(self.address_of(own)),
            RuleAttribute::Priority(FIRST_PRIORITY + own.index),
        ];
        message
    }

    /// A route by an interface and its gateway: to one address, or the default route if `to` is `None`.
    fn route(&self, interface: u32, to: Option<&InterfaceOfHost>, mtu: u32) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = self.of_kernel();
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        // The gateway is in none of the host's subnets.
        message.header.flags = RouteFlags::Onlink;
        message.attributes = vec![
            RouteAttribute::Oif(host_index(interface)),
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
