//! Checks written routes: names, neighbours, and routes that send packets in a circle.

use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{NetworkItem, RouteItem, Word};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::{Network, StaticRoute};
use stackline_core::routes::next_nodes;

/// The routes as plain data.
pub(super) fn resolve(items: &[RouteItem]) -> Vec<StaticRoute> {
    let route = |item: &RouteItem| StaticRoute {
        to: item.to.as_ref().map(|word| word.text.clone()),
        via: item.via.iter().map(|word| word.text.clone()).collect(),
    };
    items.iter().map(route).collect()
}

/// A node with its routes, as written.
fn nodes(item: &NetworkItem) -> impl Iterator<Item = (&Word, &[RouteItem])> {
    let hosts = item.hosts.iter();
    let hosts = hosts.flat_map(|host| {
        host.names
            .iter()
            .map(move |name| (name, host.routes.as_slice()))
    });
    let switches = item.switches.iter();
    hosts.chain(switches.map(|switch| (&switch.name, switch.routes.as_slice())))
}

/// Reports destinations that do not exist, and next hops and outer sides that no link leads to.
pub(super) fn check_names(item: &NetworkItem, report: &mut DiagnosticReport) {
    let gates = item.switches.iter().filter_map(|switch| {
        let router = switch.router.as_ref()?;
        Some((&switch.name, router.nat.iter().chain(&router.firewall)))
    });
    let gates: Vec<_> = gates.collect();
    if gates.is_empty() && nodes(item).all(|(_, routes)| routes.is_empty()) {
        return;
    }
    let known: BTreeSet<&str> = item.node_names().map(|word| word.text.as_str()).collect();
    let mut next: BTreeSet<(&str, &str)> = BTreeSet::new();
    for link in &item.links {
        let (first, second) = (link.ends.0.text.as_str(), link.ends.1.text.as_str());
        next.insert((first, second));
        if !link.one_way {
            next.insert((second, first));
        }
    }
    for (name, gates) in gates {
        for gate in gates {
            neighbour(name, &gate.outside, &next, report);
        }
    }
    for (name, routes) in nodes(item) {
        let mut before = BTreeSet::new();
        for route in routes {
            let to = route.to.as_ref().map(|word| word.text.as_str());
            if !before.insert(to) {
                let message = format!("`{}` has two routes to the same destination", name.text);
                let diagnostic = Diagnostic::error(route.span, message, "the second");
                report.push(diagnostic.hint("equal next hops stand in one: `route b via r2, r3`"));
            }
            if let Some(word) = route
                .to
                .as_ref()
                .filter(|_| to.is_some_and(|to| !known.contains(to)))
            {
                let message = format!("the network has no host or router `{}`", word.text);
                let diagnostic = Diagnostic::error(word.span, message, "not declared");
                let hint = "declare it, or write `default` for all other destinations";
                report.push(diagnostic.did_you_mean(&word.text, known.iter().copied(), hint));
            }
            for via in &route.via {
                neighbour(name, via, &next, report);
            }
        }
    }
}

fn neighbour(of: &Word, word: &Word, next: &BTreeSet<(&str, &str)>, report: &mut DiagnosticReport) {
    if !next.contains(&(of.text.as_str(), word.text.as_str())) {
        let message = format!("no link leads from `{}` to `{}`", of.text, word.text);
        let diagnostic = Diagnostic::error(word.span, message, "expected a neighbour");
        let hint = format!(
            "add a link: `link {} - {} 1 Gbit/s 1 ms;`",
            of.text, word.text
        );
        report.push(diagnostic.hint(hint));
    }
}

/// Warns of routes by which a packet comes back to a node where it was: only its time to live ends that.
pub(super) fn report(item: &NetworkItem, network: &Network, report: &mut DiagnosticReport) {
    if item.broken || nodes(item).all(|(_, routes)| routes.is_empty()) {
        return;
    }
    let written: BTreeMap<&str, &[RouteItem]> = nodes(item)
        .filter(|(_, routes)| !routes.is_empty())
        .map(|(name, routes)| (name.text.as_str(), routes))
        .collect();
    for to in &network.hosts {
        let next = next_nodes(network, &to.name);
        for (start, routes) in &written {
            if let Some(ring) = ring_from(start, &next)
                && let Some(route) = routes
                    .iter()
                    .find(|route| route.to.as_ref().is_none_or(|word| word.text == to.name))
            {
                let message = format!("packets to `{}` go in a circle: {ring}", to.name);
                let label = "its time to live ends each of them";
                let diagnostic = Diagnostic::warning(route.span, message, label);
                return report.push(diagnostic.hint("one of these nodes needs another next hop"));
            }
        }
    }
}

/// The circle in which packets from `start` certainly go, which comes back to `start`; `None` if there is none. `next`
/// has the only next node of a node.
fn ring_from(start: &str, next: &BTreeMap<&str, &str>) -> Option<String> {
    let mut names = Vec::from([start]);
    let mut at = *next.get(start)?;
    while at != start {
        if names.contains(&at) {
            return None;
        }
        names.push(at);
        at = *next.get(at)?;
    }
    names.push(start);
    Some(names.join(" > "))
}
