//! What endpoints observed: each by itself, and all of a side together.

use serde::{Deserialize, Serialize};
use stackline_core::run_record::{Histogram, SideRecord};
use stackline_core::time::Instant;

/// What one endpoint observed.
#[derive(Debug, Default)]
pub struct EndpointObservation {
    /// Counters and settings.
    pub record: SideRecord,
    /// When its clock started and stopped, as its host reads it.
    pub period: Option<(Instant, Instant)>,
    /// Whether the limit cut it short.
    pub limited: bool,
    /// Response times.
    pub calls: Histogram,
    /// Connect plus disconnect times.
    pub connects: Histogram,
    /// Lateness of paced operations.
    pub lateness: Histogram,
}

/// What all endpoints of a side observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideObservation {
    /// Counters and settings, all replicas together.
    pub record: SideRecord,
    /// Longest measured period of a replica, in ns.
    pub elapsed_ns: u64,
    /// From the first clock start to the last clock stop, in ns.
    pub span_ns: u64,
    /// Whether the limit cut it short.
    pub limited: bool,
    /// Response times in ns.
    pub calls: Histogram,
    /// Connect plus disconnect times in ns.
    pub connects: Histogram,
    /// Lateness of paced operations in ns.
    pub lateness: Histogram,
}

/// All endpoints together: counters summed, gauges of the first.
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
