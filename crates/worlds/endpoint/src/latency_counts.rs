//! Response times of one interval as counts by size, in fixed memory: 64 equal steps from each power of two to the next, so that a time is
//! known within 1 %.

use stackline_core::time::Duration;

/// Steps from a power of two to the next, as a power of two.
const STEP_BITS: u32 = 6;
/// Times below this have a count each.
const EXACT: u64 = 2 << STEP_BITS;
/// The largest power of two that is resolved, ns: over an hour. Longer times count as this.
const LAST_BIT: u32 = 42;
/// How many counts there are.
const COUNTS: usize = EXACT as usize + (((LAST_BIT - STEP_BITS) as usize) << STEP_BITS);

/// How often times of one size occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LatencyCount {
    /// The number of the size, smaller ones first.
    size: u16,
    times: u32,
}

impl LatencyCount {
    /// The middle of the times of this size, ns.
    pub(crate) const fn middle_ns(self) -> u64 {
        let size = self.size as u64;
        if size < EXACT {
            return size;
        }
        let beyond = size - EXACT;
        let bit = (beyond >> STEP_BITS) as u32 + STEP_BITS + 1;
        let step = 1_u64 << (bit - STEP_BITS);
        (1 << bit) + (beyond & ((1 << STEP_BITS) - 1)) * step + step / 2
    }

    /// How often they occurred.
    pub(crate) const fn times(self) -> u64 {
        self.times as u64
    }
}

/// The counts of the present interval.
#[derive(Debug)]
pub(crate) struct LatencyCounts {
    counts: Vec<u32>,
    /// The sizes that occurred.
    used: Vec<u16>,
}

/// The number of a size.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the last number is below 3,000"
)]
const fn size_of(ns: u64) -> u16 {
    if ns < EXACT {
        return ns as u16;
    }
    let bit = 63 - ns.leading_zeros();
    if bit > LAST_BIT {
        return COUNTS as u16 - 1;
    }
    let within = (ns >> (bit - STEP_BITS)) & ((1 << STEP_BITS) - 1);
    (EXACT + (((bit - STEP_BITS - 1) as u64) << STEP_BITS) + within) as u16
}

impl LatencyCounts {
    /// No times; memory for them is allocated here, if there will be any.
    pub(crate) fn new(has_times: bool) -> Self {
        let room = if has_times { COUNTS } else { 0 };
        Self {
            counts: vec![0; room],
            used: Vec::with_capacity(room),
        }
    }

    /// Adds a time.
    #[inline]
    pub(crate) fn add(&mut self, took: Duration) {
        let size = size_of(took.0);
        if let Some(count) = self.counts.get_mut(usize::from(size)) {
            if *count == 0 {
                self.used.push(size);
            }
            *count = count.saturating_add(1);
        }
    }

    /// How many sizes occurred.
    pub(crate) const fn different(&self) -> usize {
        self.used.len()
    }

    /// Moves all counts to the end of `kept`.
    pub(crate) fn drain_into(&mut self, kept: &mut Vec<LatencyCount>) {
        for size in self.used.drain(..) {
            let times = std::mem::take(&mut self.counts[usize::from(size)]);
            kept.push(LatencyCount { size, times });
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        for size in self.used.drain(..) {
            self.counts[usize::from(size)] = 0;
        }
    }
}

/// Percentiles of these counts, by the nearest rank, ns; `None` without any.
pub(crate) fn percentiles<const N: usize>(
    counts: &mut [LatencyCount],
    shares: [f64; N],
) -> Option<[u64; N]> {
    counts.sort_unstable();
    let all: u64 = counts.iter().map(|count| count.times()).sum();
    if all == 0 {
        return None;
    }
    Some(shares.map(|share| {
        let rank = nearest_rank(share, all);
        let mut passed = 0;
        let found = counts.iter().find(|count| {
            passed += count.times();
            passed >= rank
        });
        found.map_or(0, |count| count.middle_ns())
    }))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count"
)]
fn nearest_rank(share: f64, all: u64) -> u64 {
    ((share * all as f64).ceil() as u64).clamp(1, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_is_known_within_one_percent(ns in 0_u64..4_000_000_000_000) {
            let middle = LatencyCount { size: size_of(ns), times: 1 }.middle_ns();
            prop_assert!(middle.abs_diff(ns) as f64 <= 0.01 * ns as f64, "{ns} {middle}");
        }

        #[test]
        fn larger_times_have_larger_numbers(a in 0_u64..1 << 44, b in 0_u64..1 << 44) {
            prop_assert!(size_of(a.min(b)) <= size_of(a.max(b)));
            prop_assert!(usize::from(size_of(a)) < COUNTS);
        }
    }

    #[test]
    fn percentiles_are_those_of_the_ranks() {
        let mut counts = LatencyCounts::new(true);
        (1..=100).for_each(|ns| counts.add(Duration(ns)));
        assert_eq!(counts.different(), 100);
        let mut kept = Vec::new();
        counts.drain_into(&mut kept);
        assert_eq!(percentiles(&mut kept, [0.5, 0.99]), Some([50, 99]));
        assert_eq!(counts.different(), 0);
        assert_eq!(percentiles(&mut [], [0.5]), None);
    }
}
