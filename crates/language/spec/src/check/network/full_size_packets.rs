//! Warns of networks that are valid, but through which no packet of full size can pass.

use super::figures::CELL_HEADER;
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use crate::tree::{NetworkItem, QueueItem, QueueLimit};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use stackline_core::network::{Network, NetworkLink, NetworkSwitch};

/// Bytes that AAL5 adds to a frame before it is cut into cells.
const FRAME_TRAILER: u64 = 8;

/// Warnings about buffers and queues that are too small.
pub(super) fn report(item: &NetworkItem, network: &Network, report: &mut DiagnosticReport) {
    // The largest packet each node puts onto a link; a one-way link that ends there takes nothing from it.
    let mut largest: BTreeMap<&str, u64> = BTreeMap::new();
    for link in &network.links {
        for sender in senders(link) {
            let mtu = largest.entry(sender).or_default();
            *mtu = link.mtu().max(*mtu);
        }
    }
    let mut cutting: BTreeSet<&str> = BTreeSet::new();
    for (item, switch) in item.switches.iter().zip(&network.switches) {
        if switch.cell_bytes.is_some() {
            cutting.insert(&switch.name);
        }
        let Some(mtu) = largest.get(switch.name.as_str()).copied() else {
            continue;
        };
        if let (Some(value), Some(bytes)) = (&item.buffer, switch.buffer_bytes) {
            match switch.cell_bytes {
                Some(cell) => cells(value.span, bytes, mtu, cell, switch, report),
                None => small(value.span, "buffer", bytes, mtu, report),
            }
        }
        if switch.cell_bytes.is_none() {
            queue(item.queue.as_ref(), mtu, report);
        }
    }
    for (item, link) in item.links.iter().zip(&network.links) {
        if senders(link).any(|sender| !cutting.contains(sender)) {
            queue(item.queue.as_ref(), link.mtu(), report);
        }
    }
}

/// The ends of a link that send packets onto it.
pub(super) fn senders(link: &NetworkLink) -> impl Iterator<Item = &str> {
    let back = (!link.one_way).then_some(link.ends.1.as_str());
    core::iter::once(link.ends.0.as_str()).chain(back)
}

fn queue(item: Option<&QueueItem>, mtu: u64, report: &mut DiagnosticReport) {
    if let Some(QueueLimit::Bytes(value)) = item.and_then(|item| item.limit.as_ref())
        && let Ok(bytes) = crate::check::evaluate::fixed(value, "", 1, u64::MAX)
    {
        small(value.span, "queue", bytes, mtu, report);
    }
}

fn small(span: TextSpan, what: &str, bytes: u64, mtu: u64, report: &mut DiagnosticReport) {
    if bytes < mtu {
        let message = format!(
            "a packet of {mtu} bytes, the link's MTU, does not fit into a {what} of {bytes} bytes"
        );
        let diagnostic = Diagnostic::warning(span, message, "no full-size packet would ever pass");
        report.push(diagnostic.hint(format!(
            "make the {what} at least {mtu} bytes, or lower the MTU"
        )));
    }
}

/// Cells of a frame pass one by one, so a frame may pass that never was in the buffer as a whole.
fn cells(
    span: TextSpan,
    bytes: u64,
    mtu: u64,
    cell: u64,
    switch: &NetworkSwitch,
    report: &mut DiagnosticReport,
) {
    let Some(payload) = cell.checked_sub(CELL_HEADER).filter(|payload| *payload > 0) else {
        return;
    };
    let count = (mtu + FRAME_TRAILER).div_ceil(payload);
    let frame = count * cell;
    if bytes >= frame {
        return;
    }
    let message = format!(
        "a frame of {mtu} bytes takes {count} cells of {cell} bytes, {frame} bytes in total; this buffer holds {bytes}"
    );
    let label = if switch.early_packet_discard {
        "when frames compete for this buffer, some are discarded entirely"
    } else {
        "when frames compete for this buffer, one lost cell costs a whole frame"
    };
    let diagnostic = Diagnostic::warning(span, message, label);
    report.push(diagnostic.hint(
        "the MAGIC testbed ran into this problem in 1996; keep the size if you are studying it",
    ));
}
