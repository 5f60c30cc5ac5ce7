//! What ports and processors did while a client was measured, interval by interval, as monitors would have seen it. It changes nothing of
//! what happens.

use stackline_core::network::Network;
use stackline_core::time::{Duration, Instant};
use stackline_events::Emit;
use stackline_net::Counters;
use stackline_sim::ports::{Spent, port_setup, port_use, processor_use, since};

/// How often it is looked, where something happens.
const EVERY: Duration = Duration(100_000_000);

/// An interval.
#[derive(Debug)]
struct Interval {
    end_ns: u64,
    length_ns: u64,
    /// By their numbers in the network.
    ports: Vec<(u32, Counters)>,
    hosts: Vec<(u32, Spent)>,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Watched {
    intervals: Vec<Interval>,
    /// What they are long, together.
    measured_ns: u64,
    last: Instant,
    ports: Vec<Counters>,
    hosts: Vec<Spent>,
}

impl Watched {
    /// Whether it is time to look again.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.last + EVERY
    }

    /// Looks now: at the counters of all ports, and at what all processors have been spent on. What was since is an interval if it was
    /// measured.
    pub(super) fn look(
        &mut self,
        now: Instant,
        (ports, hosts): (Vec<Counters>, Vec<Spent>),
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

    fn keep(&mut self, length_ns: u64, ports: &[Counters], hosts: &[Spent]) {
        self.measured_ns += length_ns;
        let before = |port: u32| self.ports.get(port as usize).copied().unwrap_or_default();
        let did_ports = (0..)
            .zip(ports)
            .map(|(port, later)| (port, since(later, &before(port))));
        let before = |host: u32| self.hosts.get(host as usize).copied().unwrap_or_default();
        let did_hosts = (0..).zip(hosts).map(|(host, later)| {
            let then = before(host);
            let grew = |now: u64, then: u64| now.saturating_sub(then);
            let did = Spent {
                copied_ns: grew(later.copied_ns, then.copied_ns),
                worked_ns: grew(later.worked_ns, then.worked_ns),
            };
            (host, did)
        });
        self.intervals.push(Interval {
            end_ns: self.measured_ns,
            length_ns,
            ports: did_ports
                .filter(|(_, did)| *did != Counters::default())
                .collect(),
            hosts: did_hosts
                .filter(|(_, did)| *did != Spent::default())
                .collect(),
        });
    }

    /// Emits what was seen. `zero_ns` is added to every time.
    pub(super) fn tell(&self, network: &Network, zero_ns: u64, emit: &mut Emit<'_>) {
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
