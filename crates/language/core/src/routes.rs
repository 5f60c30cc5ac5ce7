//! The routes that packets take through a declared network.
//!
//! A route is what is written at a node (`route b via r2`), or else the shortest path, where a link costs its propagation delay and the transmission time of a packet of
//! 1500 bytes. The simulated and emulated networks spread flows over paths of equal cost; here one of them is chosen.

use crate::network::{LinkRate, Network, NetworkLink, StaticRoute};
use crate::time::Duration;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Size in bits of the packet whose transmission time is part of a link's cost.
const PROBE_BITS: f64 = 8.0 * 1500.0;

/// A link of a route, and whether it is crossed from its first end to its second.
pub type RouteStep<'n> = (&'n NetworkLink, bool);

/// The links of the shortest path; `None` when a node does not exist or no path leads from one to the other. Of paths
/// of equal cost, the one over the link declared first.
#[must_use]
pub fn find_shortest_route<'n>(
    network: &'n Network,
    from: &str,
    to: &str,
) -> Option<Vec<RouteStep<'n>>> {
    let hosts = network.hosts.iter().map(|host| host.name.as_str());
    let names = hosts.chain(network.switches.iter().map(|switch| switch.name.as_str()));
    let nodes: BTreeMap<&str, usize> = names.zip(0..).collect();
    let (start, goal) = (*nodes.get(from)?, *nodes.get(to)?);
    if has_written_routes(network) {
        return walk(network, &nodes, start, goal);
    }
    let by = tree(&leaving(network, &nodes), start);
    let mut links = Vec::new();
    let mut at = goal;
    while at != start {
        let (before, step) = by.get(at).copied().flatten()?;
        links.push(step);
        at = before;
    }
    links.reverse();
    Some(links)
}

/// Where packets to the node `to` go next from each node, if that is certain: nodes with next hops among which flows are
/// spread are left out, and so are those from which no path leads there.
#[must_use]
pub fn next_nodes<'n>(network: &'n Network, to: &str) -> BTreeMap<&'n str, &'n str> {
    let hosts = network.hosts.iter().map(|host| host.name.as_str());
    let names = hosts.chain(network.switches.iter().map(|switch| switch.name.as_str()));
    let names: Vec<&str> = names.collect();
    let nodes: BTreeMap<&str, usize> = names.iter().copied().zip(0..).collect();
    let Some(goal) = nodes.get(to).copied() else {
        return BTreeMap::new();
    };
    let steps = next_steps(network, &nodes, goal);
    let mut certain = BTreeMap::new();
    for (name, steps) in names.iter().zip(&steps).filter(|(name, _)| **name != to) {
        let next = steps.first().map(|(next, _)| *next);
        if let Some(next) = next.filter(|next| steps.iter().all(|(other, _)| other == next)) {
            certain.extend(names.get(next).map(|next| (*name, *next)));
        }
    }
    certain
}

/// Whether any node has routes of its own.
fn has_written_routes(network: &Network) -> bool {
    let hosts = network.hosts.iter().map(|host| &host.routes);
    let switches = network.switches.iter().map(|switch| &switch.routes);
    hosts.chain(switches).any(|routes| !routes.is_empty())
}

/// The links of the path from one node to another by the routes of each node on it; `None` if it comes back to a node.
fn walk<'n>(
    network: &'n Network,
    nodes: &BTreeMap<&str, usize>,
    start: usize,
    goal: usize,
) -> Option<Vec<RouteStep<'n>>> {
    let steps = next_steps(network, nodes, goal);
    let mut links = Vec::new();
    let mut at = start;
    while at != goal {
        let (next, step) = steps.get(at)?.first()?;
        links.push(*step);
        at = *next;
        if links.len() > steps.len() {
            return None;
        }
    }
    Some(links)
}

