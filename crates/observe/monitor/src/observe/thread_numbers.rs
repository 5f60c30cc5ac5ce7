//! Finds the numbers of threads in the kernel's trace events, which are those of its first PID namespace, for the IDs that this
//! process sees. Within a container they differ, and the kernel shows the former nowhere but in trace records.
//!
//! The trick: writing to `/proc/PID/oom_score_adj` the value that it has already changes nothing, but makes a trace record with the
//! thread's number.

use crate::kernel_trace::{KernelTraceRings, TraceEventFormat, UndecodedTrace, read_global};
use nix::unistd::gettid;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// The first PID namespace, whose number is the same in every kernel (`PROC_PID_INIT_INO`).
const FIRST: &str = "pid:[4026531836]";
/// The event whose records contain the number of the thread to which another one writes.
const EVENT: &str = "oom/oom_score_adj_update";
/// Kernel memory for each core's records, KiB.
const RING_KIB: u32 = 16;
/// The most pairs of numbers that are remembered; when there are more, all are forgotten.
const MOST: usize = 1 << 16;
/// The kernel's list of names is read again after this.
const READS_AGAIN: Duration = Duration::from_millis(200);

/// The known pairs of a thread's number in trace events (the kernel's) and its ID as this process sees it (its own).
#[derive(Clone, Debug, Default)]
pub struct ThreadNumbers {
    /// The pairs; `None` if both numbers are always the same.
    pairs: Option<NumberPairs>,
    /// The names of threads by the kernel's numbers, as the kernel remembers them.
    names: HashMap<u32, String>,
    /// When the names were read.
    read: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct NumberPairs {
    /// Own IDs by the kernel's numbers.
    own_of: HashMap<u32, u32>,
    /// The kernel's numbers by own IDs.
    kernel_of: HashMap<u32, u32>,
}

impl ThreadNumbers {
    /// The numbers for this process, without any pair yet. They do not differ if it is in the first PID namespace, or if that is not
    /// known.
    #[must_use]
    pub fn of_this_process() -> Self {
        let namespace = fs::read_link("/proc/self/ns/pid");
        let differ = namespace.is_ok_and(|namespace| namespace.as_os_str() != FIRST);
        Self {
            pairs: differ.then(NumberPairs::default),
            ..Self::default()
        }
    }

    /// Whether the kernel's numbers differ from those that this process sees.
    #[must_use]
    pub const fn differ(&self) -> bool {
        self.pairs.is_some()
    }

    /// The kernel's number of a thread, if it is known.
    #[must_use]
    pub fn kernel(&self, own: u32) -> Option<u32> {
        match &self.pairs {
            None => Some(own),
            Some(pairs) => pairs.kernel_of.get(&own).copied(),
        }
    }

    /// The ID of a thread as this process sees it, if it is known.
    #[must_use]
    pub fn own(&self, kernel: u32) -> Option<u32> {
        match &self.pairs {
            None => Some(kernel),
            Some(pairs) => pairs.own_of.get(&kernel).copied(),
        }
    }

    /// Remembers that both numbers belong to one thread.
    pub fn pair(&mut self, own: u32, kernel: u32) {
        let Some(pairs) = &mut self.pairs else { return };
        if pairs.own_of.len() >= MOST {
            pairs.own_of.clear();
            pairs.kernel_of.clear();
        }
        pairs.own_of.insert(kernel, own);
        pairs.kernel_of.insert(own, kernel);
    }

    /// The name of a thread that this process does not see, if the kernel remembers it. For a thread that has hardly run it may be
    /// the name of an earlier thread with its number.
    pub fn name(&mut self, kernel: u32) -> Option<String> {
        let is_old = self.read.is_none_or(|read| read.elapsed() >= READS_AGAIN);
        if is_old && !self.names.contains_key(&kernel) {
            self.read = Some(Instant::now());
            self.names = names(&read_global("saved_cmdlines").unwrap_or_default());
        }
        self.names.get(&kernel).cloned()
    }
}

/// Parses lines of a number and a name; the name is `<...>` if the kernel does not know it.
fn names(text: &str) -> HashMap<u32, String> {
    let line = |line: &str| {
        let (number, name) = line.trim_start().split_once(' ')?;
        Some((number.parse().ok()?, name.to_owned())).filter(|_| name != "<...>")
    };
    text.lines().filter_map(line).collect()
}

/// Finds the kernel's numbers of threads.
pub struct ThreadNumberFinder {
    rings: KernelTraceRings,
    format: TraceEventFormat,
    read: UndecodedTrace,
}

impl ThreadNumberFinder {
    /// Creates a trace instance and switches the event on.
    ///
    /// # Errors
    /// Where there is no tracefs, or not for this user, or the kernel has no such event.
    pub fn start() -> Result<Self, String> {
        let rings = KernelTraceRings::create(RING_KIB)?;
        let format = rings.format(EVENT)?;
        rings.enable(EVENT)?;
        Ok(Self {
            rings,
            format,
            read: UndecodedTrace::default(),
        })
    }

