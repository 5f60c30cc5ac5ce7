//! Timestamps that protocols carry, of NTP (RFC 5905) and of PTP, and medians of their differences.

use stackline_core::units;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds from the beginning of 1900, from which NTP counts, to that of 1970.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;
/// Most values that a median is taken of.
const MOST_KEPT: usize = 4096;

/// The median of values of which, when they are many, every second, fourth, eighth and so on is kept.
#[derive(Default)]
pub(super) struct SampledMedian {
    kept: Vec<i64>,
    seen: u64,
    stride_bits: u32,
}

impl SampledMedian {
    pub(super) fn add(&mut self, value: i64) {
        let is_due = |bits: u32, seen: u64| seen.trailing_zeros() >= bits || seen == 0;
        if is_due(self.stride_bits, self.seen) {
            if self.kept.len() == MOST_KEPT {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride_bits += 1;
            }
            if is_due(self.stride_bits, self.seen) {
                self.kept.push(value);
            }
        }
        self.seen += 1;
    }

    pub(super) fn median(&self) -> Option<i64> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn format_ns(ns: i64) -> String {
    units::format_time(ns as f64 / 1e9)
}

/// The wall clock as a timestamp of NTP: seconds since 1900, and 2^-32 of them.
pub(super) fn ntp_now() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let fraction = (u64::from(now.subsec_nanos()) << 32) / 1_000_000_000;
    (now.as_secs() + NTP_TO_UNIX_S) << 32 | fraction
}

/// How much later the second timestamp of NTP is than the first, ns; they may lie in different eras.
pub(super) fn ntp_difference_ns(first: u64, second: u64) -> i64 {
    let difference = i128::from(second.wrapping_sub(first).cast_signed());
    i64::try_from((difference * 1_000_000_000) >> 32).unwrap_or(i64::MAX)
}

/// A truncated timestamp of PTP (seconds and ns), ns.
pub(super) fn ptp_ns(time: u64) -> i64 {
    let nanoseconds = i64::from(time as u32);
    (time >> 32).cast_signed() * 1_000_000_000 + nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_timestamps_go_beyond_eras() {
        assert_eq!(ntp_difference_ns(u64::MAX, (1 << 32) - 1), 1_000_000_000);
        assert_eq!(ntp_difference_ns(3 << 31, 1 << 31), -1_000_000_000);
        assert_eq!(ptp_ns(2 << 32 | 7), 2_000_000_007);
        assert_eq!(format_ns(1_500), "1.50 us");
    }

    #[test]
    fn a_median_of_many_values_keeps_few() {
        let mut median = SampledMedian::default();
        assert_eq!(median.median(), None);
        (0..100_001).for_each(|value| median.add(value));
        assert!(median.kept.len() <= MOST_KEPT);
        let middle = median.median().unwrap();
        assert!((49_000..51_000).contains(&middle), "{middle}");
    }
}
