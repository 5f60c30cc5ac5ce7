//! The monitor of how many system calls the whole machine makes, by the kernel's own counter of the trace event
//! `raw_syscalls/sys_enter`.
//!
//! Counting costs every system call of every process a little, so it is on only if the user asks for it.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled, growth};
use crate::kernel_trace::tracepoint_id;
use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};
use stackline_events::catalogue::rows::VmstatSysCalls;
use std::thread::available_parallelism;

/// The name of this monitor.
pub(super) const NAME: &str = "system calls";

/// Starts the monitor.
pub(super) fn start(_: &MonitorSetup<'_>) -> Started {
    let id = tracepoint_id("raw_syscalls/sys_enter")?;
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let mut counters = (0..cores)
        .map(|core| counter(id, core))
        .collect::<Result<Vec<_>, String>>()?;
    let read = move || {
        counters
            .iter_mut()
            .try_fold(0, |sum, counter| Ok(sum + counter.read().map_err(words)?))
    };
    create_sampled(read, |interval, before, now, log| {
        record(interval, *before, *now, log)
    })
}

/// Opens the counter of one core; `id`: the number of the trace event.
fn counter(id: u64, core: usize) -> Result<Counter, String> {
    let builder = Builder::new(Tracepoint::with_id(id))
        .any_pid()
        .one_cpu(core)
        .include_kernel()
        .build();
    let mut counter = builder.map_err(words)?;
    counter.enable().map_err(words)?;
    Ok(counter)
}

fn words(error: std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "counting system calls needs root or CAP_PERFMON".into()
        }
        _ => format!("cannot count system calls: {error}"),
    }
}

fn record(interval: SampleInterval, before: u64, now: u64, log: &mut stackline_events::EventLog) {
    VmstatSysCalls {
        interval_ns: interval.length_ns.into(),
        calls: growth(before, now),
    }
    .write(log, interval.end_ns);
}

#[cfg(test)]
mod tests {
    use crate::{Config, MonitorSession};
    use std::time::Duration;

    #[test]
    fn calls_are_counted_where_that_is_asked_for() {
        let counted = |system_calls| {
            let config = Config {
                system_calls,
                kernel: false,
                interval: Duration::from_millis(20),
                ..Config::new("h")
            };
            let watch = MonitorSession::start(config);
            (0..5_000).for_each(|_| drop(std::fs::metadata("/")));
            let observed = watch.stop();
            let rows = observed
                .event_log
                .records()
                .filter(|record| record.keyword == "VMSTAT_SYS_CALLS");
            let calls: Vec<i64> = rows
                .filter_map(|record| record.values[1].number())
                .collect();
            (calls, observed.absent.get("system calls").cloned())
        };
        assert_eq!(counted(false), (Vec::new(), None));
        match counted(true) {
            (_, Some(why)) => eprintln!("passed over: {why}"),
            (calls, None) => assert!(
                (5_000..50_000_000).contains(&calls.iter().sum::<i64>()),
                "{calls:?}"
            ),
        }
    }
}
