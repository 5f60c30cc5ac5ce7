//! Follows processes by the numbers that this process sees. Within another namespace of processes (a container) the kernel's trace events
//! have other numbers, which are found for each thread first.

use stackline_monitor::observe::thread_numbers::{ThreadNumberFinder, ThreadNumbers};
use stackline_monitor::observe::threads::ThreadTrace;
use std::collections::BTreeSet;

/// Most times that the threads of a process are listed, until none is new.
const MOST_LISTS: usize = 20;

/// A process that is followed, as it was when it was found: whoever is given this may have time for it only when the process has ended.
#[derive(Clone, Debug)]
pub(crate) struct FollowedProcess {
    /// Its number, as this process sees it.
    pub(crate) pid: u32,
    pub(crate) name: String,
    /// Its threads, each by the number that this process sees and by the kernel's.
    pub(crate) threads: Vec<(u32, u32)>,
}

impl FollowedProcess {
    /// What the system says of a process now, with those of its threads whose numbers are known.
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

/// Finds the kernel's numbers, where they are others.
#[derive(Default)]
pub(crate) struct ThreadFollower {
    finder: Option<ThreadNumberFinder>,
    numbers: ThreadNumbers,
}

impl ThreadFollower {
    /// Asks the kernel only where the numbers differ. The second value says why they cannot be found.
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

    /// The kernel's numbers of threads, each given by its process and itself, as far as they are there. They are asked for each time:
    /// a number may be another thread's by now.
    pub(crate) fn kernel_numbers(&mut self, threads: &[(u32, u32)]) -> Result<Vec<u32>, String> {
        if let Some(finder) = &mut self.finder {
            finder.find(threads, &mut self.numbers)?;
        }
        let known = |(_, thread): &(u32, u32)| self.numbers.kernel(*thread);
        Ok(threads.iter().filter_map(known).collect())
    }

    /// Follows one thread of this process from now on, and whatever it begins.
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

    /// Follows a process from now on, with all its threads and whatever they begin.
    pub(crate) fn follow(&mut self, pid: u32, trace: &mut ThreadTrace) -> Result<(), String> {
        if !self.numbers.differ() {
            return trace.follow(pid);
        }
        let mut known = BTreeSet::new();
        // A thread begun by one that is not followed yet is found in the next list.
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

/// The threads of a process now.
fn threads_of(pid: u32) -> Result<Vec<u32>, String> {
    let entries =
        std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| "no such process".to_owned())?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}
