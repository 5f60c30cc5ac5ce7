//! One router of a network: its address, its tables, and what they decide about a packet.

use crate::firewall_table::FirewallTable;
use crate::icmp_limit::IcmpLimit;
use crate::nat_table::NatTable;
use crate::packet::{NodeIndex, router_address};
use crate::routed_packet::{
    FlowEnd, FlowKind, FlowSide, PacketFlow, RoutedHeader, RouterIcmpError,
};
use crate::tap::DropReason;
use alloc::boxed::Box;
use alloc::vec::Vec;
use stackline_core::network::{Network, RouterSettings};
use stackline_core::time::Instant;

/// A router and its state.
#[derive(Debug)]
pub(super) struct NetworkRouter {
    pub(super) address: [u8; 4],
    /// It sends no ICMP.
    pub(super) silent: bool,
    pub(super) limit: IcmpLimit,
    nat: Option<RouterNat>,
    firewall: Option<RouterFirewall>,
}

#[derive(Debug)]
struct RouterNat {
    outside: NodeIndex,
    table: NatTable,
}

#[derive(Debug)]
struct RouterFirewall {
    outside: NodeIndex,
    rejects: bool,
    table: FirewallTable,
}

/// A packet at a router, as its tables see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtRouter {
    /// The headers; `None` in a world whose packets have none.
    pub(super) header: Option<RoutedHeader>,
    /// How the packet names its flow; `None` for a fragment.
    pub(super) flow: Option<PacketFlow>,
    /// The neighbour that it came from; `None` for a packet of the router itself.
    pub(super) came_from: Option<NodeIndex>,
    /// The neighbour that it goes to.
    pub(super) goes_to: NodeIndex,
    /// This router has just translated its destination.
    pub(super) translated: bool,
}

impl AtRouter {
    /// It leaves to `outside` and did not come from there.
    fn goes_out(&self, outside: NodeIndex) -> bool {
        self.goes_to == outside && self.came_from != Some(outside)
    }

    /// It came from `outside` and does not go back there.
    fn comes_in(&self, outside: NodeIndex) -> bool {
        self.came_from == Some(outside) && self.goes_to != outside
    }

    fn quoted(&self) -> Option<PacketFlow> {
        self.header.and_then(|header| header.quoted)
    }
}

/// Why a router drops a packet, and the ICMP error that it sends about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RouterRefusal {
    pub(super) reason: DropReason,
    pub(super) error: Option<RouterIcmpError>,
}

impl RouterRefusal {
    const fn silent(reason: DropReason) -> Self {
        Self {
            reason,
            error: None,
        }
    }
}

/// A translation to carry out.
pub(super) type Translation = (FlowSide, FlowEnd);

/// The routers of a plan, by node; empty when it has none.
pub(super) fn routers(plan: &Network) -> Vec<Option<Box<NetworkRouter>>> {
    if plan.switches.iter().all(|switch| switch.router.is_none()) {
        return Vec::new();
    }
    let node = |name: &str| {
        let hosts = plan.hosts.iter().map(|host| host.name.as_str());
        let names = hosts.chain(plan.switches.iter().map(|switch| switch.name.as_str()));
        let place = names.zip(0..).find(|(known, _)| *known == name);
        NodeIndex(place.map_or(u32::MAX, |(_, index)| index))
    };
    let hosts = plan.hosts.iter().map(|_| None);
    let switches = plan.switches.iter().zip(0..).map(|(switch, index)| {
        let settings = switch.router.as_ref()?;
        Some(Box::new(NetworkRouter::new(settings, index, &node)))
    });
    hosts.chain(switches).collect()
}

impl NetworkRouter {
    fn new(settings: &RouterSettings, index: u32, node: &impl Fn(&str) -> NodeIndex) -> Self {
        Self {
            address: router_address(index),
            silent: settings.silent,
            limit: IcmpLimit::default(),
            nat: settings.nat.as_ref().map(|nat| RouterNat {
                outside: node(&nat.outside),
                table: NatTable::new(nat.timeout, nat.entries),
            }),
            firewall: settings.firewall.as_ref().map(|firewall| RouterFirewall {
                outside: node(&firewall.outside),
                rejects: firewall.rejects,
                table: FirewallTable::new(firewall.idle, firewall.entries),
            }),
        }
    }

