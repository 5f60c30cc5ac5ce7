//! Whether the generator of a load was late by itself: it could have begun an operation, and had not begun it yet.
//!
//! This is apart from how late operations began because the ones before them were not answered, which is the server's part.

use crate::statistics::{SampleStatistics, to_f64};
use stackline_core::run_record::Histogram;

/// A generator is punctual if 99 % of its operations begin within this of their moments, s.
pub const PUNCTUAL_S: f64 = 100e-6;

/// Whether a generator was late: beyond [`PUNCTUAL_S`] at the 99th percentile.
#[must_use]
pub fn is_late(own_lateness: &SampleStatistics) -> bool {
    own_lateness.p99 > PUNCTUAL_S
}

/// The share of operations that began later than [`PUNCTUAL_S`]; `None` without operations.
pub(crate) fn late_share(own_lateness_ns: &Histogram) -> Option<f64> {
    let n = own_lateness_ns.n();
    let is_late = |entry: &&(u64, u64)| to_f64(entry.0) * 1e-9 > PUNCTUAL_S;
    let late: u64 = own_lateness_ns
        .counts
        .iter()
        .filter(is_late)
        .map(|(_, count)| count)
        .sum();
    (n > 0).then(|| to_f64(late) / to_f64(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tests::histogram;

    #[test]
    fn late_is_beyond_100_us() {
        let times = [vec![100_000; 98], vec![100_001; 2]].concat();
        let times = histogram(&times);
        assert_eq!(late_share(&times), Some(0.02));
        assert!(is_late(
            &SampleStatistics::from_histogram(&times, 1e-9).unwrap()
        ));
        let punctual = histogram(&[100_000; 100]);
        assert!(!is_late(
            &SampleStatistics::from_histogram(&punctual, 1e-9).unwrap()
        ));
        assert_eq!(late_share(&Histogram::default()), None);
    }
}
