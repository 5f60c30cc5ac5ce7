//! The monitor of this process: the time its threads waited for a core, and the time none of them could run.
//!
//! The sampling thread is one of them. When it is late and did not wait for a core, the process was stopped (by a signal, by
//! a control group's freezer, or because the whole machine was paused).

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled};
use crate::kernel_file::SampledFile;
use nix::unistd::{getpid, gettid};
use stackline_events::catalogue::rows::ProcessPaused;
use stackline_events::{EventLog, EventValue};
use stackline_os::root_directory::describe_file_error;

/// Most threads that are sampled.
const MOST_THREADS: usize = 64;
/// Samples after which the list of threads is read again.
const LIST_EVERY: u32 = 10;
/// A sample that is at least this late was delayed by something, ns.
const LATE_NS: u64 = 20_000_000;

/// Starts the monitor.
pub(super) fn start(setup: &MonitorSetup<'_>) -> Started {
    let path = "/proc/self/schedstat";
    waited_ns(SampledFile::open(path)?.text()?)
        .ok_or_else(|| format!("{path} has an unexpected format"))?;
    let sampler = SampledThread::open(gettid().to_string())
        .ok_or("/proc does not list the sampling thread")?;
    let mut threads = ProcessThreads {
        sampler,
        others: Vec::new(),
        samples: 0,
    };
    let every_ns = u64::try_from(setup.config.limited_interval().as_nanos()).unwrap_or(u64::MAX);
    create_sampled(
        move || threads.waits(),
        move |interval, _, waits, log| record(interval, every_ns, *waits, log),
    )
}

/// The total time a thread has waited for a core, ns, from `schedstat`, whose words are: time on a core, time waiting for one,
/// number of turns.
fn waited_ns(schedstat: &str) -> Option<u64> {
    let mut words = schedstat.split_ascii_whitespace();
    words.next()?.parse::<u64>().ok()?;
    words.next()?.parse().ok()
}

struct SampledThread {
    id: String,
    file: SampledFile,
    waited_ns: u64,
}

impl SampledThread {
    fn open(id: String) -> Option<Self> {
        let mut file = SampledFile::open(&format!("/proc/self/task/{id}/schedstat")).ok()?;
        let waited_ns = waited_ns(file.text().ok()?)?;
        Some(Self {
            id,
            file,
            waited_ns,
        })
    }

    /// How long it waited since the last call, ns; `None` when it has ended.
    fn wait_ns(&mut self) -> Option<u64> {
        let now = waited_ns(self.file.text().ok()?)?;
        Some(now.saturating_sub(std::mem::replace(&mut self.waited_ns, now)))
    }
}

/// How long threads waited for a core in an interval, ns.
#[derive(Clone, Copy)]
struct SamplerCoreWaits {
    sampler: u64,
    /// The longest wait of the other threads.
    longest: u64,
}

/// The threads of this process.
struct ProcessThreads {
    sampler: SampledThread,
    others: Vec<SampledThread>,
    samples: u32,
}

impl ProcessThreads {
    fn waits(&mut self) -> Result<SamplerCoreWaits, String> {
        let sampler = self
            .sampler
            .wait_ns()
            .ok_or("the sampling thread's schedstat can no longer be read")?;
        let mut longest = 0;
        self.others.retain_mut(|thread| {
            let wait = thread.wait_ns();
            longest = longest.max(wait.unwrap_or(0));
            wait.is_some()
        });
        if self.samples.is_multiple_of(LIST_EVERY) {
            self.list()?;
        }
        self.samples += 1;
        Ok(SamplerCoreWaits { sampler, longest })
    }

    /// Adds threads that were created since.
    fn list(&mut self) -> Result<(), String> {
        let path = "/proc/self/task";
        let entries = std::fs::read_dir(path).map_err(|error| describe_file_error(path, &error))?;
        for entry in entries.flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            let listed = id == self.sampler.id || self.others.iter().any(|thread| thread.id == id);
            if !listed && self.others.len() < MOST_THREADS {
                self.others.extend(SampledThread::open(id));
            }
        }
        Ok(())
    }
}

/// Records what kept the process from running in an interval, if anything did.
fn record(interval: SampleInterval, every_ns: u64, waits: SamplerCoreWaits, log: &mut EventLog) {
    let late = interval.length_ns.saturating_sub(every_ns);
    // A long interval counts as late only if a good part of it is.
    let stopped = late >= LATE_NS.max(every_ns / 2) && waits.sampler < late / 2;
    let waited = waits
        .longest
        .max(if late >= LATE_NS { waits.sampler } else { 0 });
    let (waited, reason) = match stopped {
        true => (late, "stopped"),
        false if waited >= interval.length_ns / 2 => (waited, "waited for a core"),
        false => return,
    };
    ProcessPaused {
        interval_ns: interval.length_ns.into(),
        pid: getpid().as_raw().into(),
        waited_ns: waited.into(),
        reason: EventValue::Text(reason),
    }
    .write(log, interval.end_ns);
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::lines;
    use super::*;

    const MS: u64 = 1_000_000;

    fn recorded(interval_ms: u64, sampler_ms: u64, longest_ms: u64) -> Vec<String> {
        let mut log = EventLog::default();
        let interval = SampleInterval {
            end_ns: 1_000 * MS,
            length_ns: interval_ms * MS,
        };
        record(
            interval,
            100 * MS,
            SamplerCoreWaits {
                sampler: sampler_ms * MS,
                longest: longest_ms * MS,
            },
            &mut log,
        );
        lines(&log)
    }

    #[test]
    fn a_process_that_runs_has_no_event() {
        assert!(recorded(100, 0, 0).is_empty());
        assert!(recorded(110, 5, 40).is_empty());
        assert!(recorded(140, 0, 30).is_empty(), "a little late is no stop");
    }

    #[test]
    fn a_stop_differs_from_waiting_for_a_core() {
        let pid = getpid();
        assert_eq!(
            recorded(1_000, 1, 2),
            [format!("PROCESS_PAUSED 1000000000;{pid};900000000;stopped")]
        );
        assert_eq!(
            recorded(100, 0, 80),
            [format!(
                "PROCESS_PAUSED 100000000;{pid};80000000;waited for a core"
            )]
        );
        assert_eq!(
            recorded(400, 290, 0),
            [format!(
                "PROCESS_PAUSED 400000000;{pid};290000000;waited for a core"
            )]
        );
    }

    #[test]
    fn the_wait_is_the_second_number_of_schedstat() {
        assert_eq!(waited_ns("12 52228 1\n"), Some(52_228));
        for text in ["", "12", "x y", "-1 5 1"] {
            assert_eq!(waited_ns(text), None, "{text}");
        }
    }
}
