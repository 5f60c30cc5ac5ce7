//! Nodes, the directions of links between them, and static shortest paths.
//!
//! Switches forward packets; hosts do not. A hop costs its propagation delay and the time that a packet of 1500 bytes
//! takes on it. Where several next hops cost the same, a flow keeps to one of them. A node with one neighbour (a
//! "leaf") needs no routes of its own: its packets go to that neighbour first. All other nodes are "core" nodes; routes
//! to one of them are computed when the first packet is on its way there.

use crate::interfaces::InterfaceTable;
use crate::packet::NodeIndex;
use crate::static_routes::StaticRoutes;
use crate::tap::PortIndex;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::cmp::Reverse;
use stackline_core::network::{LinkRate, Network, NetworkLink};

/// Bytes of the packet used to compute costs.
const TYPICAL_BYTES: f64 = 1500.0;

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TopologyEdge {
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    /// The cost of a packet of 1500 bytes on it, in ns, at least 1.
    pub(crate) cost: u64,
    /// Whether this direction can be used: a one-way link has no way back.
    there: bool,
}

/// Neighbours and next hops.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    /// All directions, by port.
    pub(crate) edges: Vec<TopologyEdge>,
    /// By node: the ports that lead out of it.
    out: Vec<Vec<PortIndex>>,
    /// By node: the ports that lead into it.
    into: Vec<Vec<PortIndex>>,
    /// By node: its neighbour if it is a leaf.
    leaf_of: Vec<Option<NodeIndex>>,
    /// By leaf: the equal cheapest links to its neighbour, as a range (start, count) of `hops`.
    leaving: Vec<(u32, u32)>,
    /// By leaf: the equal cheapest links from its neighbour, as a range (start, count) of `hops`.
    entering: Vec<(u32, u32)>,
    /// By node: its number among the core nodes, the nodes that are not leaves.
    core: Vec<Option<u32>>,
    /// By core node: the routes to it, computed when the first packet needs them. A table for all pairs would grow with
    /// the square of their number.
    columns: RefCell<Vec<Option<Box<RouteColumn>>>>,
    /// The ports that `leaving` and `entering` are ranges of.
    hops: Vec<PortIndex>,
    /// The number of hosts; nodes from this number on are switches.
    hosts: usize,
    /// Interfaces of hosts with several: leaves that share the links of their host.
    interfaces: InterfaceTable,
    /// Routes that override the shortest paths: rare, so boxed.
    written: Option<Box<StaticRoutes>>,
}

/// The routes from all core nodes to one core node.
#[derive(Clone, Debug)]
struct RouteColumn {
    /// By core node: its equal next hops, as a range (start, count) of `hops`.
    ranges: Vec<(u32, u32)>,
    /// The ports that `ranges` refers to.
    hops: Vec<PortIndex>,
}

impl Topology {
    /// The topology of a checked plan; links whose ends are unknown lead nowhere.
    pub(crate) fn new(plan: &Network) -> Self {
        let names = plan
            .hosts
            .iter()
            .map(|host| host.name.as_str())
            .chain(plan.switches.iter().map(|s| s.name.as_str()));
        let nodes: BTreeMap<&str, u32> = names.zip(0..).collect();
        let count = plan.hosts.len() + plan.switches.len();
        let edges: Vec<TopologyEdge> = plan
            .links
            .iter()
            .flat_map(|link| directions(link, &nodes))
            .collect();
        let (mut out, mut into) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for (edge, port) in edges.iter().zip(0..).filter(|(edge, _)| edge.there) {
            out[edge.from.0 as usize].push(PortIndex(port));
            into[edge.to.0 as usize].push(PortIndex(port));
        }
        let interfaces = InterfaceTable::new(plan);
        let mut leaf_of = leaves(&edges, count);
        leaf_of.extend(interfaces.own_nodes().iter().map(|own| own.neighbour));
        let all = leaf_of.len();
        let mut cores: u32 = 0;
        let core = leaf_of.iter().map(|leaf| {
            cores += u32::from(leaf.is_none());
            // Counted just now for this node, so it is at least 1.
            leaf.is_none().then(|| cores - 1)
        });
        let core = core.collect();
        let columns = RefCell::new(vec![None; cores as usize]);
        let (leaving, entering) = (vec![(0, 0); all], vec![(0, 0); all]);
        let mut topology = Self {
            edges,
            out,
            into,
            leaf_of,
            leaving,
            entering,
            core,
            columns,
            hops: Vec::new(),
            hosts: plan.hosts.len(),
            interfaces,
            written: None,
        };
        topology.fill_leaves();
        topology.written = StaticRoutes::from_plan(plan, &nodes, |from, to| {
            let towards = |port: &PortIndex| topology.edge(*port).to == to;
            let out = topology.out.get(from.0 as usize).into_iter().flatten();
            let ports: Vec<PortIndex> = out.copied().filter(towards).collect();
            let mut equal = Vec::new();
            cheapest(&topology.edges, &ports, &mut equal);
            equal
        });
        topology
    }

