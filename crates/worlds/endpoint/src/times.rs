//! Collects the times of one endpoint: as single values while they are few, in a histogram of bounded size beyond.

use crate::service::ConnectionOpening;
use hdrhistogram::Histogram as Hdr;
use stackline_core::run_record::{Histogram, OpeningTimes};
use stackline_core::time::Duration;

/// The most times that are kept as single values.
const EXACT: usize = 8192;
/// Significant decimal digits of the histogram.
const DIGITS: u8 = 3;
/// Those of a coarse one.
const COARSE_DIGITS: u8 = 2;
/// The longest time that the histogram resolves, in ns: an hour; longer times count as this.
const LONGEST: u64 = 3_600_000_000_000;

/// A collector of times in ns.
#[derive(Debug)]
pub struct DurationSamples {
    /// The single values; empty once there is a histogram.
    exact: Vec<u64>,
    histogram: Option<Hdr<u32>>,
    sum: u64,
    /// The sum of the squares.
    squares: f64,
    min: u64,
    max: u64,
}

impl DurationSamples {
    /// A collector for about `expected` times; memory is allocated here and not while recording.
    #[must_use]
    pub fn new(expected: u64) -> Self {
        let few = usize::try_from(expected).ok().filter(|n| *n <= EXACT);
        let histogram = if few.is_some() { None } else { histogram() };
        Self {
            exact: Vec::with_capacity(few.unwrap_or(0)),
            histogram,
            sum: 0,
            squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// A collector in little memory: a time is known to 1 %.
    #[must_use]
    pub fn coarse() -> Self {
        Self {
            histogram: Hdr::new_with_bounds(1, LONGEST, COARSE_DIGITS).ok(),
            ..Self::new(0)
        }
    }

    /// Adds one time.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        reason = "in ns squared, for computing a standard deviation"
    )]
    pub fn record(&mut self, time: Duration) {
        let ns = time.0;
        self.sum += ns;
        self.squares += (ns as f64) * (ns as f64);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        match &mut self.histogram {
            // The histogram has no 0.
            Some(histogram) => histogram.saturating_record(ns.clamp(1, LONGEST)),
            None if self.exact.len() < EXACT => self.exact.push(ns),
            None => self.overflow(ns),
        }
    }

    /// Moves all values into a histogram when more came than were expected, as with a mark in a repeat.
    #[cold]
    fn overflow(&mut self, ns: u64) {
        let mut histogram = histogram();
        for value in self.exact.drain(..).chain([ns]) {
            if let Some(histogram) = &mut histogram {
                histogram.saturating_record(value.clamp(1, LONGEST));
            }
        }
        self.histogram = histogram;
    }

    /// The collected times as the histogram of a run record.
    #[must_use]
    pub fn finish(mut self) -> Histogram {
        let counts: Vec<(u64, u64)> = if let Some(histogram) = &self.histogram {
            histogram
                .iter_recorded()
                .map(|v| (v.value_iterated_to(), u64::from(v.count_at_value())))
                .collect()
        } else {
            self.exact.sort_unstable();
            self.exact
                .chunk_by(|a, b| a == b)
                .map(|same| (same[0], same.len() as u64))
                .collect()
        };
        let min_max = (self.min <= self.max).then_some((self.min, self.max));
        Histogram {
            counts,
            sum: self.sum,
            squares: self.squares,
            min_max,
        }
    }
}

/// The parts of connecting, of stacks that report them; it takes memory where there are any.
#[derive(Debug)]
pub struct OpeningSamples {
    transport: DurationSamples,
    tls_round_trip: DurationSamples,
}

impl Default for OpeningSamples {
    fn default() -> Self {
        Self {
            transport: DurationSamples::new(0),
            tls_round_trip: DurationSamples::new(0),
        }
    }
}

impl OpeningSamples {
    /// Adds those of one connection, if it reports them.
    pub fn record(&mut self, opening: Option<ConnectionOpening>) {
        let Some(opening) = opening else { return };
        self.transport.record(opening.transport);
        if let Some(time) = opening.tls_round_trip {
            self.tls_round_trip.record(time);
        }
    }

    /// The collected times.
    #[must_use]
    pub fn finish(self) -> OpeningTimes {
        OpeningTimes {
            transport: self.transport.finish(),
            tls_round_trip: self.tls_round_trip.finish(),
        }
    }
}

fn histogram() -> Option<Hdr<u32>> {
    Hdr::new_with_bounds(1, LONGEST, DIGITS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exact_and_histogram_agree(mut values in proptest::collection::vec(1_u64..10_000_000_000, 1..300)) {
            let (mut few, mut many) = (DurationSamples::new(300), DurationSamples::new(1 << 40));
            for v in &values {
                few.record(Duration(*v));
                many.record(Duration(*v));
            }
            let (few, many) = (few.finish(), many.finish());
            values.sort_unstable();
            prop_assert_eq!(few.n(), values.len() as u64);
            prop_assert_eq!(many.n(), values.len() as u64);
            prop_assert_eq!(few.sum, many.sum);
            prop_assert_eq!(few.min_max, many.min_max);
            for ((value, _), (exact, _)) in many.counts.iter().take(1).zip(few.counts.iter().take(1)) {
                prop_assert!(value.abs_diff(*exact) as f64 <= 0.001 * *exact as f64 + 1.0);
            }
        }
    }

    #[test]
    fn more_than_expected_is_kept_in_bounded_memory() {
        let mut times = DurationSamples::new(1);
        (1..=30_000).for_each(|ns| times.record(Duration(ns)));
        assert_eq!(times.exact.len(), 0);
        let kept = times.finish();
        assert_eq!(
            (kept.n(), kept.sum, kept.min_max),
            (30_000, 30_000 * 30_001 / 2, Some((1, 30_000)))
        );
    }
}
