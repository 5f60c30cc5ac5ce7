//! Threads by their numbers in the kernel's trace events: which belong to the programs that are traced, what these are called, and which are of this process.

use crate::container_names::ContainerNames;
use crate::followed_threads::FollowedProcess;
use stackline_monitor::observe::thread_numbers::ThreadNumbers;
use stackline_monitor::observe::threads::{Call, ThreadChange, ThreadEvent};
use stackline_requests::{Bound, LeftOut};
use std::collections::{HashMap, VecDeque};

/// Threads that are remembered, at most.
const MOST: usize = Bound::Threads.most();
/// Processes of which it is remembered that one thread began them.
const MOST_BEGUN: usize = Bound::Children.most();

/// What is known of a thread.
#[derive(Clone, Debug)]
struct TracedThread {
    process: u32,
    name: String,
    /// The container that it is in, where that is not this process's.
    container: Option<String>,
    traced: bool,
    /// Which of the programs that the trace started it is of, by their order from 1; 0 where it is of none.
    program: u32,
}

/// Numbers of threads are below this (`PID_MAX_LIMIT`); what lies above says which stopped program it is of.
pub(crate) const THREAD_NUMBERS: u32 = 1 << 22;

/// Threads by their numbers.
#[derive(Debug, Default)]
pub(crate) struct ThreadDirectory {
    /// Programs run beside this process, with the same numbers.
    is_here: bool,
    threads: HashMap<u32, TracedThread>,
    /// Processes that a thread began, each from when to when.
    begun: HashMap<u32, VecDeque<(u32, u64, u64)>>,
    /// The thread that began a process.
    begun_by: HashMap<u32, u32>,
    /// The threads of a process that collect garbage, and when they were looked for.
    collectors: HashMap<u32, (u64, Vec<u32>)>,
    containers: ContainerNames,
    /// The numbers that this process sees of them.
    numbers: ThreadNumbers,
    /// The newest child of a thread, whose other number its parent is given when the call returns.
    newest: HashMap<u32, u32>,
    /// The thread that starts the programs of the trace, and how many it has started.
    starter: Option<u32>,
    started: u32,
    pub(crate) left_out: LeftOut,
}

/// How threads are called that stop all others of their process to collect garbage: those of Java's virtual machine, and .NET's.
const COLLECTORS: [&str; 5] = [
    "VM Thread",
    "GC Thread",
    "Shenandoah GC",
    ".NET Server GC",
    ".NET BGC",
];
/// A process may begin such threads later: they are looked for again after this.
const LOOKS_AGAIN_NS: u64 = 1_000_000_000;

/// Threads of a process whose names say that they collect garbage; none where it has ended.
fn collectors(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let collects = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let thread = task.file_name().to_str()?.parse().ok()?;
        COLLECTORS
            .iter()
            .any(|collector| name.starts_with(collector))
            .then_some(thread)
    };
    tasks.filter_map(collects).collect()
}

impl ThreadDirectory {
    /// Knows no thread but by those numbers, and containers if they are looked for.
    pub(crate) fn new(numbers: ThreadNumbers, containers: ContainerNames, is_here: bool) -> Self {
        Self {
            is_here,
            numbers,
            containers,
            ..Self::default()
        }
    }

    /// The threads of a process are traced, and whatever they begin.
    pub(crate) fn trace(&mut self, process: &FollowedProcess) {
        for (own, kernel) in &process.threads {
            self.numbers.pair(*own, *kernel);
        }
        for (_, thread) in &process.threads {
            let mut known = self.look(*thread);
            // It may have ended since it was found.
            if known.name.is_empty() {
                known.name.clone_from(&process.name);
                known.process = self.numbers.kernel(process.pid).unwrap_or(known.process);
            }
            known.traced = true;
            self.insert(*thread, known);
        }
    }

    /// This thread's children are traced, not it itself.
    pub(crate) fn trace_children_of(&mut self, thread: u32) {
        let Some(thread) = self.numbers.kernel(thread) else {
            return;
        };
        let known = self.look(thread);
        self.starter = Some(thread);
        self.insert(
            thread,
            TracedThread {
                traced: false,
                ..known
            },
        );
    }

