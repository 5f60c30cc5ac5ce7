//! Whether this process could run: time its threads waited for a core, and time nothing of it ran at all.
//!
//! The watching thread is one of them. Where it comes late without having waited for a core, the process was stopped (a
//! signal, a control group's freezer, a machine that was paused whole).

use super::sample::{Monitor, Round, Started, Step};
use crate::file::Reader;
use nix::unistd::{getpid, gettid};
use stackline_events::{Keyword, Tape, Value, clock};
use std::time::Duration;

/// Most threads that are looked at.
const MOST_THREADS: usize = 64;
/// Rounds after which threads are looked for again.
const ROUNDS: u32 = 10;
/// A thread that comes this much later than it asked for was kept from running.
const LATE_NS: u64 = 20_000_000;

/// The monitor; `every` is how often it is asked to look.
pub(crate) fn all(every: Duration) -> Vec<Started> {
    vec![("process", Process::start(every))]
}

/// What the kernel's scheduler says of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Scheduled {
    /// Time it could have run and had no core, ns.
    waited: u64,
}

/// Reads `schedstat`: time on a core, time waiting for one, how often it got one.
fn scheduled(text: &str) -> Option<Scheduled> {
    let mut words = text.split_ascii_whitespace();
    words.next()?.parse::<u64>().ok()?;
    Some(Scheduled { waited: words.next()?.parse().ok()? })
}

struct Thread {
    id: String,
    file: Reader,
    last: Scheduled,
}

impl Thread {
    fn of(id: String) -> Option<Self> {
        let mut file = Reader::open(&format!("/proc/self/task/{id}/schedstat")).ok()?;
        let last = scheduled(file.text().ok()?)?;
        Some(Self { id, file, last })
    }

    /// How long it waited since the last look; `None` when it is gone.
    fn waited(&mut self) -> Option<u64> {
        let now = scheduled(self.file.text().ok()?)?;
        let waited = now.waited.saturating_sub(self.last.waited);
        self.last = now;
        Some(waited)
    }
}

struct Process {
    every_ns: u64,
    watcher: Thread,
    threads: Vec<Thread>,
    rounds: u32,
    last_ns: Option<u64>,
}

impl Process {
    fn start(every: Duration) -> Result<Box<dyn Monitor>, String> {
        let path = "/proc/self/schedstat";
        scheduled(Reader::open(path)?.text()?).ok_or_else(|| format!("{path} is not as expected"))?;
        let watcher = Thread::of(gettid().to_string()).ok_or("the watching thread finds itself nowhere below /proc")?;
        let every_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        Ok(Box::new(Self { every_ns, watcher, threads: Vec::new(), rounds: 0, last_ns: None }))
    }

    /// Threads come and go.
    fn look_for_threads(&mut self) -> Result<(), String> {
        let path = "/proc/self/task";
        let entries = std::fs::read_dir(path).map_err(|error| crate::file::reason(path, &error))?;
        for entry in entries.flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            let known = id == self.watcher.id || self.threads.iter().any(|thread| thread.id == id);
            if !known && self.threads.len() < MOST_THREADS {
                self.threads.extend(Thread::of(id));
            }
        }
        Ok(())
    }
}

impl Monitor for Process {
    fn name(&self) -> &'static str {
        "process"
    }

    fn look(&mut self, round: &mut Round<'_>) -> Result<(), String> {
        let at_ns = clock::now_ns();
        let watcher = self.watcher.waited().ok_or("the watching thread's schedstat is gone")?;
        let mut longest = 0;
        self.threads.retain_mut(|thread| {
            let waited = thread.waited();
            longest = longest.max(waited.unwrap_or(0));
            waited.is_some()
        });
        if let Some(before_ns) = self.last_ns {
            let step = Step { at_ns, interval_ns: at_ns.saturating_sub(before_ns) };
            tell(step, self.every_ns, watcher, longest, round.tape);
        }
        self.last_ns = Some(at_ns);
        if self.rounds.is_multiple_of(ROUNDS) {
            self.look_for_threads()?;
        }
        self.rounds += 1;
        Ok(())
    }
}

/// What kept the process from running in an interval, if anything did: `watcher` and `longest` are how long the watching
/// thread and the unluckiest of the others waited for a core.
fn tell(step: Step, every_ns: u64, watcher: u64, longest: u64, tape: &mut Tape) {
    static PROCESS_PAUSED: Keyword = Keyword::new("PROCESS_PAUSED");
    let late = step.interval_ns.saturating_sub(every_ns);
    // A long interval is not late before a good part of it is.
    let stopped = late >= LATE_NS.max(every_ns / 2) && watcher < late / 2;
    let waited = longest.max(if late >= LATE_NS { watcher } else { 0 });
    let (waited, reason) = match stopped {
        true => (late, "stopped"),
        false if waited >= step.interval_ns / 2 => (waited, "waited for a core"),
        false => return,
    };
    let pid = Value::from(getpid().as_raw());
    step.tell(tape, &PROCESS_PAUSED, &[pid, waited.into(), Value::Text(reason)]);
}

#[cfg(test)]
mod tests {
    use super::super::sample::lines;
    use super::*;

    const MS: u64 = 1_000_000;

    fn told(interval_ms: u64, watcher_ms: u64, longest_ms: u64) -> Vec<String> {
        let mut tape = Tape::default();
        let step = Step { at_ns: 1_000 * MS, interval_ns: interval_ms * MS };
        tell(step, 100 * MS, watcher_ms * MS, longest_ms * MS, &mut tape);
        lines(&tape)
    }

    #[test]
    fn a_process_that_runs_is_not_told_of() {
        assert!(told(100, 0, 0).is_empty());
        assert!(told(110, 5, 40).is_empty());
        assert!(told(140, 0, 30).is_empty(), "a little late is no stop");
    }

    #[test]
    fn being_stopped_is_told_from_waiting_for_a_core() {
        let pid = getpid();
        assert_eq!(told(1_000, 1, 2), [format!("PROCESS_PAUSED 1000000000;{pid};900000000;stopped")]);
        assert_eq!(told(100, 0, 80), [format!("PROCESS_PAUSED 100000000;{pid};80000000;waited for a core")]);
        assert_eq!(told(400, 290, 0), [format!("PROCESS_PAUSED 400000000;{pid};290000000;waited for a core")]);
    }

    #[test]
    fn the_scheduler_is_read() {
        assert_eq!(scheduled("12 52228 1\n"), Some(Scheduled { waited: 52_228 }));
        for text in ["", "12", "x y", "-1 5 1"] {
            assert_eq!(scheduled(text), None, "{text}");
        }
    }
}
