//! Two threads that emit 2 million events a second together, for so many seconds, into an event log file: how many are lost.

use super::Failure;
use super::rivals::cpu_ns;
use stackline_events::{EventLogFile, EventRecorder, event};
use std::thread;
use std::time::{Duration, Instant};

const A_SECOND: u64 = 1_000_000;
/// Emitted at a stretch.
const STEP: u64 = 1_000;

pub(super) fn run(seconds: u64) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let recorder = EventRecorder::start(
        "khons",
        EventLogFile::open(&directory.path().join("sustained.tape"))?,
    )?;
    let (start, before) = (Instant::now(), cpu_ns());
    let late = thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|stream| scope.spawn(move || emit(start, stream, seconds)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_default())
            .max()
            .unwrap_or_default()
    });
    let took = start.elapsed();
    let totals = recorder.stop();
    let cpu = (cpu_ns() - before) / 1e9 / took.as_secs_f64();
    println!(
        "2 threads, {} events in {:.2} s: {} recorded, {} lost; {cpu:.2} processors; latest step {late:.2?} behind; \
         stamps within {} ns of the clock",
        2 * A_SECOND * seconds,
        took.as_secs_f64(),
        totals.recorded,
        totals.lost,
        totals.clock_error_ns,
    );
    totals.fault.map_or(Ok(()), |fault| Err(fault.into()))
}

/// A million events a second; how far behind it was at worst.
fn emit(start: Instant, stream: u64, seconds: u64) -> Duration {
    let mut latest = Duration::ZERO;
    for step in 0..A_SECOND * seconds / STEP {
        let due = start + Duration::from_nanos(step * STEP * 1_000_000_000 / A_SECOND);
        let now = Instant::now();
        if now < due {
            thread::sleep(due - now);
        }
        latest = latest.max(now.saturating_duration_since(due));
        (step * STEP..(step + 1) * STEP)
            .for_each(|n| event!("APP_SEND", n, stream, n * 1500, 1500));
    }
    latest
}
