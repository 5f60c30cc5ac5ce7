//! What one run yielded: its records, what went through the network, and the digest that two equal runs share.

use stackline_core::run_record::RunRecord;
use stackline_core::time::Instant;
use stackline_net::PortCounters;

/// What one run yielded.
#[derive(Clone, Debug)]
pub struct SimRunOutcome {
    /// One record a part, as the live world makes them.
    pub records: Vec<RunRecord>,
    /// A hash of every event in its order: instant, place, what, size of the packet. Two runs with the same one went the
    /// same way.
    pub digest: u64,
    /// How many events there were: what happened to packets, deliveries, timers.
    pub events: u64,
    /// When the last of them was.
    pub virtual_time: Instant,
    /// What went through each direction of each link.
    pub ports: Vec<PortCounters>,
}
