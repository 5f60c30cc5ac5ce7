//! Checks that every host can reach every other. Switches and routers forward packets, hosts do not.

use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{NetworkItem, Word};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// The nodes by number, hosts first.
struct ReachabilityGraph {
    hosts: usize,
    /// For each node, the nodes to which one link leads.
    next: Vec<Vec<usize>>,
}

impl ReachabilityGraph {
    fn new(item: &NetworkItem, names: &[&Word]) -> Self {
        let index: BTreeMap<&str, usize> = names
            .iter()
            .enumerate()
            .map(|(at, word)| (word.text.as_str(), at))
            .collect();
        let mut next = vec![Vec::new(); names.len()];
        let mut lead = |from: &Word, to: &Word| {
            let to = index.get(to.text.as_str());
            let from = index
                .get(from.text.as_str())
                .and_then(|from| next.get_mut(*from));
            if let (Some(from), Some(to)) = (from, to) {
                from.push(*to);
            }
        };
        for link in &item.links {
            lead(&link.ends.0, &link.ends.1);
            if !link.one_way {
                lead(&link.ends.1, &link.ends.0);
            }
        }
        Self {
            hosts: item.host_names().count(),
            next,
        }
    }

    /// Whether one search is enough: all switches reach each other, and every host sends to one of them and receives
    /// from one.
    fn has_core(&self) -> bool {
        let switches = self.hosts..self.next.len();
        let mut back = vec![Vec::new(); self.next.len()];
        for (from, next) in self.next.iter().enumerate() {
            for to in next {
                if let Some(heard) = back.get_mut(*to) {
                    heard.push(from);
                }
            }
        }
        let all = |next: &[Vec<usize>]| {
            let reached = self.closure(switches.start, next);
            switches
                .clone()
                .all(|switch| reached.get(switch) == Some(&true))
        };
        let joined = |next: &[Vec<usize>]| {
            next.iter()
                .take(self.hosts)
                .all(|next| next.iter().any(|node| switches.contains(node)))
        };
        !switches.is_empty() && joined(&self.next) && joined(&back) && all(&self.next) && all(&back)
    }

    /// Which nodes a packet from that host can reach.
    fn reached(&self, host: usize) -> Vec<bool> {
        self.closure(host, &self.next)
    }

    /// What lies behind a node, when hosts do not forward.
    fn closure(&self, start: usize, next: &[Vec<usize>]) -> Vec<bool> {
        let mut reached = vec![false; next.len()];
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            let Some(visited) = reached.get_mut(node) else {
                continue;
            };
            if !core::mem::replace(visited, true) && (node == start || node >= self.hosts) {
                open.extend(next.get(node).into_iter().flatten());
            }
        }
        reached
    }
}

/// Reports the first two nodes between which no path leads.
pub(super) fn check(item: &NetworkItem, report: &mut DiagnosticReport) {
    let names: Vec<&Word> = item.node_names().collect();
    let graph = ReachabilityGraph::new(item, &names);
    if graph.hosts == 0 {
        let message = format!("the network `{}` has no hosts", item.name.text);
        report.push(Diagnostic::error(
            item.name.span,
            message,
            "expected `host NAME;` in it",
        ));
        return;
    }
    if graph.has_core() {
        return;
    }
    for host in 0..graph.hosts {
        let reached = graph.reached(host);
        // A switch that no packet gets to is a mistake too; one is enough to say it.
        let searched = if host == 0 { names.len() } else { graph.hosts };
        let lost = reached.iter().take(searched).position(|reached| !reached);
        if let (Some(from), Some(to)) = (names.get(host), lost.and_then(|at| names.get(at))) {
            return report.push(unreached(from, to));
        }
    }
}

fn unreached(from: &Word, to: &Word) -> Diagnostic {
    let message = format!("no path leads from `{}` to `{}`", from.text, to.text);
    let hint = format!(
        "add a link, as in `link {} - {} 100 Mbit/s 1 ms;` (`->` is one-way, and hosts do not forward packets)",
        from.text, to.text
    );
    Diagnostic::error(to.span, message, "unreachable").hint(hint)
}
