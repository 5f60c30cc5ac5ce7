//! The interfaces of hosts. A host with links to several neighbours has one for each of them: a node of its own, which packets can come
//! from and go to.
//!
//! The host itself stays a node too: packets from it and to it take the shortest path over any of its links.

use crate::packet::{FIRST_NET, NodeIndex, ROUTER_NET};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::network::{Network, NetworkInterface, NetworkLink};

/// The most interfaces of a host. Links to neighbours beyond them belong to no interface; only packets of the host itself take them.
pub const MOST_INTERFACES: usize = 16;

/// One interface of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceOfHost {
    /// The host.
    pub host: NodeIndex,
    /// Its number among the interfaces of the host, from 0, in the order of the links.
    pub index: u32,
    /// The node that its packets come from and go to: the host itself where it has only one.
    pub node: NodeIndex,
    /// The neighbour that its links lead to; `None` for the only interface of a host, which may have links to none or, where they have one
    /// direction, to several.
    pub neighbour: Option<NodeIndex>,
}

/// The interfaces of all hosts of a network.
#[derive(Clone, Debug, Default)]
pub struct InterfaceTable {
    /// The first interface of each host in the order of hosts, then all further ones in that order.
    all: Vec<InterfaceOfHost>,
    /// By host: where in `all` its second interface is, if it has one.
    second: Vec<usize>,
    /// The interfaces that are nodes of their own, in the order of these nodes.
    own_nodes: Vec<InterfaceOfHost>,
    /// The number of hosts and switches: nodes from this number on are interfaces.
    nodes: u32,
}

impl InterfaceTable {
    /// The interfaces of a network. A host keeps one interface if one of its links has only one direction, or if its interface takes time
    /// for copying or holds a limited number of frames.
    #[must_use]
    pub fn new(plan: &Network) -> Self {
        let nodes = (plan.hosts.len() + plan.switches.len()) as u32;
        let mut table = Self {
            nodes,
            ..Self::default()
        };
        let neighbours = neighbours_of_hosts(plan);
        let mut further = Vec::new();
        for (host, neighbours) in (0..).map(NodeIndex).zip(&neighbours) {
            table.second.push(plan.hosts.len() + further.len());
            if neighbours.len() < 2 {
                table.all.push(InterfaceOfHost {
                    host,
                    index: 0,
                    node: host,
                    neighbour: None,
                });
                continue;
            }
            for (index, neighbour) in (0..).zip(neighbours.iter().take(MOST_INTERFACES)) {
                let interface = InterfaceOfHost {
                    host,
                    index,
                    node: NodeIndex(nodes + table.own_nodes.len() as u32),
                    neighbour: Some(*neighbour),
                };
                table.own_nodes.push(interface);
                if index == 0 {
                    table.all.push(interface);
                } else {
                    further.push(interface);
                }
            }
        }
        table.all.extend(further);
        table
    }

    /// All interfaces: the first of each host in the order of hosts, then all further ones in that order.
    #[must_use]
    pub fn all(&self) -> &[InterfaceOfHost] {
        &self.all
    }

    /// The interfaces that are nodes of their own, in the order of these nodes, which follow hosts and switches.
    #[must_use]
    pub(crate) fn own_nodes(&self) -> &[InterfaceOfHost] {
        &self.own_nodes
    }

    /// Where in [`Self::all`] the interface with that number of a host is.
    #[must_use]
    #[inline]
    pub fn position(&self, host: u32, index: u32) -> Option<usize> {
        if index == 0 {
            return ((host as usize) < self.second.len()).then_some(host as usize);
        }
        let place = *self.second.get(host as usize)? + index as usize - 1;
        let found = self.all.get(place)?;
        (found.host.0 == host && found.index == index).then_some(place)
    }

    /// The interfaces of a host, with their places in [`Self::all`].
    pub fn of_host(&self, host: u32) -> impl Iterator<Item = (usize, InterfaceOfHost)> {
        let places = (0..).map_while(move |index| self.position(host, index));
        places.map(|place| (place, self.all[place]))
    }

    /// The host that a node is or belongs to; a switch is its own.
    #[must_use]
    #[inline]
    pub fn owner(&self, node: NodeIndex) -> NodeIndex {
        match node.0.checked_sub(self.nodes) {
            None => node,
            Some(own) => self
                .own_nodes
                .get(own as usize)
                .map_or(node, |interface| interface.host),
        }
    }