/// For each node, the equal next nodes on the way to `goal`, with the links there.
fn next_steps<'n>(
    network: &'n Network,
    nodes: &BTreeMap<&str, usize>,
    goal: usize,
) -> Vec<Vec<(usize, RouteStep<'n>)>> {
    let leaving = leaving(network, nodes);
    let hosts = network.hosts.len();
    let distance = distances(&leaving, hosts, goal);
    let host_routes = network.hosts.iter().map(|host| &host.routes);
    let routes = host_routes.chain(network.switches.iter().map(|switch| &switch.routes));
    let index = |name: &str| nodes.get(name).copied();
    let mut next = Vec::new();
    for ((steps, routes), here) in leaving.iter().zip(routes).zip(&distance) {
        let direct = steps.iter().any(|(next, _)| *next == goal);
        let exact = |route: &&StaticRoute| route.to.as_deref().and_then(index) == Some(goal);
        let default = |route: &&StaticRoute| route.to.is_none() && !direct;
        let written = routes
            .iter()
            .find(exact)
            .or_else(|| routes.iter().find(default));
        let is_next = |(next, (link, _)): &&(usize, RouteStep<'n>)| match written {
            Some(route) => route.via.iter().any(|via| index(via) == Some(*next)),
            None => {
                let beyond = distance.get(*next).copied().unwrap_or(u64::MAX);
                beyond != u64::MAX && beyond.saturating_add(cost_ns(link).max(1)) == *here
            }
        };
        next.push(steps.iter().filter(is_next).copied().collect());
    }
    next
}

/// The cost from each node to `goal`; `u64::MAX` where no path leads there. Hosts do not forward.
fn distances(leaving: &[Vec<(usize, RouteStep<'_>)>], hosts: usize, goal: usize) -> Vec<u64> {
    let mut entering: Vec<Vec<(usize, u64)>> = vec![Vec::new(); leaving.len()];
    for (from, steps) in leaving.iter().enumerate() {
        for (to, (link, _)) in steps {
            entering[*to].push((from, cost_ns(link).max(1)));
        }
    }
    let mut best = vec![u64::MAX; leaving.len()];
    let mut open = BinaryHeap::from([Reverse((0_u64, goal))]);
    while let Some(Reverse((cost, at))) = open.pop() {
        let known = best.get_mut(at).filter(|known| cost < **known);
        let Some(known) = known else { continue };
        *known = cost;
        if at < hosts && at != goal {
            continue;
        }
        let before = entering.get(at).into_iter().flatten();
        open.extend(before.map(|(from, link)| Reverse((cost.saturating_add(*link), *from))));
    }
    best
}

/// For each node, the nodes its links lead to, in the order of declaration.
fn leaving<'n>(
    network: &'n Network,
    nodes: &BTreeMap<&str, usize>,
) -> Vec<Vec<(usize, RouteStep<'n>)>> {
    // Two nodes of one name are an error that is reported elsewhere: the map keeps the number of the second.
    let mut leaving = vec![Vec::new(); nodes.values().max().map_or(0, |last| last + 1)];
    for link in &network.links {
        let (Some(first), Some(second)) = (
            nodes.get(link.ends.0.as_str()),
            nodes.get(link.ends.1.as_str()),
        ) else {
            continue;
        };
        leaving[*first].push((*second, (link, true)));
        if !link.one_way {
            leaving[*second].push((*first, (link, false)));
        }
    }
    leaving
}

/// For each node that can be reached, the node before it and the link between (Dijkstra 1959).
fn tree<'n>(
    leaving: &[Vec<(usize, RouteStep<'n>)>],
    start: usize,
) -> Vec<Option<(usize, RouteStep<'n>)>> {
    let mut best: Vec<Option<u64>> = vec![None; leaving.len()];
    let mut by = vec![None; leaving.len()];
    let mut open = BinaryHeap::from([Reverse((0, start))]);
    best[start] = Some(0);
    while let Some(Reverse((cost, at))) = open.pop() {
        if best[at] != Some(cost) {
            continue;
        }
        for (next, step) in &leaving[at] {
            let through = cost.saturating_add(cost_ns(step.0));
            if best[*next].is_none_or(|known| through < known) {
                (best[*next], by[*next]) = (Some(through), Some((at, *step)));
                open.push(Reverse((through, *next)));
            }
        }
    }
    by
}

/// The cost of a link in whole nanoseconds, so that equal costs compare equal in whatever order they are added.
fn cost_ns(link: &NetworkLink) -> u64 {
    let rate = match &link.rate {
        // A link whose rate is 0 for some time keeps its route: its largest rate counts.
        LinkRate::Schedule(schedule) => Some(
            schedule
                .steps
                .iter()
                .map(|(_, rate)| *rate)
                .fold(0.0, f64::max),
        ),
        rate => rate.mean_bit_s(),
    };
    let time_s = match rate {
        None => 0.0,
        Some(rate) if rate > 0.0 && rate.is_finite() => PROBE_BITS / rate,
        Some(_) => f64::INFINITY,
    };
    (link.delay + Duration::from_seconds(time_s)).0
}
