//! Ports of a modelled network and processors of its hosts as events: what each is, and what it did in an interval (`PORT_SETUP`,
//! `PORT_USE`, `CPU_USE`). It decides nothing and keeps nothing.

use stackline_core::network::{LinkRate, Network};
use stackline_core::time::Duration;
use stackline_events::{EventEmitter, EventValue};
use stackline_net::{DropReason, PortCounters};

/// The node before a port, and its name.
fn place(network: &Network, port: u32) -> (String, String) {
    let name = network.port_name(port).unwrap_or_default();
    (name.split('>').next().unwrap_or_default().to_owned(), name)
}

/// Says what a port is: its rate, where that is constant, the room in its queue, the size of cells that leave it.
pub fn port_setup(network: &Network, port: u32, at_ns: u64, emit: &mut EventEmitter<'_>) {
    let (node, name) = place(network, port);
    let link = network.links.get(port as usize / 2);
    let rate = link.and_then(|link| match link.rate {
        LinkRate::Constant(bit_s) => Some(bit_s as u64),
        _ => None,
    });
    let switch = network.switches.iter().find(|switch| switch.name == node);
    // As its link's queue says, else that of the node before it, or its buffer.
    let queue = link
        .and_then(|link| link.queue.as_ref())
        .or(switch.and_then(|switch| switch.queue.as_ref()));
    let buffer = switch.and_then(|switch| switch.buffer_bytes);
    let queue_bytes = queue
        .and_then(|queue| queue.limit_bytes)
        .into_iter()
        .chain(buffer)
        .min();
    let cell_bytes = switch.and_then(|switch| switch.cell_bytes);
    emit(
        &node,
        "PORT_SETUP",
        at_ns,
        &[
            EventValue::Text(&name),
            rate.into(),
            queue_bytes.into(),
            cell_bytes.into(),
        ],
    );
}

/// Says what a port did in an interval that ends then and is so long, both in ns.
pub fn port_use(
    network: &Network,
    port: u32,
    (at_ns, interval_ns): (u64, u64),
    did: &PortCounters,
    emit: &mut EventEmitter<'_>,
) {
    let (node, name) = place(network, port);
    let (mut queue, mut link) = (0_u64, 0_u64);
    for (reason, count) in did.drops_by_reason() {
        match reason {
            DropReason::Lost | DropReason::BitError => link += count,
            // What follows from another drop is counted there.
            DropReason::CellLost | DropReason::EarlyDiscard => {}
            _ => queue += count,
        }
    }
    let values = [
        interval_ns.into(),
        EventValue::Text(&name),
        did.packets.into(),
        did.bytes.into(),
        did.busy.0.into(),
        queue.into(),
        link.into(),
        did.spoilt.into(),
        did.marked.into(),
    ];
    emit(&node, "PORT_USE", at_ns, &values);
}

/// What a port did between two readings of its counters.
#[must_use]
pub fn counters_since(later: &PortCounters, before: &PortCounters) -> PortCounters {
    let mut did = *later;
    did.packets -= before.packets;
    did.bytes -= before.bytes;
    did.marked -= before.marked;
    did.duplicated -= before.duplicated;
    did.spoilt -= before.spoilt;
    did.busy = Duration(later.busy.0 - before.busy.0);
    did.drops
        .iter_mut()
        .zip(before.drops)
        .for_each(|(now, then)| *now -= then);
    did
}

/// What a processor spent on its interface and on programs, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimProcessorSpending {
    /// Copying into and out of the interface.
    pub copied_ns: u64,
    /// Programs.
    pub worked_ns: u64,
}

impl SimProcessorSpending {
    /// What it was spent on since then.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            copied_ns: self.copied_ns.saturating_sub(before.copied_ns),
            worked_ns: self.worked_ns.saturating_sub(before.worked_ns),
        }
    }
}

/// Says what a host's processor did in an interval that ends then and is so long, both in ns.
pub fn processor_use(
    host: &str,
    (at_ns, interval_ns): (u64, u64),
    did: SimProcessorSpending,
    emit: &mut EventEmitter<'_>,
) {
    let [user, system, idle] = processor_shares_ppm(interval_ns, did);
    let [interval, core] = [interval_ns, 0].map(EventValue::from);
    let [softirq, irq, steal] = [EventValue::Absent; 3];
    emit(
        host,
        "CPU_USE",
        at_ns,
        &[
            interval,
            core,
            user.into(),
            system.into(),
            softirq,
            irq,
            steal,
            idle.into(),
        ],
    );
}

/// What programs and copying take of an interval, and what is left of it, in parts of a million.
pub(crate) fn processor_shares_ppm(interval_ns: u64, did: SimProcessorSpending) -> [u64; 3] {
    let share = |spent: u64| (spent.saturating_mul(1_000_000) / interval_ns.max(1)).min(1_000_000);
    let system = share(did.copied_ns);
    let user = share(did.worked_ns).min(1_000_000 - system);
    [user, system, 1_000_000 - system - user]
}