    /// The translation of the destination of a packet that came for this router's own address; `None` if it is for the
    /// router itself.
    pub(super) fn translate_inward(
        &mut self,
        now: Instant,
        came_from: Option<NodeIndex>,
        header: &RoutedHeader,
    ) -> Option<Translation> {
        let nat = self
            .nat
            .as_mut()
            .filter(|nat| came_from == Some(nat.outside))?;
        // An error is about a packet that went out: its source is this router's address.
        let asked = match header.quoted {
            Some(quoted) => quoted,
            None => header.flow?.reversed(),
        };
        let inner = nat
            .table
            .inward(now, asked.kind, asked.destination, asked.source.port)?;
        Some((FlowSide::Destination, inner))
    }

    /// Decides about a packet that this router forwards, and which translation it needs on its way out.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        packet: &AtRouter,
    ) -> Result<Option<Translation>, RouterRefusal> {
        if let Some(firewall) = &mut self.firewall {
            firewall.admit(now, packet)?;
        }
        let Some(nat) = &mut self.nat else {
            return Ok(None);
        };
        if packet.comes_in(nat.outside) {
            return nat.admit_inward(now, packet).map(|()| None);
        }
        if !packet.goes_out(nat.outside) || packet.came_from.is_none() {
            return Ok(None);
        }
        nat.outward(now, packet, self.address)
    }
}

impl RouterFirewall {
    fn admit(&mut self, now: Instant, packet: &AtRouter) -> Result<(), RouterRefusal> {
        if packet.comes_in(self.outside) {
            let flow = packet.quoted().map(PacketFlow::reversed).or(packet.flow);
            if flow.is_some_and(|flow| self.table.passes_inward(now, flow)) {
                return Ok(());
            }
            return Err(RouterRefusal {
                reason: DropReason::FirewallRefused,
                error: self.rejects.then_some(RouterIcmpError::Prohibited),
            });
        }
        if !packet.goes_out(self.outside) || packet.quoted().is_some() {
            return Ok(());
        }
        // Fragments name no flow; going out they need none.
        let Some(flow) = packet.flow else {
            return Ok(());
        };
        let full = RouterRefusal::silent(DropReason::FirewallTableFull);
        self.table.pass_outward(now, flow).map_err(|_| full)
    }
}

impl RouterNat {
    /// A packet from outside that goes on inside: it was translated just now, or it has no headers to translate and its
    /// flow is known. One whose headers name an inner address is refused.
    fn admit_inward(&mut self, now: Instant, packet: &AtRouter) -> Result<(), RouterRefusal> {
        let is_known = |flow: PacketFlow| self.table.port_of(now, &flow.reversed()).is_some();
        if packet.translated || packet.header.is_none() && packet.flow.is_some_and(is_known) {
            return Ok(());
        }
        Err(RouterRefusal::silent(DropReason::NotTranslated))
    }

    fn outward(
        &mut self,
        now: Instant,
        packet: &AtRouter,
        address: [u8; 4],
    ) -> Result<Option<Translation>, RouterRefusal> {
        let refused = RouterRefusal::silent(DropReason::NotTranslated);
        let port = if let Some(quoted) = packet.quoted() {
            // An error from inside about a packet that came in.
            let asked = quoted.reversed();
            self.table.port_of(now, &asked).ok_or(refused)?
        } else {
            let flow = packet.flow.ok_or(refused)?;
            let full = RouterRefusal::silent(DropReason::NatTableFull);
            self.table.outward(now, flow).map_err(|_| full)?
        };
        let end = FlowEnd { address, port };
        Ok(packet.header.map(|_| (FlowSide::Source, end)))
    }
}

/// The flow of a packet without headers: its number between two nodes.
pub(super) fn simulated_flow(from: [u8; 4], to: [u8; 4], number: u32) -> PacketFlow {
    let end = |address| FlowEnd { address, port: 0 };
    PacketFlow {
        kind: FlowKind::Simulated(number),
        source: end(from),
        destination: end(to),
    }
}
