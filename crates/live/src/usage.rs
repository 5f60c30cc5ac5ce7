//! What the measured period cost: CPU and kernel counters of a thread and of the host, read at its two ends.

use crate::clock;
use crate::environment::HeldBack;
use crate::sys::thread;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use stackline_core::record::{HostUsage, Usage};
use stackline_core::time::Instant;
use std::fs;

/// What the calling thread has used so far.
#[must_use]
#[expect(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "counters of one thread, never negative")]
pub fn of_thread() -> Usage {
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

/// The host's counters at a moment.
#[derive(Clone, Debug, Default)]
pub struct HostSample {
    at: Instant,
    usage: HostUsage,
    held_back: HeldBack,
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
        let held_back = HeldBack::now();
        Self { at: clock::now(), usage, held_back }
    }

    /// From this sample to a later one.
    #[must_use]
    pub fn until(&self, later: &Self) -> HostUsage {
        let (a, b) = (&self.usage, &later.usage);
        let throttled = self.held_back.seconds_until(&later.held_back);
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
            let before = of_thread();
            let start = std::time::Instant::now();
            while start.elapsed().as_micros() < 800 {
                std::hint::spin_loop();
            }
            let used = of_thread().since(&before);
            used.user_s + used.system_s
        };
        // Every time, not only when a tick came by: a neighbour may take the core now and then.
        let seen = (0..20).map(spun).filter(|s| *s > 300e-6).count();
        assert!(seen >= 10, "{seen} of 20");
    }

    #[test]
    fn a_thread_uses_what_it_uses() {
        let before = of_thread();
        let mut x = 0_u64;
        while of_thread().since(&before).user_s + of_thread().since(&before).system_s < 0.005 {
            x = x.wrapping_add(1);
        }
        assert!(x > 0);
    }
}