    /// Finds the kernel's numbers of threads, each given by its process ID and thread ID, if they exist; they are added to
    /// `numbers`.
    ///
    /// # Errors
    /// When not even a thread of this process is found.
    pub fn find(
        &mut self,
        threads: &[(u32, u32)],
        numbers: &mut ThreadNumbers,
    ) -> Result<(), String> {
        // A new thread asks, with a unique name by which its records are recognised; it drops a capability, which ends with it.
        let name = format!(
            "sl{:012x}",
            u64::from(std::process::id()) << 24 ^ now_bits()
        );
        let found = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name(name.clone())
                .spawn_scoped(scope, || self.find_all(threads, &name));
            let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
            thread
                .join()
                .unwrap_or_else(|_| Err("the querying thread panicked".into()))
        })?;
        for (own, kernel) in found {
            numbers.pair(own, kernel);
        }
        Ok(())
    }

    fn find_all(&mut self, threads: &[(u32, u32)], name: &str) -> Result<Vec<(u32, u32)>, String> {
        // With CAP_SYS_RESOURCE, a write would also set the lowest value that the process may set itself.
        drop_resource_capability().map_err(|error| format!("cannot drop a capability: {error}"))?;
        let own = gettid().as_raw().unsigned_abs();
        let is_named = |record: &ScoreRecord| record.name == name.as_bytes();
        let asks = self
            .ask(std::process::id(), own)?
            .into_iter()
            .find(is_named)
            .ok_or("the kernel does not report thread IDs")?
            .by;
        let mut found = Vec::with_capacity(threads.len());
        for (process, thread) in threads {
            let records = self.ask(*process, *thread).unwrap_or_default();
            let mine = records.iter().find(|record| record.by == asks);
            found.extend(mine.map(|record| (*thread, record.of)));
        }
        Ok(found)
    }

    /// Causes the record of a thread; returns all records that were made since the last call.
    fn ask(&mut self, process: u32, thread: u32) -> Result<Vec<ScoreRecord>, String> {
        let file = format!("/proc/{process}/task/{thread}/oom_score_adj");
        fs::read(&file)
            .and_then(|value| fs::write(&file, value))
            .map_err(|error| format!("{file}: {error}"))?;
        self.rings.read(&mut self.read)?;
        let mut records = Vec::new();
        self.read
            .each(|_, _, bytes| records.extend(ScoreRecord::read(&self.format, bytes)));
        Ok(records)
    }
}

/// A record: a thread wrote the value of a thread.
#[derive(Debug)]
struct ScoreRecord {
    /// The kernel's number of the thread that wrote.
    by: u32,
    /// The kernel's number of the thread whose value was written.
    of: u32,
    /// The name of that thread.
    name: Vec<u8>,
}

impl ScoreRecord {
    fn read(format: &TraceEventFormat, bytes: &[u8]) -> Option<Self> {
        let id = u16::from_ne_bytes(*bytes.first_chunk()?);
        let number = |field| u32::try_from(format.number(bytes, field)?).ok();
        let name = format.bytes(bytes, "comm")?;
        let end = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        Some(Self {
            by: number("common_pid")?,
            of: number("pid")?,
            name: name[..end].to_vec(),
        })
        .filter(|_| id == format.id)
    }
}

/// Bits of the clock that differ from call to call.
fn now_bits() -> u64 {
    crate::clock::monotonic_ns() & 0xff_ffff
}

/// Drops `CAP_SYS_RESOURCE` from the effective set of this thread; other threads of the process keep it.
fn drop_resource_capability() -> rustix::io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective.remove(CapabilitySet::SYS_RESOURCE);
    set_capabilities(None, sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_has_not_got_are_none() {
        let found = names("17 nginx: worker\n 9 <...>\nx y\n\n3 sh\n");
        assert_eq!(found.len(), 2);
        assert_eq!(found[&17], "nginx: worker");
        assert_eq!(found[&3], "sh");
    }

    #[test]
    fn numbers_are_the_same_in_the_first_namespace_and_pairs_elsewhere() {
        let mut same = ThreadNumbers::default();
        same.pair(1, 2);
        assert_eq!((same.kernel(5), same.own(5)), (Some(5), Some(5)));
        let mut apart = ThreadNumbers {
            pairs: Some(NumberPairs::default()),
            ..ThreadNumbers::default()
        };
        apart.pair(1, 17_000);
        assert_eq!(
            (apart.kernel(1), apart.own(17_000)),
            (Some(17_000), Some(1))
        );
        assert_eq!((apart.kernel(2), apart.own(1)), (None, None));
    }

    /// In the first namespace both numbers are the same, so that what the kernel answers can be judged.
    #[test]
    fn the_kernel_says_what_number_a_thread_has() {
        let mut finder = match ThreadNumberFinder::start() {
            Ok(finder) => finder,
            Err(reason) => return stackline_testing::skip(reason),
        };
        if ThreadNumbers::of_this_process().differ() {
            return stackline_testing::skip("this is not the first namespace of processes");
        }
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let value = |pid: u32| fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        let before = value(child.id());
        let (own, thread) = (std::process::id(), gettid().as_raw().unsigned_abs());
        let mut numbers = ThreadNumbers {
            pairs: Some(NumberPairs::default()),
            ..ThreadNumbers::default()
        };
        let asked = [(own, thread), (child.id(), child.id()), (own, 1)];
        finder.find(&asked, &mut numbers).unwrap();
        assert_eq!(numbers.kernel(thread), Some(thread));
        assert_eq!(numbers.kernel(child.id()), Some(child.id()));
        assert_eq!(numbers.kernel(1), None, "no thread of this process");
        assert_eq!(value(child.id()), before);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
