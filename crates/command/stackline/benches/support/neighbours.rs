//! How much of the host's CPU time went to others while a case ran: with much of it, the case says little.

use super::sys;
use std::time::Instant;

/// The state at the start of a case.
pub(crate) struct Neighbours {
    start: Instant,
    others_s: Option<f64>,
}

impl Neighbours {
    /// Starts to look.
    pub(crate) fn watch() -> Self {
        Self {
            start: Instant::now(),
            others_s: others_s(),
        }
    }

    /// Processors' worth of time that others took since.
    pub(crate) fn took(&self) -> Option<f64> {
        let others_s = others_s()? - self.others_s?;
        Some((others_s / self.start.elapsed().as_secs_f64()).max(0.0))
    }
}

/// Time in which the processors were busy, or taken away by a hypervisor, but not with the benchmark.
fn others_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks = stat
        .lines()
        .next()?
        .split_ascii_whitespace()
        .skip(1)
        .take(8);
    let ticks: Vec<u64> = ticks.map_while(|tick| tick.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks[..] else {
        return None;
    };
    Some((user + nice + system + irq + softirq + steal) as f64 / 100.0 - sys::family_cpu_s())
}
