//! What the endpoints of one side did in each interval of a run, as plain data: kept when a measurement asks for intervals.

use crate::time::Duration;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The shortest interval; shorter ones would cost more clock readings than data.
pub const LEAST_INTERVAL: Duration = Duration(1_000_000);
/// The longest interval: an hour.
pub const LONGEST_INTERVAL: Duration = Duration(3_600_000_000_000);
/// Most intervals of a run; when there would be more, each two become one.
pub const MOST_INTERVALS: usize = 1024;
/// Most pairs of a part whose own intervals are kept; the sum has them all.
pub const MOST_PAIRS: usize = 16;

/// The intervals of one side of a part, in order from its clock start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideIntervals {
    /// The length of an interval, ns; the last one may be shorter, or up to a tenth longer.
    pub every_ns: u64,
    /// From clock start to clock stop, ns: the longest of all pairs.
    pub length_ns: u64,
    /// All pairs together.
    pub sum: Vec<IntervalRow>,
    /// The first pairs one by one, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Vec<IntervalRow>>,
}

/// One interval. What ended in it counts in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// Data units that arrived.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received_units: u64,
    /// Their bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received_bytes: u64,
    /// Data units that were handed over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_units: u64,
    /// Their bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_bytes: u64,
    /// Calls that ended, or connections of a part without calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<IntervalCalls>,
    /// The transport as it was after the interval; absent where it reports nothing, or nothing ended in the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<IntervalTransport>,
    /// Datagrams that were found missing at the receiver; absent where none can be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// The interarrival jitter at the end of the interval, ns (RFC 3550, section 6.4.1); absent unless units are paced evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
}

/// The response times of the calls of an interval, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalCalls {
    /// How many ended.
    pub n: u64,
    /// The median; absent if there was no room for the times of this interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ns: Option<u64>,
    /// The 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
}

/// A transport at the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalTransport {
    /// Segments retransmitted since the interval before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retransmits: u64,
    /// The congestion window in bytes; of several pairs, the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// The smoothed round trip, ns; of several pairs, the longest.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round_trip_ns: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl IntervalTransport {
    /// Two pairs together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            retransmits: self.retransmits + other.retransmits,
            window_bytes: match (self.window_bytes, other.window_bytes) {
                (Some(one), Some(another)) => Some(one + another),
                (one, another) => one.or(another),
            },
            round_trip_ns: self.round_trip_ns.max(other.round_trip_ns),
        }
    }

    /// This interval and the one after it, as one.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            retransmits: self.retransmits + later.retransmits,
            ..later
        }
    }
}

impl SideIntervals {
    /// When an interval began and ended, in ns since the clock started.
    #[must_use]
    pub fn bounds_ns(&self, index: usize) -> (u64, u64) {
        let from = (index as u64).saturating_mul(self.every_ns);
        let to = match index + 1 < self.sum.len() {
            true => from.saturating_add(self.every_ns),
            false => self.length_ns,
        };
        (from.min(self.length_ns), to.min(self.length_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_interval_ends_with_the_clock() {
        let side = SideIntervals {
            every_ns: 1_000,
            length_ns: 2_500,
            sum: alloc::vec![IntervalRow::default(); 3],
            ..SideIntervals::default()
        };
        let bounds = [0, 1, 2].map(|at| side.bounds_ns(at));
        assert_eq!(bounds, [(0, 1_000), (1_000, 2_000), (2_000, 2_500)]);
    }

    #[test]
    fn windows_of_pairs_add_up_and_later_ones_replace_earlier_ones() {
        let one = IntervalTransport {
            retransmits: 2,
            window_bytes: Some(10),
            round_trip_ns: 5,
        };
        let other = IntervalTransport {
            retransmits: 1,
            window_bytes: Some(30),
            round_trip_ns: 4,
        };
        let both = one.with(other);
        assert_eq!(
            (both.retransmits, both.window_bytes, both.round_trip_ns),
            (3, Some(40), 5)
        );
        let then = one.then(other);
        assert_eq!(
            (then.retransmits, then.window_bytes, then.round_trip_ns),
            (3, Some(30), 4)
        );
    }
}
