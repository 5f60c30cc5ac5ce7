//! Collects times of one endpoint, as the live world does: one by one while they are few, in a histogram beyond.

use hdrhistogram::Histogram as Hdr;
use stackline_core::record::Histogram;
use stackline_core::time::Duration;

/// Times kept one by one up to this many.
const EXACT: usize = 8192;
/// Three significant digits.
const DIGITS: u8 = 3;
/// Longest time told apart: an hour in ns; longer ones count as that.
const LONGEST: u64 = 3_600_000_000_000;

/// Collects times in ns.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    exact: Vec<u64>,
    histogram: Option<Hdr<u32>>,
    sum: u64,
    squares: f64,
    min_max: Option<(u64, u64)>,
}

impl Recorder {
    /// Adds one time.
    #[expect(clippy::cast_precision_loss, reason = "squares of ns for a standard deviation")]
    pub(crate) fn record(&mut self, time: Duration) {
        let ns = time.0;
        self.sum += ns;
        self.squares += (ns as f64) * (ns as f64);
        let (min, max) = self.min_max.unwrap_or((ns, ns));
        self.min_max = Some((min.min(ns), max.max(ns)));
        match &mut self.histogram {
            Some(histogram) => histogram.saturating_record(ns.clamp(1, LONGEST)),
            None if self.exact.len() < EXACT => self.exact.push(ns),
            None => self.overflow(ns),
        }
    }

    #[cold]
    fn overflow(&mut self, ns: u64) {
        let mut histogram = Hdr::new_with_bounds(1, LONGEST, DIGITS).ok();
        for value in self.exact.drain(..).chain([ns]) {
            if let Some(histogram) = &mut histogram {
                histogram.saturating_record(value.clamp(1, LONGEST));
            }
        }
        self.histogram = histogram;
    }

    /// What was collected.
    pub(crate) fn finish(mut self) -> Histogram {
        let counts: Vec<(u64, u64)> = if let Some(histogram) = &self.histogram {
            histogram.iter_recorded().map(|v| (v.value_iterated_to(), u64::from(v.count_at_value()))).collect()
        } else {
            self.exact.sort_unstable();
            self.exact.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
        };
        Histogram { counts, sum: self.sum, squares: self.squares, min_max: self.min_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_times_are_kept_in_bounded_memory() {
        let mut recorder = Recorder::default();
        (1..=30_000).for_each(|ns| recorder.record(Duration(ns)));
        assert!(recorder.exact.is_empty());
        let kept = recorder.finish();
        assert_eq!((kept.n(), kept.sum, kept.min_max), (30_000, 30_000 * 30_001 / 2, Some((1, 30_000))));
    }
}