    /// Takes the seed by which flows are spread over the next hops of a written route.
    pub(crate) fn spread_by(&mut self, salt: u32) {
        if let Some(written) = &mut self.written {
            written.salt = salt;
        }
    }

    /// The port by which a packet of that flow leaves `at` on its way to `to`; `None` when no path leads there.
    #[inline]
    pub(crate) fn next(&self, at: NodeIndex, to: NodeIndex, flow: u32) -> Option<PortIndex> {
        if let Some(written) = &self.written
            && let Some(ports) = written.ports(at, self.interfaces.owner(to))
        {
            return pick(ports, flow ^ written.salt);
        }
        let target = *self.leaf_of.get(to.0 as usize)?;
        if target == Some(at) {
            // The last hop, perhaps over one of several links.
            return pick(self.range(self.entering[to.0 as usize])?, flow);
        }
        if self.leaf_of.get(at.0 as usize)?.is_some() {
            return pick(self.range(self.leaving[at.0 as usize])?, flow);
        }
        let target = target.unwrap_or(to);
        let (row, column) = (
            self.core[at.0 as usize]? as usize,
            self.core[target.0 as usize]? as usize,
        );
        // `column` below does not look at `columns`: the borrow cannot collide.
        let mut columns = self.columns.borrow_mut();
        let column = columns
            .get_mut(column)?
            .get_or_insert_with(|| Box::new(self.column(target)));
        let (start, count) = *column.ranges.get(row)?;
        pick(
            column.hops.get(start as usize..(start + count) as usize)?,
            flow,
        )
    }

    /// The ports of a range of `hops`.
    fn range(&self, start_and_count: (u32, u32)) -> Option<&[PortIndex]> {
        let (start, count) = start_and_count;
        self.hops.get(start as usize..(start + count) as usize)
    }

    /// Fills `leaving` and `entering` for every leaf.
    fn fill_leaves(&mut self) {
        for (leaf, into) in self
            .into
            .iter()
            .enumerate()
            .filter(|(leaf, _)| self.leaf_of[*leaf].is_some())
        {
            self.leaving[leaf] = cheapest(&self.edges, &self.out[leaf], &mut self.hops);
            self.entering[leaf] = cheapest(&self.edges, into, &mut self.hops);
        }
        for own in self.interfaces.own_nodes() {
            let (host, leaf) = (own.host.0 as usize, own.node.0 as usize);
            let neighbour = own.neighbour;
            let edges = &self.edges;
            let there = |port: &PortIndex| Some(edges[port.0 as usize].to) == neighbour;
            let back = |port: &PortIndex| Some(edges[port.0 as usize].from) == neighbour;
            let leaving: Vec<PortIndex> = self.out[host].iter().copied().filter(there).collect();
            let entering: Vec<PortIndex> = self.into[host].iter().copied().filter(back).collect();
            self.leaving[leaf] = cheapest(edges, &leaving, &mut self.hops);
            self.entering[leaf] = cheapest(edges, &entering, &mut self.hops);
        }
    }

    /// The interfaces of hosts.
    pub(crate) const fn interfaces(&self) -> &InterfaceTable {
        &self.interfaces
    }

    /// Whether a packet on its way to `to` has come to a host that may not forward it.
    #[inline]
    pub(crate) fn is_astray(&self, at: NodeIndex, to: NodeIndex) -> bool {
        self.interfaces.is_own_node(to) && (at.0 as usize) < self.hosts
    }

    pub(crate) fn edge(&self, port: PortIndex) -> &TopologyEdge {
        &self.edges[port.0 as usize]
    }

