//! Calls one by one, with the moments at which they began, in bounded memory: when there are too many, every second one is left out.

use stackline_core::time::{Duration, Instant};

/// Most calls that are kept of one endpoint.
const CAPACITY: usize = 2048;

/// The calls of one endpoint in the order in which they ended.
#[derive(Debug, Default)]
pub struct CallSeries {
    kept: Vec<(Instant, Duration)>,
    /// One of so many calls is kept.
    stride: u64,
    /// How many calls there were.
    seen: u64,
}

impl CallSeries {
    /// A series; memory is allocated here and not while calls are added.
    #[must_use]
    pub fn new() -> Self {
        Self {
            kept: Vec::with_capacity(CAPACITY),
            stride: 1,
            seen: 0,
        }
    }

    /// Adds a call that began then and took so long.
    pub fn add(&mut self, begun: Instant, took: Duration) {
        if self.seen.is_multiple_of(self.stride) {
            if self.kept.len() == CAPACITY {
                let mut is_kept = false;
                self.kept.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.kept.push((begun, took));
            }
        }
        self.seen += 1;
    }

    /// The calls that are kept; `reading` is what a clock reads at a moment.
    #[must_use]
    pub fn finish(self, reading: impl Fn(Instant) -> Instant) -> Vec<(Instant, Duration)> {
        let calls = self.kept.into_iter();
        calls.map(|(begun, took)| (reading(begun), took)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_long_time_are_thinned_out_evenly() {
        let mut series = CallSeries::new();
        (0..10_000).for_each(|at| series.add(Instant(at), Duration(at)));
        let kept = series.finish(|at| at);
        assert!((CAPACITY / 2..=CAPACITY).contains(&kept.len()));
        let expected = (0..10_000).step_by(8);
        assert!(kept.iter().map(|(begun, _)| begun.0).eq(expected));
    }

    #[test]
    fn few_calls_are_all_kept() {
        let mut series = CallSeries::new();
        (0..2048).for_each(|at| series.add(Instant(at), Duration(1)));
        assert_eq!(series.finish(|at| at).len(), 2048);
    }
}
