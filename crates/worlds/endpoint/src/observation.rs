//! What endpoints observed: each endpoint, and the sum of all endpoints of a side.

use serde::{Deserialize, Serialize};
use stackline_core::run_record::{Histogram, SideRecord};
use stackline_core::time::Instant;

/// What one endpoint observed.
#[derive(Debug, Default)]
pub struct EndpointObservation {
    /// Counters and settings of its connections.
    pub record: SideRecord,
    /// When the measured period began and ended, as the endpoint's host reads its clock.
    pub period: Option<(Instant, Instant)>,
    /// Whether the time limit ended it early.
    pub limited: bool,
    /// Response times of calls, in ns.
    pub calls: Histogram,
    /// Connect plus disconnect time of each connection, in ns.
    pub connects: Histogram,
    /// How late paced operations began, in ns.
    pub lateness: Histogram,
}

/// What all endpoints of a side observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideObservation {
    /// Counters of all replicas together, and settings.
    pub record: SideRecord,
    /// The longest measured period of a replica, in ns.
    pub elapsed_ns: u64,
    /// The time from the first clock start to the last clock stop, in ns.
    pub span_ns: u64,
    /// Whether the time limit ended it early.
    pub limited: bool,
    /// Response times of calls, in ns.
    pub calls: Histogram,
    /// Connect plus disconnect time of each connection, in ns.
    pub connects: Histogram,
    /// How late paced operations began, in ns.
    pub lateness: Histogram,
}

/// Combines the observations of all endpoints of a side: counters are summed, gauges are those of the first.
#[must_use]
pub fn gather(all: Vec<EndpointObservation>) -> SideObservation {
    let mut side = SideObservation {
        calls: Histogram::merged(all.iter().map(|one| &one.calls)),
        connects: Histogram::merged(all.iter().map(|one| &one.connects)),
        lateness: Histogram::merged(all.iter().map(|one| &one.lateness)),
        ..SideObservation::default()
    };
    let mut span: Option<(Instant, Instant)> = None;
    for one in all {
        if let Some((start, stop)) = one.period {
            side.elapsed_ns = side.elapsed_ns.max((stop - start).0);
            let (first, last) = span.unwrap_or((start, stop));
            span = Some((first.min(start), last.max(stop)));
        }
        side.limited |= one.limited;
        side.record.add(one.record);
    }
    side.span_ns = span.map_or(0, |(first, last)| (last - first).0);
    side
}