    /// Shortest paths to a core node from all others (Dijkstra 1959, backwards).
    fn column(&self, target: NodeIndex) -> RouteColumn {
        let distance = self.distances(target);
        let mut column = RouteColumn {
            ranges: Vec::new(),
            hops: Vec::new(),
        };
        for from in (0..)
            .map(NodeIndex)
            .zip(&self.core)
            .filter_map(|(node, core)| core.map(|_| node))
        {
            let start = column.hops.len();
            let here = distance[from.0 as usize];
            let toward = |port: &&PortIndex| {
                let edge = self.edge(**port);
                let beyond = distance[edge.to.0 as usize];
                // Costs are whole ns, so paths of equal cost are found by equality.
                beyond != u64::MAX && beyond + edge.cost == here
            };
            if from != target {
                column
                    .hops
                    .extend(self.out[from.0 as usize].iter().filter(toward));
            }
            column
                .ranges
                .push((start as u32, (column.hops.len() - start) as u32));
        }
        column
    }

    /// The cost from each core node to the target in ns; `u64::MAX` where no path leads there.
    fn distances(&self, target: NodeIndex) -> Vec<u64> {
        let mut distance = vec![u64::MAX; self.into.len()];
        let mut open = BinaryHeap::from([Reverse((0, target))]);
        while let Some(Reverse((cost, node))) = open.pop() {
            if cost >= distance[node.0 as usize] {
                continue;
            }
            distance[node.0 as usize] = cost;
            // Hosts do not forward: a path may end at one, not go through it.
            if node != target && (node.0 as usize) < self.hosts {
                continue;
            }
            for edge in self.into[node.0 as usize]
                .iter()
                .map(|port| self.edge(*port))
            {
                if self.core[edge.from.0 as usize].is_some() {
                    open.push(Reverse((cost.saturating_add(edge.cost), edge.from)));
                }
            }
        }
        distance
    }
}

/// Appends the cheapest of `ports` to `hops` and returns their range (start, count).
fn cheapest(edges: &[TopologyEdge], ports: &[PortIndex], hops: &mut Vec<PortIndex>) -> (u32, u32) {
    let cost = |port: &PortIndex| edges[port.0 as usize].cost;
    let least = ports.iter().map(cost).min();
    let start = hops.len();
    hops.extend(ports.iter().filter(|port| Some(cost(port)) == least));
    (start as u32, (hops.len() - start) as u32)
}

/// The two directions of a link; neither can be used when an end is unknown or both ends are one node.
fn directions(link: &NetworkLink, nodes: &BTreeMap<&str, u32>) -> [TopologyEdge; 2] {
    let ends = nodes
        .get(link.ends.0.as_str())
        .zip(nodes.get(link.ends.1.as_str()));
    let (first, second) = ends.map_or((NodeIndex(0), NodeIndex(0)), |(a, b)| {
        (NodeIndex(*a), NodeIndex(*b))
    });
    let there = ends.is_some() && first != second;
    let cost = cost(link);
    [
        TopologyEdge {
            from: first,
            to: second,
            cost,
            there,
        },
        TopologyEdge {
            from: second,
            to: first,
            cost,
            there: there && !link.one_way,
        },
    ]
}

/// The cost of a hop in ns: propagation delay plus the time of a packet of [`TYPICAL_BYTES`], at the highest rate of a
/// schedule or the mean rate of a trace. It is bounded so that the sum over a path does not overflow.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate"
)]
fn cost(link: &NetworkLink) -> u64 {
    let bit_s = match &link.rate {
        LinkRate::Unlimited => f64::INFINITY,
        LinkRate::Constant(bit_s) => *bit_s,
        LinkRate::Schedule(schedule) => schedule
            .steps
            .iter()
            .map(|(_, bit_s)| *bit_s)
            .fold(0.0, f64::max),
        LinkRate::Trace(trace) => mean_of_trace(&trace.opportunities_ms),
    };
    let typical = TYPICAL_BYTES * 8e9 / bit_s;
    link.delay
        .0
        .saturating_add(typical as u64)
        // At least 1: over free links, next hops of equal cost could lead in a circle.
        .clamp(1, u64::MAX / 4096)
}

/// The mean rate in bit/s of a trace with opportunities of 1504 bytes at these times in ms.
fn mean_of_trace(opportunities_ms: &[u32]) -> f64 {
    let period_ms = f64::from(opportunities_ms.last().copied().unwrap_or(1).max(1));
    #[expect(
        clippy::cast_precision_loss,
        reason = "a trace has fewer than 2^52 lines"
    )]
    let bytes = opportunities_ms.len() as f64 * 1504.0;
    bytes * 8000.0 / period_ms
}

