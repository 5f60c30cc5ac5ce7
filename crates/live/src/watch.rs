//! Watching: what the machine and its kernel do while something is measured, as events.
//!
//! Monitors look at files of `/proc` every so often and tell what happened since they last looked; the kernel's own trace
//! events tell of TCP to the instant; switches are asked by SNMP. It never decides what any of it means, and it changes
//! nothing on the machine but one instance of the kernel's tracing, which goes with it.
//!
//! | module | one idea |
//! | --- | --- |
//! | `round` | one look of a monitor: what was, what is, how long lies between |
//! | `reader` | a file of the kernel, kept open and read again |
//! | `processor`, `memory`, `network`, `process` | the monitors: a parser and what it tells |
//!
//! Every interval ends with its event, and is the true one: a round that came late says so by being long.

mod memory;
mod network;
mod process;
mod processor;
mod reader;
mod round;

use round::{Monitor, Round};
use stackline_core::time::NANOS_PER_SECOND;
use stackline_events::{Keyword, Tape, Value, clock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often monitors look when nobody says.
pub const EVERY: Duration = Duration::from_millis(100);
/// The shortest and the longest interval.
pub const INTERVALS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));
/// Most bytes of events that wait to be taken; what comes behind is counted as lost.
const MOST_BYTES: usize = 256 << 20;

/// Whose TCP is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connections {
    /// That of this process: its connections, and every connection with a port it listens on or connects to.
    Process,
    /// Connections with one of these ports at either end.
    Ports(BTreeSet<u16>),
    /// Every connection of this network namespace.
    All,
}

/// What to watch, and how often.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whose events these are.
    pub host: String,
    /// How often monitors look; brought within [`INTERVALS`].
    pub interval: Duration,
    /// Whose TCP is watched.
    pub connections: Connections,
    /// Interfaces by name; none means all.
    pub interfaces: Vec<String>,
    /// Whether the kernel's trace events are asked for; else, and where it refuses, connections are polled only.
    pub kernel: bool,
}

impl Config {
    /// Everything, every 100 ms, of this process's own connections.
    #[must_use]
    pub fn of(host: &str) -> Self {
        Self {
            host: host.into(),
            interval: EVERY,
            connections: Connections::Process,
            interfaces: Vec::new(),
            kernel: true,
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The events that were not taken before, sorted by nothing.
    pub tape: Tape,
    /// CPU seconds it took, by what took them.
    pub cost_s: BTreeMap<String, f64>,
    /// What could not be watched, and why.
    pub absent: BTreeMap<String, String>,
    /// Things worth telling.
    pub notes: Vec<String>,
}

/// Watches until it is stopped or dropped.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Seen>>,
}

/// What the watching thread and its owner share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    tape: Mutex<Tape>,
}

