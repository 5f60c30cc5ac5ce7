//! Routes that are written in the text of a network, as ports by node and destination.

use crate::packet::NodeIndex;
use crate::tap::PortIndex;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::network::{Network, StaticRoute};

/// The written routes of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct StaticRoutes {
    /// By node and destination.
    to_node: BTreeMap<(NodeIndex, NodeIndex), Vec<PortIndex>>,
    /// By node: the route to all other destinations.
    default: BTreeMap<NodeIndex, DefaultRoute>,
    /// Mixed into the flow's number, so that another seed spreads flows in another way.
    pub(crate) salt: u32,
}

#[derive(Clone, Debug)]
struct DefaultRoute {
    ports: Vec<PortIndex>,
    /// The node's neighbours, which it reaches directly.
    direct: Vec<NodeIndex>,
}

impl StaticRoutes {
    /// The routes of a plan; `None` when it has none. `ports` gives the cheapest ports from a node to a neighbour.
    pub(crate) fn from_plan(
        plan: &Network,
        nodes: &BTreeMap<&str, u32>,
        ports: impl Fn(NodeIndex, NodeIndex) -> Vec<PortIndex>,
    ) -> Option<Box<Self>> {
        let of_hosts = plan.hosts.iter().map(|host| (&host.name, &host.routes));
        let of_switches = plan.switches.iter().map(|node| (&node.name, &node.routes));
        let mut written = Self::default();
        let node = |name: &str| nodes.get(name).copied().map(NodeIndex);
        for (name, routes) in of_hosts.chain(of_switches) {
            let Some(at) = node(name) else { continue };
            for route in routes {
                let via = route.via.iter().filter_map(|name| node(name));
                let ports = via.flat_map(|via| ports(at, via)).collect();
                written.add(plan, at, route, ports, &node);
            }
        }
        let empty = written.to_node.is_empty() && written.default.is_empty();
        (!empty).then(|| Box::new(written))
    }

    fn add(
        &mut self,
        plan: &Network,
        at: NodeIndex,
        route: &StaticRoute,
        ports: Vec<PortIndex>,
        node: &impl Fn(&str) -> Option<NodeIndex>,
    ) {
        if let Some(to) = &route.to {
            let to = node(to).map(|to| (at, to));
            self.to_node.extend(to.map(|key| (key, ports)));
            return;
        }
        let others = plan.links.iter().flat_map(|link| {
            let ends = [node(&link.ends.0), node(&link.ends.1)];
            let back = ends[0].filter(|_| ends[1] == Some(at) && !link.one_way);
            ends[1]
                .filter(|_| ends[0] == Some(at))
                .into_iter()
                .chain(back)
        });
        let direct = others.collect();
        self.default.insert(at, DefaultRoute { ports, direct });
    }

    /// The equal ports by which a packet to `to` leaves `at`; `None` where no written route applies.
    #[inline]
    pub(crate) fn ports(&self, at: NodeIndex, to: NodeIndex) -> Option<&[PortIndex]> {
        if let Some(ports) = self.to_node.get(&(at, to)) {
            return Some(ports);
        }
        let default = self.default.get(&at)?;
        (!default.direct.contains(&to)).then_some(&default.ports)
    }
}