    /// Takes an event into account.
    pub(crate) fn see(&mut self, event: &ThreadEvent) {
        match &event.what {
            ThreadChange::Forked { child, is_process } => {
                let known = self.threads.get(&event.thread).cloned();
                let mut new = known.unwrap_or_else(|| self.look(event.thread));
                new.traced = true;
                if self.numbers.differ() {
                    self.newest.insert(event.thread, *child);
                }
                if is_process.unwrap_or(true) {
                    new.process = *child;
                    if self.starter == Some(event.thread) {
                        self.started += 1;
                        new.program = self.started;
                    }
                    self.begins(event.thread, *child, event.at_ns);
                }
                self.insert(*child, new);
            }
            ThreadChange::Executes { name } => {
                let name = name.rsplit('/').next().unwrap_or(name).to_owned();
                let known = self.threads.get(&event.thread).cloned();
                let known = known.unwrap_or_else(|| self.look(event.thread));
                self.insert(event.thread, TracedThread { name, ..known });
            }
            ThreadChange::Returns {
                call: Call::Clone | Call::Clone3 | Call::Vfork,
                result,
            } if self.numbers.differ() => self.returns(event.thread, *result),
            ThreadChange::Exits { last: true } => self.ends(event.thread, event.at_ns),
            _ => {}
        }
    }

    /// The call that began the newest child returns, with the child's number in its parent's namespace: this one's, or one within.
    fn returns(&mut self, thread: u32, result: i64) {
        let child = self.newest.remove(&thread);
        let own = u32::try_from(result).ok().filter(|own| *own > 0);
        let is_here = self.numbers.own(thread).is_some_and(|own| !is_within(own));
        if let (Some(child), Some(own)) = (child, own.filter(|_| is_here)) {
            self.numbers.pair(own, child);
        }
    }

    fn begins(&mut self, thread: u32, child: u32, at_ns: u64) {
        if self.begun_by.len() >= MOST {
            return self.left_out.add(Bound::Threads, 1);
        }
        let begun = self.begun.entry(thread).or_default();
        if begun.len() >= MOST_BEGUN
            && let Some((oldest, ..)) = begun.pop_front()
        {
            self.begun_by.remove(&oldest);
            self.left_out.add(Bound::Children, 1);
        }
        begun.push_back((child, at_ns, u64::MAX));
        self.begun_by.insert(child, thread);
    }

    fn ends(&mut self, child: u32, at_ns: u64) {
        let Some(thread) = self.begun_by.remove(&child) else {
            return;
        };
        let begun = self.begun.get_mut(&thread).into_iter().flatten();
        begun
            .filter(|(of, ..)| *of == child)
            .for_each(|(.., end_ns)| *end_ns = at_ns);
    }

    /// When processes were there that a thread began within an interval.
    pub(crate) fn begun_within(&self, thread: u32, from_ns: u64, to_ns: u64) -> Vec<(u64, u64)> {
        let within = |(_, begin, _): &&(u32, u64, u64)| (from_ns..to_ns).contains(begin);
        let begun = self.begun.get(&thread).into_iter().flatten();
        begun
            .filter(within)
            .map(|(_, begin, end)| (*begin, *end))
            .collect()
    }

    fn insert(&mut self, thread: u32, known: TracedThread) {
        if self.threads.len() < MOST || self.threads.contains_key(&thread) {
            self.threads.insert(thread, known);
        } else {
            self.left_out.add(Bound::Threads, 1);
        }
    }

    /// What the system says of a thread now.
    fn look(&mut self, thread: u32) -> TracedThread {
        if let Some(known) = self.threads.get(&thread) {
            return known.clone();
        }
        let Some(own) = self.numbers.own(thread) else {
            return TracedThread {
                process: thread,
                name: self.numbers.name(thread).unwrap_or_default(),
                container: None,
                traced: false,
                program: 0,
            };
        };
        let status = std::fs::read_to_string(format!("/proc/{own}/status")).unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let process: u32 = field("Tgid:")
            .and_then(|text| text.parse().ok())
            .unwrap_or(own);
        // A thread may have a name of its own: the process's is meant.
        let of_process = std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
        let name = of_process
            .or_else(|| field("Name:").map(str::to_owned))
            .unwrap_or_default();
        TracedThread {
            process: self.numbers.kernel(process).unwrap_or(thread),
            name: name.trim().to_owned(),
            container: self.containers.name_of(process),
            traced: false,
            program: 0,
        }
    }

    /// Remembers what a thread is while it is there.
    pub(crate) fn notice(&mut self, thread: u32) {
        if thread != 0 && !self.threads.contains_key(&thread) {
            let known = self.look(thread);
            self.insert(thread, known);
        }
    }

