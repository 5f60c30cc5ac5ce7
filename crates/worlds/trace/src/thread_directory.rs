//! A directory of threads by their numbers in the kernel's trace events: which belong to traced programs, the names of these
//! programs, and which are the observer's own.

use crate::container_names::ContainerNames;
use crate::followed_threads::FollowedProcess;
use stackline_monitor::observe::thread_numbers::ThreadNumbers;
use stackline_monitor::observe::threads::{Call, ThreadChange, ThreadEvent};
use stackline_requests::{Bound, LeftOut};
use std::collections::{HashMap, VecDeque};

/// The most threads that are remembered.
const MOST: usize = Bound::Threads.most();
/// For how many processes started by one thread their times are remembered.
const MOST_BEGUN: usize = Bound::Children.most();

/// What is known of a thread.
#[derive(Clone, Debug)]
struct TracedThread {
    /// The kernel's number of its process.
    process: u32,
    /// The name of its program.
    name: String,
    /// The name of its container, if that is not this process's own.
    container: Option<String>,
    /// Whether it belongs to a traced program.
    traced: bool,
    /// The program that the trace started it belongs to, by order from 1; 0 if none.
    program: u32,
}

/// Thread numbers of the kernel are below this (`PID_MAX_LIMIT`). In numbers above, the multiple of it says which stopped program a
/// thread belongs to.
pub(crate) const THREAD_NUMBERS: u32 = 1 << 22;

/// The directory of threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadDirectory {
    /// Whether programs run on this machine, with process IDs as this process sees them.
    is_here: bool,
    threads: HashMap<u32, TracedThread>,
    /// By thread, the processes that it started: each with its beginning and end, ns.
    begun: HashMap<u32, VecDeque<(u32, u64, u64)>>,
    /// By process, the thread that started it.
    begun_by: HashMap<u32, u32>,
    /// By process, when its garbage-collecting threads were looked for (ns), and which they are.
    collectors: HashMap<u32, (u64, Vec<u32>)>,
    containers: ContainerNames,
    /// The thread IDs as this process sees them.
    numbers: ThreadNumbers,
    /// By thread, its newest child. When the call that started the child returns, its result is the child's ID in the parent's
    /// namespace.
    newest: HashMap<u32, u32>,
    /// The thread that starts the programs of the trace.
    starter: Option<u32>,
    /// How many programs it has started.
    started: u32,
    pub(crate) left_out: LeftOut,
}

/// How the names of threads begin that stop all others of their process to collect garbage: of Java's virtual machine, and of .NET.
const COLLECTORS: [&str; 5] = [
    "VM Thread",
    "GC Thread",
    "Shenandoah GC",
    ".NET Server GC",
    ".NET BGC",
];
/// Garbage-collecting threads are looked for again after this, ns, as they may be started later.
const LOOKS_AGAIN_NS: u64 = 1_000_000_000;

/// The threads of a process whose names say that they collect garbage; empty if it has ended.
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
    /// Creates an empty directory.
    pub(crate) fn new(numbers: ThreadNumbers, containers: ContainerNames, is_here: bool) -> Self {
        Self {
            is_here,
            numbers,
            containers,
            ..Self::default()
        }
    }

    /// Marks a process as traced, with all its threads and all that they start.
    pub(crate) fn trace(&mut self, process: &FollowedProcess) {
        for (own, kernel) in &process.threads {
            self.numbers.pair(*own, *kernel);
        }
        for (_, thread) in &process.threads {
            let mut known = self.look(*thread);
            // The process may have ended since it was found.
            if known.name.is_empty() {
                known.name.clone_from(&process.name);
                known.process = self.numbers.kernel(process.pid).unwrap_or(known.process);
            }
            known.traced = true;
            self.insert(*thread, known);
        }
    }

    /// Makes a thread the starter: the processes that it starts are traced, and it itself is not.
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

    /// Takes a thread event.
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

    /// The call that started the newest child returns with the child's ID in its parent's PID namespace. It is used only if that is
    /// this process's namespace.
    fn returns(&mut self, thread: u32, result: i64) {
        let child = self.newest.remove(&thread);
        let own = u32::try_from(result).ok().filter(|own| *own > 0);
        let is_here = self.numbers.own(thread).is_some_and(|own| !is_within(own));
        if let (Some(child), Some(own)) = (child, own.filter(|_| is_here)) {
            self.numbers.pair(own, child);
        }
    }

    /// A thread starts a process.
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

    /// A process ends.
    fn ends(&mut self, child: u32, at_ns: u64) {
        let Some(thread) = self.begun_by.remove(&child) else {
            return;
        };
        let begun = self.begun.get_mut(&thread).into_iter().flatten();
        begun
            .filter(|(of, ..)| *of == child)
            .for_each(|(.., end_ns)| *end_ns = at_ns);
    }

    /// The times (from, to, ns) of the processes that a thread started within an interval.
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

    /// What is known of a thread, or else what the system says of it.
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
        // A thread may have a name of its own; the process's is used.
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

    /// Looks a thread up while it exists, if it is not known.
    pub(crate) fn notice(&mut self, thread: u32) {
        if thread != 0 && !self.threads.contains_key(&thread) {
            let known = self.look(thread);
            self.insert(thread, known);
        }
    }

    /// The garbage-collecting threads of a process, as far as their names show them.
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

    /// The name of a thread's program, with its container unless the host has that name: `nginx (web)`; empty if it is not known.
    pub(crate) fn program(&self, thread: u32, host: &str) -> String {
        let Some(known) = self.threads.get(&thread) else {
            return String::new();
        };
        match &known.container {
            Some(container) if container != host => format!("{} ({container})", known.name),
            _ => known.name.clone(),
        }
    }

    /// The kernel's number of a thread's process.
    pub(crate) fn process(&self, thread: u32) -> Option<u32> {
        self.threads.get(&thread).map(|known| known.process)
    }

    /// The process ID of a thread as this process sees it; `None` if it is not known. A stopped program on a host of a network has
    /// process IDs of its own.
    pub(crate) fn pid(&self, thread: u32) -> Option<u32> {
        let process = self.process(thread)?;
        if process >= THREAD_NUMBERS {
            return self.is_here.then_some(process % THREAD_NUMBERS);
        }
        self.numbers.own(process)
    }

    /// Whether a thread belongs to the last of `programs` programs that the trace starts; `None` if its program is not known, or
    /// more were started than that.
    pub(crate) fn is_of_last(&self, thread: u32, programs: u32) -> Option<bool> {
        let program = self.threads.get(&thread)?.program;
        (program > 0 && self.started <= programs).then_some(program == programs)
    }

    /// Whether a thread belongs to a traced program.
    pub(crate) fn is_traced(&self, thread: u32) -> bool {
        self.threads.get(&thread).is_some_and(|known| known.traced)
    }
}

/// Whether a thread is in a PID namespace below this one, so that it has several numbers. A thread that has ended counts as such.
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

/// The calling thread.
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