impl Watch {
    /// Starts. When it returns, everything that can be watched is; the rest will stand in [`Seen::absent`].
    #[must_use]
    pub fn start(config: Config) -> Self {
        let shared = Arc::new(Shared::default());
        let (ready, wait) = mpsc::sync_channel(1);
        let theirs = Arc::clone(&shared);
        let work = move || {
            let mut watcher = Watcher::new(config, theirs);
            // Nobody waits when the owner is gone already.
            let _ = ready.send(());
            watcher.work()
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(work).ok();
        if thread.is_some() {
            // An error means that the thread is gone: its end says the rest.
            let _ = wait.recv();
        }
        Self { shared, thread }
    }

    /// The events so far, which are then forgotten here.
    #[must_use]
    pub fn take(&self) -> Tape {
        std::mem::take(&mut *self.shared.tape.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks a last time and ends.
    #[must_use]
    pub fn stop(mut self) -> Seen {
        self.end()
    }

    fn end(&mut self) -> Seen {
        self.shared.stop.store(true, Ordering::Release);
        let nothing = |reason: &str| Seen {
            absent: BTreeMap::from([("monitors".to_owned(), reason.to_owned())]),
            ..Seen::default()
        };
        let Some(thread) = self.thread.take() else { return nothing("no thread was to be had for them") };
        thread.thread().unpark();
        let mut seen = thread.join().unwrap_or_else(|_| nothing("the thread that watches failed"));
        seen.tape = self.take();
        seen
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

/// The thread that watches.
struct Watcher {
    shared: Arc<Shared>,
    host: String,
    every: Duration,
    monitors: Vec<Box<dyn Monitor>>,
    /// Events that nobody took in time.
    lost: u64,
    seen: Seen,
    began: Instant,
    late: u32,
}

impl Watcher {
    fn new(config: Config, shared: Arc<Shared>) -> Self {
        let every = config.interval.clamp(INTERVALS.0, INTERVALS.1);
        let mut seen = Seen::default();
        let mut monitors: Vec<Box<dyn Monitor>> = Vec::new();
        let all = [processor::all(), memory::all(), network::all(&config.interfaces), process::all(every)];
        for (name, monitor) in all.into_iter().flatten() {
            match monitor {
                Ok(monitor) => monitors.push(monitor),
                Err(reason) => drop(seen.absent.insert(name.into(), reason)),
            }
        }
        let began = Instant::now();
        let mut watcher = Self { shared, host: config.host, every, monitors, lost: 0, seen, began, late: 0 };
        // The first look has nothing to compare with: it is where the first interval begins.
        watcher.look();
        watcher
    }

    fn work(&mut self) -> Seen {
        let mut due = Instant::now() + self.every;
        loop {
            let last = self.shared.stop.load(Ordering::Acquire);
            let now = Instant::now();
            if now >= due || last {
                self.look();
                self.late += u32::from(now > due + self.every);
                // A late round is not made up for: the next comes a whole interval later.
                due = (due + self.every).max(now + self.every / 2);
            }
            if last {
                return self.finish();
            }
            std::thread::park_timeout(due.saturating_duration_since(Instant::now()));
        }
    }

    /// Every monitor looks once; one that fails is given up, with its reason.
    fn look(&mut self) {
        let mut kept = self.shared.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let mut nowhere = Tape::default();
        let full = kept.bytes().len() > MOST_BYTES;
        let tape = if full { &mut nowhere } else { &mut *kept };
        if tape.bytes().is_empty() {
            tape.host(&self.host);
        }
        if !full && self.lost > 0 {
            static LOST: Keyword = Keyword::new("EVENTS_LOST");
            tape.push(LOST.id(), clock::now_ns(), &[Value::from(std::mem::take(&mut self.lost))]);
        }
        let mut round = Round { tape };
        let absent = &mut self.seen.absent;
        self.monitors.retain_mut(|monitor| match monitor.look(&mut round) {
            Ok(()) => true,
            Err(reason) => {
                absent.insert(monitor.name().into(), reason);
                false
            }
        });
        drop(kept);
        self.lost += nowhere.records().count() as u64;
    }

    fn finish(&mut self) -> Seen {
        let mut seen = std::mem::take(&mut self.seen);
        seen.cost_s.insert("monitors".into(), thread_cpu_s());
        if self.late > 0 {
            let share = self.began.elapsed().as_secs_f64() / self.every.as_secs_f64();
            seen.notes.push(format!(
                "{} of some {share:.0} rounds of the monitors came more than an interval late; their intervals are the true ones",
                self.late
            ));
        }
        seen
    }
}

/// CPU seconds of the calling thread.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of one thread")]
fn thread_cpu_s() -> f64 {
    use nix::time::{ClockId, clock_gettime};
    let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    spent.map_or(0.0, |t| t.tv_sec() as f64 + t.tv_nsec() as f64 / NANOS_PER_SECOND as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_tells_of_this_machine_and_what_it_cost() {
        let watch = Watch::start(Config { interval: Duration::from_millis(10), ..Config::of("khons") });
        std::thread::sleep(Duration::from_millis(60));
        let first = watch.take();
        let seen = watch.stop();
        for tape in [&first, &seen.tape] {
            let records: Vec<_> = tape.records().collect();
            assert!(records.iter().any(|record| record.keyword == "NETSTAT_TCP"), "{:?}", seen.absent);
            assert!(records.iter().all(|record| record.host == "khons"));
        }
        let interval = |record: &stackline_events::Record<'_>| record.values[0].number().unwrap();
        let memory: Vec<i64> = first.records().filter(|r| r.keyword == "MEMORY").map(|r| interval(&r)).collect();
        assert!(memory.iter().all(|interval| *interval > 0), "{memory:?}");
        assert!(seen.cost_s["monitors"] > 0.0);
    }

    #[test]
    fn what_is_not_there_is_absent_with_its_reason() {
        let seen = Watch::start(Config { interfaces: vec!["none".into()], ..Config::of("khons") }).stop();
        assert_eq!(seen.absent["interfaces"], "there is no interface none");
    }
}
