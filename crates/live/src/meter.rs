//! What the measured period cost: CPU and kernel counters of a thread, and times of calls.
//!
//! Everything is read at the two ends of the period; recording a time allocates nothing.

use crate::sys::thread;
use hdrhistogram::Histogram as Hdr;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use stackline_core::record::{Histogram, Usage};

/// Times kept one by one up to this many, in a histogram beyond.
const EXACT: usize = 8192;
/// Three significant digits.
const DIGITS: u8 = 3;
/// Longest time told apart: an hour in ns; longer ones count as that.
const LONGEST: u64 = 3_600_000_000_000;

/// Collects times in ns.
#[derive(Debug)]
pub struct Recorder {
    exact: Vec<u64>,
    histogram: Option<Hdr<u32>>,
    sum: u64,
    squares: f64,
    min: u64,
    max: u64,
}

impl Recorder {
    /// For about `expected` times; memory is taken here and not while recording.
    #[must_use]
    pub fn new(expected: u64) -> Self {
        let few = usize::try_from(expected).ok().filter(|n| *n <= EXACT);
        let histogram = if few.is_some() { None } else { histogram() };
        Self { exact: Vec::with_capacity(few.unwrap_or(0)), histogram, sum: 0, squares: 0.0, min: u64::MAX, max: 0 }
    }

    /// Adds one time in ns.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "squares of ns for a standard deviation")]
    pub fn record(&mut self, ns: u64) {
        self.sum += ns;
        self.squares += (ns as f64) * (ns as f64);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        match &mut self.histogram {
            Some(histogram) => histogram.saturating_record(ns.clamp(1, LONGEST)),
            None if self.exact.len() < EXACT => self.exact.push(ns),
            None => self.overflow(ns),
        }
    }

    /// More came than were expected, as in a repeat around the repeat: from here on in a histogram, whose size is fixed.
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

    /// What was collected.
    #[must_use]
    pub fn finish(mut self) -> Histogram {
        let counts: Vec<(u64, u64)> = if let Some(histogram) = &self.histogram {
            histogram.iter_recorded().map(|v| (v.value_iterated_to(), u64::from(v.count_at_value()))).collect()
        } else {
            self.exact.sort_unstable();
            self.exact.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
        };
        let min_max = (self.min <= self.max).then_some((self.min, self.max));
        Histogram { counts, sum: self.sum, squares: self.squares, min_max }
    }
}

fn histogram() -> Option<Hdr<u32>> {
    Hdr::new_with_bounds(1, LONGEST, DIGITS).ok()
}

/// What the calling thread has used so far.
#[must_use]
#[expect(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "counters of one thread, never negative")]
pub fn thread_usage() -> Usage {
    // The kernel adds up a running thread's time at ticks and when it sleeps, and getrusage tells what was added up then:
    // nothing at all of a thread that spins between two ticks. Reading the thread's clock adds up first.
    let _ = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    getrusage(UsageWho::RUSAGE_THREAD).map_or_else(
        |_| Usage::default(),
        |u| Usage {
            user_s: u.user_time().num_microseconds() as f64 / 1e6,
            system_s: u.system_time().num_microseconds() as f64 / 1e6,
            voluntary_switches: u.voluntary_context_switches() as u64,
            involuntary_switches: u.involuntary_context_switches() as u64,
            minor_faults: u.minor_page_faults() as u64,
            major_faults: u.major_page_faults() as u64,
        },
    )
}

/// `after` minus `before`.
#[must_use]
pub fn usage_between(before: &Usage, after: &Usage) -> Usage {
    Usage {
        user_s: (after.user_s - before.user_s).max(0.0),
        system_s: (after.system_s - before.system_s).max(0.0),
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
    }
}

/// Lowers the calling thread's priority, or raises it for a negative value.
///
/// # Errors
/// When the system does not permit it.
pub fn set_nice(nice: i32) -> std::io::Result<()> {
    thread::set_nice(nice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exact_and_histogram_agree(mut values in proptest::collection::vec(1_u64..10_000_000_000, 1..300)) {
            let (mut few, mut many) = (Recorder::new(300), Recorder::new(1 << 40));
            for v in &values {
                few.record(*v);
                many.record(*v);
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
        let mut recorder = Recorder::new(1);
        (1..=30_000).for_each(|ns| recorder.record(ns));
        assert_eq!(recorder.exact.len(), 0);
        let kept = recorder.finish();
        assert_eq!((kept.n(), kept.sum, kept.min_max), (30_000, 30_000 * 30_001 / 2, Some((1, 30_000))));
    }

    #[test]
    fn spinning_for_less_than_a_tick_is_seen() {
        let spun = |_| {
            let before = thread_usage();
            let start = std::time::Instant::now();
            while start.elapsed().as_micros() < 800 {
                std::hint::spin_loop();
            }
            let used = usage_between(&before, &thread_usage());
            used.user_s + used.system_s
        };
        // Every time, not only when a tick came by: a neighbour may take the core now and then.
        let seen = (0..20).map(spun).filter(|s| *s > 300e-6).count();
        assert!(seen >= 10, "{seen} of 20");
    }

    #[test]
    fn a_thread_uses_what_it_uses() {
        let before = thread_usage();
        let mut x = 0_u64;
        while usage_between(&before, &thread_usage()).user_s + usage_between(&before, &thread_usage()).system_s < 0.005
        {
            x = x.wrapping_add(1);
        }
        assert!(x > 0);
    }
}
