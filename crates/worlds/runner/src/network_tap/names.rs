//! The names of nodes and ports, which the network model knows by number.

use stackline_core::network::Network;
use stackline_net::{NetworkLocation, NodeIndex, PortIndex};
use std::borrow::Cow;

/// The names of the nodes and ports of one network.
#[derive(Debug)]
pub(super) struct TapNames {
    pub(super) nodes: Vec<String>,
    /// The number of hosts for which `ends` is filled; 0 in large networks.
    hosts: usize,
    /// By port: its name, and the node that sends into it.
    ports: Vec<(String, u32)>,
    /// The names of all pairs of hosts, as `khons>udjat`, at index `from * hosts + to`.
    ends: Vec<String>,
}

impl TapNames {
    pub(super) fn from_network(network: &Network) -> Self {
        let hosts = network.hosts.iter().map(|host| host.name.clone());
        let nodes: Vec<String> = hosts
            .chain(network.switches.iter().map(|switch| switch.name.clone()))
            .collect();
        let node = |name: &str| {
            (0..)
                .zip(&nodes)
                .find(|(_, node)| *node == name)
                .map_or(u32::MAX, |(number, _)| number)
        };
        let directions = network
            .links
            .iter()
            .flat_map(|link| [node(&link.ends.0), node(&link.ends.1)]);
        let ports = (0..)
            .zip(directions)
            .map(|(port, sender)| (network.port_name(port).unwrap_or_default(), sender));
        let ports = ports.collect();
        // Thousands of hosts have more pairs than are worth keeping: their names are made on demand.
        let hosts = if network.hosts.len() <= 256 {
            network.hosts.len()
        } else {
            0
        };
        let between = |at: usize| format!("{}>{}", nodes[at / hosts], nodes[at % hosts]);
        let ends = (0..hosts * hosts).map(between).collect();
        Self {
            nodes,
            hosts,
            ports,
            ends,
        }
    }

    /// The node of a location, and the location's name.
    pub(super) fn place(&self, place: NetworkLocation) -> (u32, &str) {
        match place {
            NetworkLocation::Port(PortIndex(port)) => self
                .ports
                .get(port as usize)
                .map_or((u32::MAX, "?"), |(name, node)| (*node, name)),
            NetworkLocation::Host(NodeIndex(node)) => (
                node,
                self.nodes.get(node as usize).map_or("?", String::as_str),
            ),
        }
    }

    /// The name of a pair of hosts, `from>to`.
    pub(super) fn ends(&self, from: NodeIndex, to: NodeIndex) -> Cow<'_, str> {
        match self.ends.get(from.0 as usize * self.hosts + to.0 as usize) {
            Some(ends) => Cow::Borrowed(ends),
            None => {
                let node = |NodeIndex(node): NodeIndex| {
                    self.nodes.get(node as usize).map_or("?", String::as_str)
                };
                Cow::Owned(format!("{}>{}", node(from), node(to)))
            }
        }
    }
}
