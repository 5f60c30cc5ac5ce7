//! Follows processes by their IDs as seen by this process. In a PID namespace (a container) the kernel's trace events have other
//! numbers, which are found first for each thread.

use stackline_monitor::observe::thread_numbers::{ThreadNumberFinder, ThreadNumbers};
use stackline_monitor::observe::threads::ThreadTrace;
use std::collections::BTreeSet;

/// How often at most the threads of a process are listed, until no new one is found.
const MOST_LISTS: usize = 20;

/// A followed process, as it was when it was found. This is kept, as the analysis may come only after the process has ended.
#[derive(Clone, Debug)]
pub(crate) struct FollowedProcess {
    /// Its process ID as seen by this process.
    pub(crate) pid: u32,
    /// The name of its program.
    pub(crate) name: String,
    /// Its threads: the ID as seen by this process, and the kernel's number.
    pub(crate) threads: Vec<(u32, u32)>,
}

impl FollowedProcess {
    /// Reads the present state of a process; threads whose kernel numbers are not known are left out.
    pub(crate) fn look(pid: u32, numbers: &ThreadNumbers) -> Self {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let threads = threads_of(pid).unwrap_or_default().into_iter();
        let known = |own| Some((own, numbers.kernel(own)?));
        Self {
            pid,
            name: name.trim().to_owned(),
            threads: threads.chain([pid]).filter_map(known).collect(),
        }
    }
}

/// Finds the kernel's numbers of threads where they differ from those that this process sees.
#[derive(Default)]
pub(crate) struct ThreadFollower {
    /// Asks the kernel; `None` if the numbers are the same, or it cannot be asked.
    finder: Option<ThreadNumberFinder>,
    numbers: ThreadNumbers,
}

impl ThreadFollower {
    /// Starts the finder if numbers differ. The second value says why they cannot be found.
    pub(crate) fn start() -> (Self, Option<String>) {
        let numbers = ThreadNumbers::of_this_process();
        let finder = numbers.differ().then(ThreadNumberFinder::start);
        let (finder, unable) = match finder.transpose() {
            Ok(finder) => (finder, None),
            Err(why) => (
                None,
                Some(format!(
                    "the kernel's thread IDs in this container are unknown: {why}"
                )),
            ),
        };
        (Self { finder, numbers }, unable)
    }

    /// The numbers that are known by now.
    pub(crate) const fn numbers(&self) -> &ThreadNumbers {
        &self.numbers
    }

    /// The kernel's numbers of threads, each given by its process ID and thread ID, if they exist. The kernel is asked every time,
    /// as a number may belong to another thread later.
    pub(crate) fn kernel_numbers(&mut self, threads: &[(u32, u32)]) -> Result<Vec<u32>, String> {
        if let Some(finder) = &mut self.finder {
            finder.find(threads, &mut self.numbers)?;
        }
        let known = |(_, thread): &(u32, u32)| self.numbers.kernel(*thread);
        Ok(threads.iter().filter_map(known).collect())
    }

    /// Follows one thread of this process from now on, and all threads and processes that it starts.
    pub(crate) fn follow_own(
        &mut self,
        thread: u32,
        trace: &mut ThreadTrace,
    ) -> Result<(), String> {
        let kernel = self.kernel_numbers(&[(std::process::id(), thread)])?;
        if kernel.is_empty() {
            return Err("its kernel thread ID is unknown".into());
        }
        trace.follow_threads(&kernel)
    }

    /// Follows a process from now on, with all its threads and all that they start.
    pub(crate) fn follow(&mut self, pid: u32, trace: &mut ThreadTrace) -> Result<(), String> {
        if !self.numbers.differ() {
            return trace.follow(pid);
        }
        let mut known = BTreeSet::new();
        // A thread that was started by one that was not followed yet is found in the next list.
        for _ in 0..MOST_LISTS {
            let threads = threads_of(pid)?;
            let new: Vec<(u32, u32)> = threads
                .into_iter()
                .filter(|thread| known.insert(*thread))
                .map(|thread| (pid, thread))
                .collect();
            if new.is_empty() {
                break;
            }
            let kernel = self.kernel_numbers(&new)?;
            if kernel.is_empty() {
                return Err("its kernel thread IDs are unknown".into());
            }
            trace.follow_threads(&kernel)?;
        }
        Ok(())
    }
}

/// The present threads of a process.
fn threads_of(pid: u32) -> Result<Vec<u32>, String> {
    let entries =
        std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| "no such process".to_owned())?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}
