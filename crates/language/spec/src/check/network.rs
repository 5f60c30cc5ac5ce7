//! Turns a network's tree into plain data, and checks it: ends exist, values are sensible, and every host can reach
//! every other.

mod cells;
mod classes;
mod figures;
mod full_size_packets;
mod host;
pub(super) use host::processor_share;
mod imp;
mod link;
mod queue;
mod rate;
mod reachability;
mod router;
mod schedule;
mod static_routes;
mod traffic_control;

use super::evaluate::fixed;
use super::referenced_files::SpecFiles;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{LinkItem, NetworkItem, SpecValue, SwitchItem};
use alloc::collections::BTreeSet;
use alloc::format;
use figures::{CELL_HEADER, LARGEST_BUFFER, LARGEST_PACKET};
use stackline_core::network::{Network, NetworkHost, NetworkSwitch};

/// Most hosts and switches of a network.
const MOST_NODES: usize = 32_768;

/// The network, with every mistake in it reported.
pub(crate) fn resolve(
    item: &NetworkItem,
    report: &mut DiagnosticReport,
    files: &mut SpecFiles<'_>,
) -> Network {
    let mut network = resolve_names(item, report);
    network.hosts = item
        .hosts
        .iter()
        .flat_map(|host| host::resolve(host, report))
        .collect();
    network.switches = item
        .switches
        .iter()
        .map(|item| switch(item, report))
        .collect();
    network.links = item
        .links
        .iter()
        .map(|item| link::resolve(item, report, files))
        .collect();
    cells::report(item, &network, report);
    traffic_control::report_cells(item, &network, report);
    imp::report(item, report);
    full_size_packets::report(item, &network, report);
    static_routes::report(item, &network, report);
    network
}

/// The names of its hosts alone, with every mistake in what does not vary: names, and which host reaches which.
pub(crate) fn resolve_names(item: &NetworkItem, report: &mut DiagnosticReport) -> Network {
    let mut nodes: BTreeSet<&str> = BTreeSet::new();
    for word in item.node_names() {
        if !nodes.insert(&word.text) {
            let message = format!("`{}` is declared twice in this network", word.text);
            report.push(
                Diagnostic::error(word.span, message, "already declared")
                    .hint("choose another name"),
            );
        }
    }
    item.links
        .iter()
        .for_each(|link| ends(link, item, &nodes, report));
    if !item.broken {
        static_routes::check_names(item, report);
    }
    if nodes.len() > MOST_NODES {
        let message = format!("a network may have at most {MOST_NODES} hosts and switches");
        report.push(Diagnostic::error(
            item.name.span,
            message,
            format!("this one has {}", nodes.len()),
        ));
    } else if !item.broken && nodes.len() == item.node_names().count() {
        reachability::check(item, report);
    }
    let hosts = item.host_names().map(|word| NetworkHost {
        name: word.text.clone(),
        ..NetworkHost::default()
    });
    Network {
        name: item.name.text.clone(),
        hosts: hosts.collect(),
        ..Network::default()
    }
}

fn ends(
    link: &LinkItem,
    item: &NetworkItem,
    nodes: &BTreeSet<&str>,
    report: &mut DiagnosticReport,
) {
    let (first, second) = (&link.ends.0, &link.ends.1);
    for end in [first, second] {
        if !nodes.contains(end.text.as_str()) && !item.broken && !report.full() {
            let message = format!("the network has no host or switch `{}`", end.text);
            let hint = format!("declare it: `host {};`", end.text);
            let diagnostic = Diagnostic::error(end.span, message, "not declared in this network");
            report.push(diagnostic.did_you_mean(&end.text, nodes.iter().copied(), hint));
        }
    }
    if first.text == second.text {
        let message = format!("a link connects `{}` to itself", first.text);
        report.push(Diagnostic::error(
            first.span.to(second.span),
            message,
            "expected two different ends",
        ));
    }
}

fn switch(item: &SwitchItem, report: &mut DiagnosticReport) -> NetworkSwitch {
    if let (Some((true, span)), None) = (item.abr, &item.cells) {
        let diagnostic = Diagnostic::error(
            span,
            "only a switch with `cells` has resource-management cells to signal rates",
            "needs `cells`",
        );
        report.push(diagnostic.hint("`cells 53;` makes it an ATM switch"));
    }
    NetworkSwitch {
        name: item.name.text.clone(),
        buffer_bytes: item
            .buffer
            .as_ref()
            .and_then(|value| report.keep(fixed(value, "a buffer", 1, LARGEST_BUFFER))),
        buffer_per_port: item.per_port,
        cell_bytes: item
            .cells
            .as_ref()
            .and_then(|value| report.keep(cell(value))),
        early_packet_discard: item.early_packet_discard.unwrap_or_default(),
        abr: item.abr.is_some_and(|(on, _)| on),
        queue: item.queue.as_ref().map(|item| queue::resolve(item, report)),
        imp: item.imp.as_ref().map(|item| imp::resolve(item, report)),
        router: router::resolve(item, report),
        routes: static_routes::resolve(&item.routes),
    }
}

fn cell(value: &SpecValue) -> Result<u64, Diagnostic> {
    let bytes = fixed(value, "the cell size", 0, LARGEST_PACKET)?;
    if bytes > CELL_HEADER {
        return Ok(bytes);
    }
    let message = format!("a cell of {bytes} bytes has no space for data");
    let label = format!("the header takes {CELL_HEADER} bytes of every cell");
    Err(Diagnostic::error(value.span, message, label).hint("write `cells 53`, as in ATM"))
}
