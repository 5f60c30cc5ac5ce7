//! Warns of declarations that have no effect: a network that nothing crosses, a queue that marks packets (ECN) of stacks that cannot be
//! marked, or streams of a connection that a single pair has. These are not errors.

use super::checker::Checker;
use crate::context::Available;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::tree::{SpecItem, Tree};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::network::{LinkQueue, Network, NetworkLink};
use stackline_core::plan::{Measurement, MeasurementPart};
use stackline_core::routes;

impl Checker<'_> {
    /// Adds the warnings, each once.
    pub(crate) fn doubts(&mut self, tree: &Tree) {
        if self.report.errors() > 0 || self.plan.measurements.is_empty() {
            return;
        }
        if let Some(diagnostic) = uncrossed(tree, &self.plan.measurements) {
            self.report.push(diagnostic);
        }
        let mut known: BTreeSet<(usize, &str)> = BTreeSet::new();
        let mut lonely: BTreeSet<usize> = BTreeSet::new();
        let mut found = Vec::new();
        for (measurement, origin) in self.plan.measurements.iter().zip(&self.origins) {
            let Some(SpecItem::Specification(specification)) = tree.items.get(origin.item) else {
                continue;
            };
            for (part, (index, stack)) in measurement.parts.iter().zip(&origin.parts) {
                let application = specification
                    .parts
                    .get(*index)
                    .map(|item| item.application.span);
                let Some(span) = stack.or(application) else {
                    continue;
                };
                if !lonely.contains(&origin.item)
                    && let Some(diagnostic) = lone_pair(part, span)
                {
                    lonely.insert(origin.item);
                    found.push(diagnostic);
                }
                let network = self
                    .plan
                    .networks
                    .iter()
                    .find(|n| Some(&n.name) == measurement.across.as_ref());
                if network.is_some_and(|network| marks(network, part))
                    && known.insert((origin.item, &part.stack.name))
                {
                    found.extend(unmarked(self.context.worlds, measurement, part, span));
                }
            }
        }
        found
            .into_iter()
            .for_each(|diagnostic| self.report.push(diagnostic));
    }
}

/// A part with several streams a connection but a single pair, which has one of them: the number before a measurement is that of runs.
fn lone_pair(part: &MeasurementPart, span: TextSpan) -> Option<Diagnostic> {
    let streams = part.stack.number(OptionTable::STREAMS.name)?;
    let is_alone = part.replicas == 1
        && part.stack.facts.shares_connections
        && !part
            .stack
            .options
            .contains_key(OptionTable::CONNECTION.name);
    if streams < 2 || !is_alone {
        return None;
    }
    let message = format!("`streams = {streams}` has no effect on a single pair");
    let diagnostic = Diagnostic::warning(span, message, "one pair, so one stream");
    Some(diagnostic.hint(format!(
        "the first number is that of runs; `1 {streams}` is one run of {streams} pairs, which then share a connection"
    )))
}

/// The networks of a text that none of its measurements crosses.
fn uncrossed(tree: &Tree, measurements: &[Measurement]) -> Option<Diagnostic> {
    let crossed = |name: &str| {
        let is = |across: &String| {
            across == name
                || across
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with('('))
        };
        measurements
            .iter()
            .filter_map(|measurement| measurement.across.as_ref())
            .any(is)
    };
    let networks = tree.items.iter().filter_map(|item| {
        if let SpecItem::Network(item) = item {
            Some(item)
        } else {
            None
        }
    });
    let left: Vec<_> = networks.filter(|item| !crossed(&item.name.text)).collect();
    let first = left.first()?;
    let names: Vec<&str> = left.iter().map(|item| item.name.text.as_str()).collect();
    let message = match names[..] {
        [name] => format!("no measurement crosses the network `{name}`"),
        _ => format!("no measurement crosses the networks {}", names.join(", ")),
    };
    let diagnostic = Diagnostic::warning(
        first.name.span,
        message,
        "it has no effect on any measurement",
    );
    let example: Vec<&str> = first.host_names().map(|word| word.text.as_str()).collect();
    Some(diagnostic.hint(match example[..] {
        [from, .., to] => format!(
            "write `across {0}`, as in `1 from {from} to {to} rr 32*1000 across {0};`",
            names[0]
        ),
        _ => format!("write `across {}` after a measurement", names[0]),
    }))
}

/// Whether a queue on the path of a part marks packets, in either direction.
fn marks(network: &Network, part: &MeasurementPart) -> bool {
    let (Some(from), Some(to)) = (&part.from, &part.to) else {
        return false;
    };
    let before = |link: &NetworkLink, node: &str| -> bool {
        let switch = network.switches.iter().find(|switch| switch.name == node);
        let queue: Option<&LinkQueue> = link.queue.as_ref().or_else(|| switch?.queue.as_ref());
        queue.is_some_and(|queue| queue.ecn)
    };
    let route = |from, to| routes::find_shortest_route(network, from, to).unwrap_or_default();
    let mut steps = route(from, to).into_iter().chain(route(to, from));
    steps.any(|(link, forward)| before(link, if forward { &link.ends.0 } else { &link.ends.1 }))
}

/// A stack whose packets such a queue drops instead, and which stacks it would mark.
fn unmarked(
    worlds: &[Available<'_>],
    measurement: &Measurement,
    part: &MeasurementPart,
    span: TextSpan,
) -> Option<Diagnostic> {
    let name = part.stack.name.as_str();
    let here = worlds
        .iter()
        .find(|available| available.can.world == measurement.world)?;
    let table = |available: &Available<'_>| {
        available
            .stacks
            .iter()
            .find(|table| table.name == name)
            .copied()
    };
    if table(here).is_none_or(|table: StackTable| table.ecn) {
        return None;
    }
    let there = |available: &&Available<'_>| {
        available.can.networks && table(available).is_some_and(|table| table.ecn)
    };
    let stacks = here
        .stacks
        .iter()
        .filter(|table| table.ecn)
        .map(|table| format!("`over {}`", table.name));
    let others = worlds
        .iter()
        .filter(there)
        .map(|available| format!("`--in {}`", available.can.world));
    let takes: Vec<String> = stacks.chain(others).collect();
    let message = format!(
        "`{name}` does not support ECN in the {} world",
        measurement.world
    );
    let label = "the queue drops this stream's packets instead of marking them";
    let diagnostic = Diagnostic::warning(span, message, label);
    Some(if takes.is_empty() {
        diagnostic
    } else {
        diagnostic.hint(format!("ECN works with {}", takes.join(", ")))
    })
}
