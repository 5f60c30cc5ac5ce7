//! Writes the properties and the use of ports and processors of a modelled network as events (`PORT_SETUP`, `PORT_USE`,
//! `CPU_USE`). The functions decide nothing and keep nothing.

use stackline_core::network::{LinkRate, Network};
use stackline_core::time::Duration;
use stackline_events::catalogue::rows::{CpuUse, PortSetup, PortUse};
use stackline_events::{EventEmitter, EventValue};
use stackline_net::{DropReason, PortCounters};

/// The name of the node that sends into a port, and the port's name.
fn place(network: &Network, port: u32) -> (String, String) {
    let name = network.port_name(port).unwrap_or_default();
    (name.split('>').next().unwrap_or_default().to_owned(), name)
}

/// Emits the properties of a port: its rate where that is constant, the size of its queue, the size of cells that leave
/// it. A one-way link has no port at its second end.
pub fn port_setup(network: &Network, port: u32, at_ns: u64, emit: &mut EventEmitter<'_>) {
    if !network.has_port(port) {
        return;
    }
    let (node, name) = place(network, port);
    let link = network.links.get(port as usize / 2);
    let rate = link.and_then(|link| match link.rate {
        LinkRate::Constant(bit_s) => Some(bit_s as u64),
        _ => None,
    });
    let switch = network.switches.iter().find(|switch| switch.name == node);
    // The queue of the link, else that of the node before it; a switch's buffer also limits it.
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
    let setup = PortSetup {
        port: EventValue::Text(&name),
        rate_bit_s: rate.into(),
        queue_bytes: queue_bytes.into(),
        cell_bytes: cell_bytes.into(),
    };
    setup.emit_on(&node, at_ns, emit);
}

/// Emits the use of a port in an interval of `interval_ns` that ends at `at_ns`.
pub fn port_use(
    network: &Network,
    port: u32,
    at_ns: u64,
    interval_ns: u64,
    did: &PortCounters,
    emit: &mut EventEmitter<'_>,
) {
    if !network.has_port(port) {
        return;
    }
    let (node, name) = place(network, port);
    let (mut queue, mut link) = (0_u64, 0_u64);
    for (reason, count) in did.drops_by_reason() {
        match reason {
            DropReason::Lost | DropReason::BitError => link += count,
            // These follow from another drop, which is counted at its own port.
            DropReason::CellLost | DropReason::EarlyDiscard => {}
            _ => queue += count,
        }
    }
    let used = PortUse {
        interval_ns: interval_ns.into(),
        port: EventValue::Text(&name),
        packets: did.packets.into(),
        bytes: did.bytes.into(),
        busy_ns: did.busy.0.into(),
        queue_drops: queue.into(),
        losses: link.into(),
        spoilt_frames: did.spoilt.into(),
        marked: did.marked.into(),
    };
    used.emit_on(&node, at_ns, emit);
}

/// The use of a port between two readings of its counters.
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

/// The time that a processor spent on copying and on programs, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimProcessorSpending {
    /// Time for copying into and out of the interface.
    pub copied_ns: u64,
    /// Time for programs.
    pub worked_ns: u64,
}

impl SimProcessorSpending {
    /// The time spent since an earlier reading.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            copied_ns: self.copied_ns.saturating_sub(before.copied_ns),
            worked_ns: self.worked_ns.saturating_sub(before.worked_ns),
        }
    }
}

/// Emits the use of a host's processor in an interval of `interval_ns` that ends at `at_ns`.
pub fn processor_use(
    host: &str,
    at_ns: u64,
    interval_ns: u64,
    did: SimProcessorSpending,
    emit: &mut EventEmitter<'_>,
) {
    cpu_use(Duration(interval_ns), did).emit_on(host, at_ns, emit);
}

/// The shares of programs (user), copying (system) and idle time in an interval.
pub(crate) fn cpu_use(interval: Duration, did: SimProcessorSpending) -> CpuUse<'static> {
    let ppm = |spent: u64| (spent.saturating_mul(1_000_000) / interval.0.max(1)).min(1_000_000);
    let system = ppm(did.copied_ns);
    let user = ppm(did.worked_ns).min(1_000_000 - system);
    CpuUse {
        interval_ns: interval.0.into(),
        core: 0.into(),
        user_ppm: user.into(),
        system_ppm: system.into(),
        idle_ppm: (1_000_000 - system - user).into(),
        ..CpuUse::default()
    }
}
