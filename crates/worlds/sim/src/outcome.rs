//! The outcome of one run: its records, what went through the network, and the digest that two equal runs share.

use stackline_core::run_record::RunRecord;
use stackline_core::time::Instant;
use stackline_net::PortCounters;

/// The outcome of one run.
#[derive(Clone, Debug)]
pub struct SimRunOutcome {
    /// One record for each part, as the live world makes them.
    pub records: Vec<RunRecord>,
    /// A hash over all network events in order: instant, place, kind, size of the packet. Two runs with the same digest
    /// went the same way.
    pub digest: u64,
    /// The number of events: what happened to packets, deliveries, timers.
    pub events: u64,
    /// The instant of the last event.
    pub virtual_time: Instant,
    /// The counters of each direction of each link.
    pub ports: Vec<PortCounters>,
}
