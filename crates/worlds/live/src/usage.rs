//! The CPU time and kernel counters (context switches, page faults) of a thread, read at the start and the end of the measured period.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use stackline_core::run_record::Usage;
use stackline_os::thread;
use std::cell::Cell;

/// What the calling thread has used since it started.
#[must_use]
#[expect(
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "counters of one thread, never negative"
)]
pub fn of_thread() -> Usage {
    // The kernel accounts a running thread's CPU time at timer ticks and when it sleeps, and getrusage returns what was accounted by then:
    // nothing for a thread that has only spun since the last tick. Reading the thread's CPU clock makes the kernel account it first.
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

/// Counts what a thread with several endpoints uses for all of them together. The total is reported once, by the endpoint that stops last.
#[derive(Debug, Default)]
pub struct Meter {
    /// The thread's usage when the count began.
    begun: Cell<Usage>,
    /// The highest number of starts of any endpoint. A responder starts twice: when it accepts, and again when its peer's clock starts.
    round: Cell<u32>,
    /// How many endpoints have started and not stopped.
    running: Cell<u32>,
}

impl Meter {
    /// Called when an endpoint starts its clock for the `round`-th time (from 1). The first endpoint of each round begins the count anew.
    pub fn start(&self, round: u32) {
        if round > self.round.get() {
            self.round.set(round);
            self.begun.set(of_thread());
        }
        self.running
            .update(|running| running + u32::from(round == 1));
    }

    /// Called when an endpoint stops. Returns what it has to report: the thread's usage if it is the last, otherwise nothing.
    #[must_use]
    pub fn stop(&self) -> Usage {
        self.running.update(|running| running.saturating_sub(1));
        if self.running.get() > 0 {
            return Usage::default();
        }
        let now = of_thread();
        now.since(&self.begun.replace(now))
    }
}

/// Sets the calling thread's nice value: a positive one lowers its priority, a negative one raises it.
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
        let counted = (0..20).map(spun).filter(|s| *s > 300e-6).count();
        assert!(counted >= 10, "{counted} of 20");
    }

    #[test]
    fn what_endpoints_of_one_thread_used_is_counted_once() {
        let spin = || {
            let before = of_thread();
            while of_thread().since(&before).cpu_s() < 0.002 {}
        };
        let (meter, before) = (Meter::default(), of_thread());
        meter.start(1);
        meter.start(1);
        spin();
        meter.start(2);
        let waited = of_thread().since(&before).cpu_s();
        spin();
        meter.start(2);
        assert_eq!(meter.stop(), Usage::default());
        spin();
        let (used, all) = (meter.stop().cpu_s(), of_thread().since(&before).cpu_s());
        assert!(
            used >= 0.004 && used <= all - waited + 1e-4,
            "{used} of {all}"
        );
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
