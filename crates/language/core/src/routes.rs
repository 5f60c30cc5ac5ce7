//! The routes that packets take through a declared network.
//!
//! A route is the shortest path, where a link costs its propagation delay and the transmission time of a packet of
//! 1500 bytes. The simulated and emulated networks spread flows over paths of equal cost; here one of them is chosen.

use crate::network::{LinkRate, Network, NetworkLink};
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
