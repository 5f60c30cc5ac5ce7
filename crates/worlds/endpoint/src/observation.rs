//! What endpoints observed: each endpoint, and the sum of all endpoints of a side.

use crate::interval_series::EndpointIntervals;
use crate::interval_sums::sum_intervals;
use serde::{Deserialize, Serialize};
use stackline_core::interval_record::SideIntervals;
use stackline_core::run_record::{Histogram, OpeningTimes, SideRecord, TimedCall};
use stackline_core::time::{Duration, Instant};

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
    /// What the parts of connecting took.
    pub opening: OpeningTimes,
    /// When calls began, as the endpoint's host reads its clock, and how long they took.
    pub timed_calls: Vec<(Instant, Duration)>,
    /// What ended in each interval.
    pub intervals: Option<EndpointIntervals>,
    /// How late paced operations began, in ns.
    pub lateness: Histogram,
    /// How much of that was the endpoint's own, in ns: not the time that the operation before took.
    pub own_lateness: Histogram,
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
    /// What the parts of connecting took.
    #[serde(default, skip_serializing_if = "OpeningTimes::is_empty")]
    pub opening: OpeningTimes,
    /// The calls one by one, in the order in which they began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timed_calls: Vec<TimedCall>,
    /// What ended in each interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<SideIntervals>,
    /// How late paced operations began, in ns.
    pub lateness: Histogram,
    /// How much of that was the endpoints' own, in ns: not the time that the operation before took.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub own_lateness: Histogram,
}

/// Combines the observations of all endpoints of a side: counters are summed, gauges are those of the first.
#[must_use]
pub fn gather(all: Vec<EndpointObservation>) -> SideObservation {
    let mut side = SideObservation {
        calls: Histogram::merged(all.iter().map(|one| &one.calls)),
        connects: Histogram::merged(all.iter().map(|one| &one.connects)),
        lateness: Histogram::merged(all.iter().map(|one| &one.lateness)),
        own_lateness: Histogram::merged(all.iter().map(|one| &one.own_lateness)),
        opening: OpeningTimes {
            transport: Histogram::merged(all.iter().map(|one| &one.opening.transport)),
            tls_round_trip: Histogram::merged(all.iter().map(|one| &one.opening.tls_round_trip)),
        },
        timed_calls: in_order(&all),
        intervals: sum_intervals(all.iter().filter_map(|one| one.intervals.as_ref())),
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

/// The calls of all endpoints, by the time since the first clock start.
fn in_order(all: &[EndpointObservation]) -> Vec<TimedCall> {
    let starts = all
        .iter()
        .filter_map(|one| one.period.map(|(start, _)| start));
    let first = starts.min().unwrap_or_default();
    let calls = all.iter().flat_map(|one| &one.timed_calls);
    let timed = calls.map(|(begun, took)| TimedCall {
        begun_ns: begun.since(first).0,
        took_ns: took.0,
    });
    let mut timed: Vec<TimedCall> = timed.collect();
    timed.sort_by_key(|call| call.begun_ns);
    timed
}
