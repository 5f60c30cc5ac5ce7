//! The use of the ports of a modelled network and of the processors of its hosts, interval by interval, as monitors
//! would have measured it. Watching changes nothing of what happens.

use crate::port_events::{
    SimProcessorSpending, counters_since, port_setup, port_use, processor_use,
};
use stackline_core::network::Network;
use stackline_core::time::{Duration, Instant};
use stackline_events::EventEmitter;
use stackline_net::PortCounters;
use std::collections::BTreeSet;

/// The totals until now: what went through each direction of each link, and what the processor of each host has been
/// used for.
#[derive(Clone, Debug, Default)]
pub struct UsageTotals {
    /// By the ports' numbers in the network.
    pub ports: Vec<PortCounters>,
    /// By the hosts' numbers.
    pub processors: Vec<SimProcessorSpending>,
}

/// The use of ports and processors in an interval.
#[derive(Clone, Debug)]
pub struct UsageInterval {
    /// The end of the interval.
    pub end: Instant,
    /// The length of the interval.
    pub length: Duration,
    /// Ports through which something went, by their numbers in the network.
    pub ports: Vec<(u32, PortCounters)>,
    /// Hosts whose processors did something.
    pub processors: Vec<(u32, SimProcessorSpending)>,
}

/// Computes intervals from totals that are read repeatedly.
#[derive(Debug, Default)]
pub struct UsageWatch {
    intervals: Vec<UsageInterval>,
    /// The beginning of the next interval: the first beginning plus the lengths of all intervals.
    end: Instant,
    /// When the totals were read last.
    last: Instant,
    /// The totals that were read last.
    totals: UsageTotals,
}

impl UsageWatch {
    /// The least time between two readings.
    pub const EVERY: Duration = Duration(100_000_000);

    /// A watch whose first interval begins at that instant.
    #[must_use]
    pub fn from(begin: Instant) -> Self {
        Self {
            end: begin,
            ..Self::default()
        }
    }

    /// Whether it is time for the next reading.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.last + Self::EVERY
    }

    /// Reads the totals. If `counts`, the use since the last reading becomes an interval; time that does not count is
    /// left out, so that intervals follow each other directly.
    pub fn look(&mut self, now: Instant, totals: UsageTotals, counts: bool) {
        let length = now.since(self.last);
        if counts && length > Duration::ZERO {
            self.keep(length, &totals);
        }
        if !counts || length > Duration::ZERO {
            (self.last, self.totals) = (now, totals);
        }
    }

    fn keep(&mut self, length: Duration, totals: &UsageTotals) {
        self.end += length;
        let before = |port: u32| self.totals.ports.get(port as usize).copied();
        let ports = (0..)
            .zip(&totals.ports)
            .map(|(port, later)| {
                (
                    port,
                    counters_since(later, &before(port).unwrap_or_default()),
                )
            })
            .filter(|(_, did)| *did != PortCounters::default());
        let before = |host: u32| self.totals.processors.get(host as usize).copied();
        let processors = (0..)
            .zip(&totals.processors)
            .map(|(host, later)| (host, later.since(before(host).unwrap_or_default())))
            .filter(|(_, did)| *did != SimProcessorSpending::default());
        let (ports, processors) = (ports.collect(), processors.collect());
        self.intervals.push(UsageInterval {
            end: self.end,
            length,
            ports,
            processors,
        });
    }

    /// All intervals so far.
    #[must_use]
    pub fn into_intervals(self) -> Vec<UsageInterval> {
        self.intervals
    }
}

/// Emits intervals as events: first the properties of each port that was used, then the use of ports and processors.
/// `zero_ns` is added to every time.
pub fn emit_usage(
    network: &Network,
    intervals: &[UsageInterval],
    zero_ns: u64,
    emit: &mut EventEmitter<'_>,
) {
    let begin = intervals
        .first()
        .map_or(0, |first| first.end.0 - first.length.0);
    let used: BTreeSet<u32> = intervals
        .iter()
        .flat_map(|one| one.ports.iter().map(|(port, _)| *port))
        .collect();
    for port in used {
        port_setup(network, port, zero_ns + begin, emit);
    }
    for interval in intervals {
        let (at_ns, interval_ns) = (zero_ns + interval.end.0, interval.length.0);
        for (port, did) in &interval.ports {
            port_use(network, *port, at_ns, interval_ns, did, emit);
        }
        for (host, did) in &interval.processors {
            let host = network.hosts.get(*host as usize);
            processor_use(
                host.map_or("", |host| &host.name),
                at_ns,
                interval_ns,
                *did,
                emit,
            );
        }
    }
}
