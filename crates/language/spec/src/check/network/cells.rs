//! Checks queues at switches that cut frames into cells: such a switch drops cells only where its buffer is full.

use super::full_size_packets::senders;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{NetworkItem, QueueItem};
use alloc::collections::BTreeSet;
use alloc::format;
use stackline_core::network::{Discipline, LinkQueue, Network};

/// Reports disciplines that such a switch cannot follow: its own, and those of links that it sends onto.
pub(super) fn report(item: &NetworkItem, network: &Network, report: &mut DiagnosticReport) {
    let cutting = network
        .switches
        .iter()
        .filter(|switch| switch.cell_bytes.is_some());
    let cutting: BTreeSet<&str> = cutting.map(|switch| switch.name.as_str()).collect();
    for (item, switch) in item.switches.iter().zip(&network.switches) {
        if switch.cell_bytes.is_some() {
            queue(
                item.queue.as_ref(),
                switch.queue.as_ref(),
                &switch.name,
                report,
            );
        }
    }
    for (item, link) in item.links.iter().zip(&network.links) {
        if let Some(name) = senders(link).find(|sender| cutting.contains(sender)) {
            queue(item.queue.as_ref(), link.queue.as_ref(), name, report);
        }
    }
}

fn queue(
    item: Option<&QueueItem>,
    queue: Option<&LinkQueue>,
    switch: &str,
    report: &mut DiagnosticReport,
) {
    let (Some(item), Some(queue)) = (item.and_then(|item| item.discipline.as_ref()), queue) else {
        return;
    };
    if queue.discipline == Discipline::DropTail {
        return;
    }
    let message = format!(
        "the cells of `{switch}` cannot be queued with `{}`",
        item.name.text
    );
    let label = "a switch with `cells` drops cells that do not fit";
    let hint = "omit the discipline, or the switch's `cells`; `early_packet_discard on` discards whole frames";
    report.push(Diagnostic::error(item.name.span, message, label).hint(hint));
}
