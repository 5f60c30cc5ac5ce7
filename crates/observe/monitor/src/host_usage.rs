//! What the whole host used between two moments: CPU time, swapping, throttling. It reads `/proc/stat`, `/proc/vmstat` and files of
//! control groups.

use crate::clock::monotonic_ns;
use crate::parse::{name_values, stat};
use stackline_core::run_record::HostUsage;
use stackline_core::time::NANOS_PER_SECOND;
use stackline_os::own_control_groups::ThrottledTime;
use std::fs;

/// The host's counters at a moment.
#[derive(Clone, Debug, Default)]
pub struct HostSample {
    at_ns: u64,
    usage: HostUsage,
    throttled: ThrottledTime,
}

impl HostSample {
    /// Reads the counters now.
    #[must_use]
    pub fn now() -> Self {
        let mut usage = HostUsage::default();
        if let Ok(text) = fs::read_to_string("/proc/stat") {
            set_cpu_times(&text, &mut usage);
        }
        if let Ok(text) = fs::read_to_string("/proc/vmstat") {
            let counters = name_values::counters(&text);
            usage.swapped_pages = ["pswpin", "pswpout"]
                .iter()
                .filter_map(|name| counters.get(name))
                .sum();
        }
        let throttled = ThrottledTime::now();
        Self {
            at_ns: monotonic_ns(),
            usage,
            throttled,
        }
    }

    /// What the host used from this sample to a later one.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of one measurement")]
    pub fn until(&self, later: &Self) -> HostUsage {
        let (a, b) = (&self.usage, &later.usage);
        let throttled = self.throttled.seconds_until(&later.throttled);
        HostUsage {
            // Counters of `/proc/stat` may go back, such as that of iowait (proc_stat(5)).
            user_s: (b.user_s - a.user_s).max(0.0),
            system_s: (b.system_s - a.system_s).max(0.0),
            interrupt_s: (b.interrupt_s - a.interrupt_s).max(0.0),
            steal_s: (b.steal_s - a.steal_s).max(0.0),
            idle_s: (b.idle_s - a.idle_s).max(0.0),
            swapped_pages: b.swapped_pages.saturating_sub(a.swapped_pages),
            throttled_s: throttled.as_ref().ok().copied(),
            elapsed_s: later.at_ns.saturating_sub(self.at_ns) as f64 / NANOS_PER_SECOND as f64,
            absent: throttled
                .err()
                .map(|reason| ("throttled_s".to_owned(), reason))
                .into_iter()
                .collect(),
        }
    }
}

/// Sets the CPU times from the first line of `/proc/stat`, that of all processors.
fn set_cpu_times(stat: &str, usage: &mut HostUsage) {
    let line = stat.lines().next().unwrap_or_default();
    let [user, nice, system, idle, iowait, irq, softirq, steal] =
        stat::parse(line).all.unwrap_or_default().seconds();
    usage.user_s = user + nice;
    usage.system_s = system;
    usage.idle_s = idle + iowait;
    usage.interrupt_s = irq + softirq;
    usage.steal_s = steal;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_are_ticks_of_10_ms() {
        let mut usage = HostUsage::default();
        set_cpu_times("cpu  100 50 25 1000 5 1 2 3 0 0\ncpu0 ...", &mut usage);
        assert!((usage.user_s - 1.5).abs() < 1e-9);
        assert!((usage.interrupt_s - 0.03).abs() < 1e-9);
        assert!((usage.steal_s - 0.03).abs() < 1e-9);
        set_cpu_times("", &mut usage);
        assert!(usage.user_s.abs() < 1e-9);
    }

    #[test]
    fn throttling_is_known_or_has_its_reason() {
        let before = HostSample::now();
        let host = before.until(&HostSample::now());
        assert_eq!(
            host.throttled_s.is_none(),
            host.absent.contains_key("throttled_s"),
            "{host:?}"
        );
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
}