/// By node: its only neighbour, counting links in both directions; `None` when it has none or several.
fn leaves(edges: &[TopologyEdge], count: usize) -> Vec<Option<NodeIndex>> {
    let mut neighbours: Vec<Vec<NodeIndex>> = vec![Vec::new(); count];
    for edge in edges.iter().filter(|edge| edge.there) {
        for (node, other) in [(edge.from, edge.to), (edge.to, edge.from)] {
            let known = &mut neighbours[node.0 as usize];
            if known.len() < 2 && !known.contains(&other) {
                known.push(other);
            }
        }
    }
    neighbours
        .iter()
        .map(|known| {
            if let [only] = known.as_slice() {
                Some(*only)
            } else {
                None
            }
        })
        .collect()
}

/// The port that a flow uses among equal ones.
fn pick(equal: &[PortIndex], flow: u32) -> Option<PortIndex> {
    match equal {
        [] => None,
        [only] => Some(*only),
        several => Some(several[spread(flow) as usize % several.len()]),
    }
}

/// A hash of the flow number (multiplicative, golden ratio), so that neighbouring flow numbers take different paths.
const fn spread(flow: u32) -> u32 {
    let mixed = flow.wrapping_mul(0x9e37_79b1);
    // The low bits of a product depend on low bits alone, and the remainder uses these.
    mixed ^ (mixed >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use stackline_core::network::{NetworkHost, NetworkSwitch};
    use stackline_core::time::Duration;

    fn network(hosts: &[&str], switches: &[&str], links: &[(&str, &str, u64)]) -> Network {
        let name = |text: &&str| String::from(*text);
        Network {
            hosts: hosts
                .iter()
                .map(name)
                .map(|name| NetworkHost {
                    name,
                    ..NetworkHost::default()
                })
                .collect(),
            switches: switches
                .iter()
                .map(name)
                .map(|name| NetworkSwitch {
                    name,
                    ..NetworkSwitch::default()
                })
                .collect(),
            links: links
                .iter()
                .map(|(a, b, ms)| NetworkLink {
                    ends: (a.to_string(), b.to_string()),
                    delay: Duration(ms * 1_000_000),
                    ..NetworkLink::default()
                })
                .collect(),
            ..Network::default()
        }
    }

    fn route(topology: &Topology, from: u32, to: u32, flow: u32) -> Vec<u32> {
        let mut at = NodeIndex(from);
        let mut ports = Vec::new();
        while at != NodeIndex(to) && ports.len() < 20 {
            let port = topology.next(at, NodeIndex(to), flow).unwrap();
            ports.push(port.0);
            at = topology.edge(port).to;
        }
        ports
    }

    #[test]
    fn two_hosts_joined_directly() {
        let topology = Topology::new(&network(&["a", "b"], &[], &[("a", "b", 1)]));
        assert_eq!(route(&topology, 0, 1, 0), [0]);
        assert_eq!(route(&topology, 1, 0, 0), [1]);
    }

    #[test]
    fn a_dumbbell() {
        let links = [("a", "x", 1), ("b", "x", 1), ("x", "y", 5), ("y", "c", 1)];
        let topology = Topology::new(&network(&["a", "b", "c"], &["x", "y"], &links));
        assert_eq!(route(&topology, 0, 2, 0), [0, 4, 6]);
        assert_eq!(route(&topology, 2, 1, 0), [7, 5, 3]);
        assert_eq!(route(&topology, 0, 1, 0), [0, 3]);
    }

    #[test]
    fn the_shorter_path_round_a_ring() {
        let links = [
            ("a", "x", 1),
            ("x", "y", 5),
            ("y", "z", 5),
            ("z", "x", 20),
            ("z", "b", 1),
        ];
        let topology = Topology::new(&network(&["a", "b"], &["x", "y", "z"], &links));
        assert_eq!(route(&topology, 0, 1, 7), [0, 2, 4, 8]);
        assert_eq!(route(&topology, 1, 0, 7), [9, 5, 3, 1]);
    }

    #[test]
    fn flows_spread_over_equal_links_and_keep_to_one() {
        let links = [
            ("a", "x", 1),
            ("x", "y", 5),
            ("x", "y", 5),
            ("x", "y", 6),
            ("y", "b", 1),
        ];
        let topology = Topology::new(&network(&["a", "b"], &["x", "y"], &links));
        let ports: Vec<u32> = (0..100)
            .map(|flow| route(&topology, 0, 1, flow)[1])
            .collect();
        assert!(
            ports.iter().all(|port| [2, 4].contains(port)),
            "the slower link is not used: {ports:?}"
        );
        let first = ports.iter().filter(|port| **port == 2).count();
        assert!(
            (30..70).contains(&first),
            "{first} of 100 flows on the first of two links"
        );
    }

    #[test]
    fn packets_of_an_interface_leave_and_arrive_by_it() {
        let links = [
            ("a", "x", 1),
            ("a", "y", 9),
            ("x", "z", 1),
            ("y", "z", 1),
            ("z", "b", 1),
        ];
        let topology = Topology::new(&network(&["a", "b"], &["x", "y", "z"], &links));
        let [first, second] = [0, 1].map(|index| {
            let place = topology.interfaces().position(0, index).unwrap();
            topology.interfaces().all()[place].node
        });
        let next = |at: NodeIndex, to: NodeIndex| topology.next(at, to, 0).map(|port| port.0);
        assert_eq!(next(first, NodeIndex(1)), Some(0));
        assert_eq!(next(second, NodeIndex(1)), Some(2));
        assert_eq!(
            next(NodeIndex(0), NodeIndex(1)),
            Some(0),
            "the shortest path"
        );
        let z = NodeIndex(4);
        assert_eq!((next(z, first), next(z, second)), (Some(5), Some(7)));
        assert_eq!(next(NodeIndex(3), second), Some(3), "the last hop");
        assert!(topology.is_astray(NodeIndex(1), second) && !topology.is_astray(z, second));
    }

    #[test]
    fn hosts_forward_nothing() {
        // The path over host c is shorter; the one over both switches is taken.
        let links = [
            ("a", "x", 1),
            ("x", "c", 1),
            ("c", "y", 1),
            ("x", "y", 50),
            ("y", "b", 1),
        ];
        let topology = Topology::new(&network(&["a", "b", "c"], &["x", "y"], &links));
        assert_eq!(route(&topology, 0, 1, 0), [0, 6, 8]);
        assert_eq!(route(&topology, 0, 2, 0), [0, 2]);
        assert_eq!(route(&topology, 2, 1, 0), [4, 8]);
    }

    #[test]
    fn one_way_links_lead_one_way() {
        let mut plan = network(
            &["a", "b"],
            &["up", "down"],
            &[
                ("a", "up", 1),
                ("up", "b", 1),
                ("b", "down", 1),
                ("down", "a", 1),
            ],
        );
        for link in &mut plan.links {
            link.one_way = true;
        }
        let topology = Topology::new(&plan);
        assert_eq!(route(&topology, 0, 1, 0), [0, 2]);
        assert_eq!(route(&topology, 1, 0, 0), [4, 6]);
    }

    #[test]
    fn routes_are_found_when_they_are_needed() {
        let names: Vec<String> = (0..3000)
            .map(|number| alloc::format!("s{number}"))
            .collect();
        let switches: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut links: Vec<(&str, &str, u64)> = switches
            .windows(2)
            .map(|pair| (pair[0], pair[1], 1))
            .collect();
        links.extend([("a", "s0", 1), ("b", "s2999", 1)]);
        let topology = Topology::new(&network(&["a", "b"], &switches, &links));
        let known = || topology.columns.borrow().iter().flatten().count();
        assert_eq!(known(), 0);
        assert_eq!(route(&topology, 0, 1, 0)[1..4], [0, 2, 4]);
        assert_eq!(known(), 1, "of three thousand");
    }

    #[test]
    fn unconnected_hosts_have_no_path() {
        let topology = Topology::new(&network(
            &["a", "b", "c", "d"],
            &[],
            &[("a", "b", 1), ("c", "d", 1)],
        ));
        assert_eq!(
            topology.next(NodeIndex(0), NodeIndex(1), 0),
            Some(PortIndex(0))
        );
        let lost = topology.next(NodeIndex(0), NodeIndex(2), 0);
        assert!(
            lost.is_none() || lost == Some(PortIndex(0)),
            "a host with one link asks its neighbour: {lost:?}"
        );
        assert_eq!(
            topology.next(NodeIndex(1), NodeIndex(3), 0),
            Some(PortIndex(1))
        );
    }
}
