//! What the measured period cost: CPU and kernel counters of a thread, of the host, and times of calls.
//!
//! Everything is read at the two ends of the period; recording a time allocates nothing.

use crate::clock;
use crate::sys::thread;
use hdrhistogram::Histogram as Hdr;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use stackline_core::record::{Histogram, HostUsage, Usage};
use stackline_core::time::Instant;
use stackline_monitor::ThrottledTime;
use std::fs;

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

/// The host's counters at a moment.
#[derive(Clone, Debug, Default)]
pub struct HostSample {
    at: Instant,
    usage: HostUsage,
    throttled_time: ThrottledTime,
}

impl HostSample {
    /// Reads them now.
    #[must_use]
    pub fn now() -> Self {
        let mut usage = HostUsage::default();
        if let Ok(text) = fs::read_to_string("/proc/stat") {
            read_cpu_line(&text, &mut usage);
        }
        if let Ok(text) = fs::read_to_string("/proc/vmstat") {
            usage.swapped_pages = field(&text, "pswpin") + field(&text, "pswpout");
        }
        let throttled_time = ThrottledTime::now();
        Self { at: clock::now(), usage, throttled_time }
    }

    /// From this sample to a later one.
    #[must_use]
    pub fn until(&self, later: &Self) -> HostUsage {
        let (a, b) = (&self.usage, &later.usage);
        let throttled = self.throttled_time.seconds_until(&later.throttled_time);
        HostUsage {
            user_s: (b.user_s - a.user_s).max(0.0),
            system_s: (b.system_s - a.system_s).max(0.0),
            interrupt_s: (b.interrupt_s - a.interrupt_s).max(0.0),
            steal_s: (b.steal_s - a.steal_s).max(0.0),
            idle_s: (b.idle_s - a.idle_s).max(0.0),
            swapped_pages: b.swapped_pages.saturating_sub(a.swapped_pages),
            throttled_s: throttled.as_ref().ok().copied(),
            elapsed_s: (later.at - self.at).seconds(),
            absent: throttled.err().map(|reason| ("throttled_s".to_owned(), reason)).into_iter().collect(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counters since boot")]
fn seconds(count: u64, per_second: f64) -> f64 {
    count as f64 / per_second
}

/// The first line of /proc/stat, in ticks of 10 ms (`USER_HZ` is 100 on every Linux).
fn read_cpu_line(text: &str, usage: &mut HostUsage) {
    let ticks: Vec<f64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .skip(1)
        .map(|word| seconds(word.parse().unwrap_or(0), 100.0))
        .collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0.0);
    usage.user_s = at(0) + at(1);
    usage.system_s = at(2);
    usage.idle_s = at(3) + at(4);
    usage.interrupt_s = at(5) + at(6);
    usage.steal_s = at(7);
}

fn field(text: &str, name: &str) -> u64 {
    text.lines().find_map(|line| line.strip_prefix(name).and_then(|rest| rest.trim().parse().ok())).unwrap_or(0)
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
    fn the_cpu_line_is_ticks() {
        let mut usage = HostUsage::default();
        read_cpu_line("cpu  100 50 25 1000 5 1 2 3 0 0\ncpu0 ...", &mut usage);
        assert!((usage.user_s - 1.5).abs() < 1e-9);
        assert!((usage.interrupt_s - 0.03).abs() < 1e-9);
        assert!((usage.steal_s - 0.03).abs() < 1e-9);
        read_cpu_line("", &mut usage);
        assert!(usage.user_s.abs() < 1e-9);
    }

    #[test]
    fn throttling_is_known_or_has_its_reason() {
        let before = HostSample::now();
        let host = before.until(&HostSample::now());
        assert_eq!(host.throttled_s.is_none(), host.absent.contains_key("throttled_s"), "{host:?}");
        assert!(host.throttled_s.is_none_or(|s| s >= 0.0), "{host:?}");
    }

    #[test]
    fn a_sample_is_cheap() {
        let once = |_| {
            let start = std::time::Instant::now();
            drop(HostSample::now());
            start.elapsed()
        };
        // The best of many, so that a busy neighbour does not fail the test.
        let least = (0..50).map(once).min().unwrap();
        println!("a sample of the host takes {least:?}");
        // The promise is 0.3 ms, optimised.
        let most = if cfg!(debug_assertions) { 3000 } else { 300 };
        assert!(least.as_micros() < most, "{least:?}");
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