    /// The node with that address: an interface of a host, or a router or switch; `None` where the network has no such node.
    #[must_use]
    pub fn node_at(&self, address: [u8; 4]) -> Option<NodeIndex> {
        let [10, net, high, low] = address else {
            return None;
        };
        let index = (u32::from(high) * 250 + u32::from(low)).checked_sub(1)?;
        if !(1..=250).contains(&low) {
            return None;
        }
        let Some(interface) = net.checked_sub(FIRST_NET) else {
            let node = self.second.len() as u32 + index;
            return (net == ROUTER_NET && node < self.nodes).then_some(NodeIndex(node));
        };
        let place = self.position(index, u32::from(interface))?;
        Some(self.all[place].node)
    }

    /// Whether a node is an interface of a host with several.
    #[must_use]
    #[inline]
    pub const fn is_own_node(&self, node: NodeIndex) -> bool {
        node.0 >= self.nodes
    }
}

/// By host: the nodes that its links lead to, in the order of the links; none for a host that keeps one interface.
fn neighbours_of_hosts(plan: &Network) -> Vec<Vec<NodeIndex>> {
    let hosts = plan.hosts.len();
    let switches = plan.switches.iter().map(|switch| switch.name.as_str());
    let names = plan.hosts.iter().map(|host| host.name.as_str());
    let nodes: BTreeMap<&str, u32> = names.chain(switches).zip(0..).collect();
    let mut neighbours = vec![Vec::new(); hosts];
    let ends = |link: &NetworkLink| {
        let first = nodes.get(link.ends.0.as_str())?;
        Some([*first, *nodes.get(link.ends.1.as_str())?])
    };
    for (link, [first, second]) in plan
        .links
        .iter()
        .filter_map(|link| Some((link, ends(link)?)))
        .filter(|(_, [first, second])| first != second)
    {
        for [node, other] in [[first, second], [second, first]] {
            let Some(known) = neighbours.get_mut(node as usize) else {
                continue;
            };
            let known: &mut Vec<(NodeIndex, bool)> = known;
            match known.iter_mut().find(|(one, _)| one.0 == other) {
                Some((_, is_one_way)) => *is_one_way |= link.one_way,
                None => known.push((NodeIndex(other), link.one_way)),
            }
        }
    }
    let keeps_one = |host: usize, known: &[(NodeIndex, bool)]| {
        plan.hosts[host].interface != NetworkInterface::default()
            || known.iter().any(|(_, is_one_way)| *is_one_way)
    };
    let of_host = |(host, known): (usize, Vec<(NodeIndex, bool)>)| {
        if keeps_one(host, &known) {
            return Vec::new();
        }
        known.into_iter().map(|(node, _)| node).collect()
    };
    neighbours.into_iter().enumerate().map(of_host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use stackline_core::network::{NetworkHost, NetworkSwitch};

    fn network(links: &[(&str, &str)]) -> Network {
        let host = |name: &&str| NetworkHost {
            name: name.to_string(),
            ..NetworkHost::default()
        };
        let switch = |name: &&str| NetworkSwitch {
            name: name.to_string(),
            ..NetworkSwitch::default()
        };
        let link = |(first, second): &(&str, &str)| NetworkLink {
            ends: (first.to_string(), second.to_string()),
            ..NetworkLink::default()
        };
        Network {
            hosts: ["a", "b"].iter().map(host).collect(),
            switches: ["r", "s"].iter().map(switch).collect(),
            links: links.iter().map(link).collect(),
            ..Network::default()
        }
    }

    #[test]
    fn each_neighbour_has_an_interface() {
        let plan = network(&[("a", "s"), ("b", "s"), ("a", "r"), ("r", "s"), ("a", "s")]);
        let table = InterfaceTable::new(&plan);
        let nodes: Vec<_> = table
            .all()
            .iter()
            .map(|one| (one.host.0, one.index, one.node.0))
            .collect();
        assert_eq!(nodes, [(0, 0, 4), (1, 0, 1), (0, 1, 5)]);
        assert_eq!(table.all()[2].neighbour, Some(NodeIndex(2)));
        assert_eq!(
            (table.position(0, 1), table.position(1, 1)),
            (Some(2), None)
        );
        assert_eq!(table.position(0, 2), None);
        let owners = [0, 3, 4, 5, 6].map(|node| table.owner(NodeIndex(node)).0);
        assert_eq!(owners, [0, 3, 0, 0, 6]);
        assert_eq!(table.of_host(0).count(), 2);
    }

    #[test]
    fn one_neighbour_or_one_direction_is_one_interface() {
        let mut plan = network(&[("a", "s"), ("a", "s"), ("b", "s"), ("b", "r"), ("r", "s")]);
        plan.links[3].one_way = true;
        let table = InterfaceTable::new(&plan);
        assert_eq!(table.all().len(), 2);
        assert!(table.all().iter().all(|one| one.node == one.host));
    }
}