    /// The threads of a process that collect its garbage, as far as their names say so.
    pub(crate) fn collectors(&mut self, process: u32, now_ns: u64) -> &[u32] {
        let (looked_ns, known) = self.collectors.entry(process).or_default();
        if *looked_ns + LOOKS_AGAIN_NS <= now_ns {
            *looked_ns = now_ns;
            let threads = self.numbers.own(process).map(collectors);
            let kernel = |thread| self.numbers.kernel(thread);
            let new: Vec<u32> = threads.into_iter().flatten().filter_map(kernel).collect();
            if !new.is_empty() {
                *known = new;
            }
        }
        known
    }

    /// A thread's program, with its container where the host is not called so: `nginx (web)`; empty where it is not known.
    pub(crate) fn program(&self, thread: u32, host: &str) -> String {
        let Some(known) = self.threads.get(&thread) else {
            return String::new();
        };
        match &known.container {
            Some(container) if container != host => format!("{} ({container})", known.name),
            _ => known.name.clone(),
        }
    }

    /// The process of a thread.
    pub(crate) fn process(&self, thread: u32) -> Option<u32> {
        self.threads.get(&thread).map(|known| known.process)
    }

    /// The process of a thread, by the number that this process sees. A stopped program on a host of a network has numbers of its own.
    pub(crate) fn pid(&self, thread: u32) -> Option<u32> {
        let process = self.process(thread)?;
        if process >= THREAD_NUMBERS {
            return self.is_here.then_some(process % THREAD_NUMBERS);
        }
        self.numbers.own(process)
    }

    /// Whether a thread is of the last of so many programs that the trace starts; `None` where its program is not known, or others
    /// were started than these.
    pub(crate) fn is_of_last(&self, thread: u32, programs: u32) -> Option<bool> {
        let program = self.threads.get(&thread)?.program;
        (program > 0 && self.started <= programs).then_some(program == programs)
    }

    /// Whether a thread is of a program that is traced.
    pub(crate) fn is_traced(&self, thread: u32) -> bool {
        self.threads.get(&thread).is_some_and(|known| known.traced)
    }
}

/// Whether a thread is of a namespace of processes within this one: it has a number in either. So it is taken where it has ended.
fn is_within(thread: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .map_or(0, |numbers| numbers.split_ascii_whitespace().count());
    numbers != 1
}

/// The threads of this process.
pub(crate) fn own_threads() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    tasks
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}

/// The thread that asks.
pub(crate) fn own_thread() -> u32 {
    nix::unistd::gettid().as_raw().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_before_its_analysis_has_its_name() {
        // No process has so large a number.
        let (pid, thread) = (u32::MAX - 1, u32::MAX - 2);
        let process = FollowedProcess {
            pid,
            name: "worker".to_owned(),
            threads: vec![(pid, pid), (thread, thread)],
        };
        let mut who = ThreadDirectory::default();
        who.trace(&process);
        assert!(who.is_traced(thread));
        assert_eq!(who.process(thread), Some(pid));
        assert_eq!(who.program(thread, ""), "worker");
    }

    /// A stopped program has a number as processes beside this one have, where it runs beside it.
    #[test]
    fn stopped_programs_have_numbers_of_this_machine_only_here() {
        let thread = 2 * THREAD_NUMBERS + 4711;
        for (is_here, pid) in [(true, Some(4711)), (false, None)] {
            let mut who = ThreadDirectory {
                is_here,
                ..ThreadDirectory::default()
            };
            let known = TracedThread {
                process: thread,
                name: "python3".into(),
                container: None,
                traced: true,
                program: 1,
            };
            who.insert(thread, known);
            assert_eq!(who.pid(thread), pid);
        }
    }

    #[test]
    fn what_is_one_more_than_is_remembered_is_counted() {
        Bound::Threads.assert_reported(|count| {
            let mut who = ThreadDirectory::default();
            let thread = || TracedThread {
                process: 1,
                name: String::new(),
                container: None,
                traced: true,
                program: 0,
            };
            (1..=count as u32).for_each(|number| who.insert(number, thread()));
            who.left_out
        });
        Bound::Children.assert_reported(|count| {
            let mut who = ThreadDirectory::default();
            (2..2 + count as u32).for_each(|child| who.begins(1, child, 0));
            who.left_out
        });
    }
}
