//! What ports and processors did while a client was measured, interval by interval, as monitors would have seen it. It changes nothing of
//! what happens.

use stackline_core::network::Network;
use stackline_core::time::{Duration, Instant};
use stackline_events::EventEmitter;
use stackline_net::PortCounters;
use stackline_sim::port_events::{
    SimProcessorSpending, counters_since, port_setup, port_use, processor_use,
};

/// How often it is looked, where something happens.
const EVERY: Duration = Duration(100_000_000);

/// An interval.
#[derive(Debug)]
struct DisplayUsageInterval {
    end_ns: u64,
    length_ns: u64,
    /// By their numbers in the network.
    ports: Vec<(u32, PortCounters)>,
    hosts: Vec<(u32, SimProcessorSpending)>,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct DisplaySiteUsage {
    intervals: Vec<DisplayUsageInterval>,
    /// What they are long, together.
    measured_ns: u64,
    last: Instant,
    ports: Vec<PortCounters>,
    hosts: Vec<SimProcessorSpending>,
}

impl DisplaySiteUsage {
    /// Whether it is time to look again.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.last + EVERY
    }

    /// Looks now: at the counters of all ports, and at what all processors have been spent on. What was since is an interval if it was
    /// measured.
    pub(super) fn look(
        &mut self,
        now: Instant,
        (ports, hosts): (Vec<PortCounters>, Vec<SimProcessorSpending>),
        is_measured: bool,
    ) {
        let length_ns = now.since(self.last).0;
        if is_measured && length_ns > 0 {
            self.keep(length_ns, &ports, &hosts);
        }
        if !is_measured || length_ns > 0 {
            (self.last, self.ports, self.hosts) = (now, ports, hosts);
        }
    }

    fn keep(&mut self, length_ns: u64, ports: &[PortCounters], hosts: &[SimProcessorSpending]) {
        self.measured_ns += length_ns;
        let before = |port: u32| self.ports.get(port as usize).copied().unwrap_or_default();
        let did_ports = (0..)
            .zip(ports)
            .map(|(port, later)| (port, counters_since(later, &before(port))));
        let before = |host: u32| self.hosts.get(host as usize).copied().unwrap_or_default();
        let did_hosts = (0..).zip(hosts).map(|(host, later)| {
            let then = before(host);
            let grew = |now: u64, then: u64| now.saturating_sub(then);
            let did = SimProcessorSpending {
                copied_ns: grew(later.copied_ns, then.copied_ns),
                worked_ns: grew(later.worked_ns, then.worked_ns),
            };
            (host, did)
        });
        self.intervals.push(DisplayUsageInterval {
            end_ns: self.measured_ns,
            length_ns,
            ports: did_ports
                .filter(|(_, did)| *did != PortCounters::default())
                .collect(),
            hosts: did_hosts
                .filter(|(_, did)| *did != SimProcessorSpending::default())
                .collect(),
        });
    }

    /// Emits what was seen. `zero_ns` is added to every time.
    pub(super) fn emit_events(&self, network: &Network, zero_ns: u64, emit: &mut EventEmitter<'_>) {
        let mut known = std::collections::BTreeSet::new();
        for interval in &self.intervals {
            let span = (interval.end_ns + zero_ns, interval.length_ns);
            for (port, did) in &interval.ports {
                if known.insert(*port) {
                    port_setup(network, *port, span.0 - span.1, emit);
                }
                port_use(network, *port, span, did, emit);
            }
            for (host, did) in &interval.hosts {
                let name = network
                    .hosts
                    .get(*host as usize)
                    .map_or("", |host| &host.name);
                processor_use(name, span, *did, emit);
            }
        }
    }
}
