//! What runs in this process: the clock, `event!` into several sinks, `tracing` with its text formatter.

use super::{Failure, Rival};
use stackline_events::{EventLog, EventLogFile, EventRecorder, EventSink, EventTextFile, event};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

pub(super) const ON: &str = "event!, the emitting thread";
pub(super) const TRACING: &str = "tracing, text formatter, to a file";

/// Events at a stretch, then a rest in which they are drained: what an application does between two waits.
const BURST: i64 = 10_000;
const BURSTS: u32 = 20;
const REST: Duration = Duration::from_millis(5);

/// Keeps nothing.
pub(super) struct Nowhere;

impl EventSink for Nowhere {
    fn take(&mut self, _: &EventLog) -> io::Result<()> {
        Ok(())
    }
}

/// Mean ns of one turn, of the thread that takes them.
fn wall(mut turn: impl FnMut(i64)) -> f64 {
    let mut spent = Duration::ZERO;
    for _ in 0..BURSTS {
        let start = Instant::now();
        (0..BURST).for_each(&mut turn);
        spent += start.elapsed();
        std::thread::sleep(REST);
    }
    spent.as_nanos() as f64 / f64::from(BURSTS) / BURST as f64
}

/// ns of processor time of all threads so far.
pub(super) fn cpu_ns() -> f64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanos: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    const PROCESS_CPUTIME: i32 = 2;
    let mut time = Timespec {
        seconds: 0,
        nanos: 0,
    };
    // SAFETY: the place is a timespec of 64-bit Linux; the clock exists.
    unsafe { clock_gettime(PROCESS_CPUTIME, &raw mut time) };
    time.seconds as f64 * 1e9 + time.nanos as f64
}

fn emit(n: i64) {
    event!("APP_SEND", n, 4, n * 1500, 1500);
}

/// Processor time of everything that an event costs until it is in the sink.
fn recorded(sink: impl EventSink + 'static, cost: impl Fn() -> f64) -> Result<(f64, f64), Failure> {
    let recorder = EventRecorder::start("khons", sink)?;
    let before = cpu_ns();
    // The first time, the kernel gives memory to the ring while it is first written.
    cost();
    let wall = cost();
    let totals = recorder.stop();
    let all = (cpu_ns() - before) / totals.recorded as f64;
    if totals.lost > 0 || totals.fault.is_some() {
        return Err(format!("not everything was kept: {totals:?}").into());
    }
    Ok((wall, all))
}

pub(super) fn own(directory: &Path) -> Result<Vec<Rival>, Failure> {
    let (event_log, text) = (directory.join("own.tape"), directory.join("own.log"));
    let (log, emitting) = (directory.join("tracing.log"), |sink| {
        recorded(sink, || wall(emit))
    });
    Ok(vec![
        Rival::new("clock_gettime", || {
            Ok(wall(|_| {
                black_box(SystemTime::now());
            }))
        }),
        Rival::new("an empty loop", || Ok(wall(|n| _ = black_box(n)))),
        Rival::new("event!, off", || {
            Ok(wall(|n| {
                emit(black_box(n));
            }))
        }),
        Rival::new(ON, move || Ok(emitting(Nowhere)?.0)),
        Rival::new("event! with a text of 12 bytes", || {
            let text = |n| event!("APP_SEND", n, 4, n * 1500, 1500, "queue is full");
            Ok(recorded(Nowhere, || wall(text))?.0)
        }),
        Rival::new("event! to an event log, all processor time", move || {
            std::fs::remove_file(&event_log).or_else(absent)?;
            Ok(recorded(EventLogFile::open(&event_log)?, || wall(emit))?.1)
        }),
        Rival::new("event! to a text file, all processor time", move || {
            std::fs::remove_file(&text).or_else(absent)?;
            Ok(recorded(EventTextFile::open(&text)?, || wall(emit))?.1)
        }),
        Rival::new(TRACING, move || {
            let subscriber = tracing_subscriber::fmt()
                .with_ansi(false)
                .with_writer(Mutex::new(File::create(&log)?));
            Ok(tracing::subscriber::with_default(
                subscriber.finish(),
                || {
                    wall(|n| {
                        tracing::info!(
                            unit = n,
                            stream = 4,
                            offset = n * 1500,
                            bytes = 1500,
                            "APP_SEND"
                        )
                    })
                },
            ))
        }),
    ])
}

fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}
