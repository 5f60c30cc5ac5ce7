//! Follows processes by the numbers that this process sees. Within another namespace of processes (a container) the kernel's trace events
//! have other numbers, which are found for each thread first.

use stackline_monitor::observe::thread_numbers::{ThreadNumberFinder, ThreadNumbers};
use stackline_monitor::observe::threads::ThreadTrace;
use std::collections::BTreeSet;

/// Most times that the threads of a process are listed, until none is new.
const MOST_LISTS: usize = 20;

/// Finds the kernel's numbers, where they are others.
#[derive(Default)]
pub(crate) struct ThreadFollower {
    finder: Option<ThreadNumberFinder>,
}

impl ThreadFollower {
    /// Asks the kernel only where the numbers differ.
    pub(crate) fn start(numbers: &ThreadNumbers) -> Result<Self, String> {
        let finder = numbers.differ().then(ThreadNumberFinder::start);
        let finder = finder.transpose().map_err(|why| {
            format!("the kernel's numbers of the threads of this container are not known: {why}")
        })?;
        Ok(Self { finder })
    }

    /// Whether it asks the kernel.
    pub(crate) const fn is_able(&self) -> bool {
        self.finder.is_some()
    }

    /// The kernel's numbers of threads, each given by its process and itself, as far as they are there.
    pub(crate) fn kernel_numbers(
        &mut self,
        threads: &[(u32, u32)],
        numbers: &mut ThreadNumbers,
    ) -> Result<Vec<u32>, String> {
        if let Some(finder) = &mut self.finder {
            let unknown = |(_, thread): &&(u32, u32)| numbers.kernel(*thread).is_none();
            let unknown: Vec<(u32, u32)> = threads.iter().filter(unknown).copied().collect();
            if !unknown.is_empty() {
                finder.find(&unknown, numbers)?;
            }
        }
        let known = |(_, thread): &(u32, u32)| numbers.kernel(*thread);
        Ok(threads.iter().filter_map(known).collect())
    }

    /// Follows a process from now on, with all its threads and whatever they begin.
    pub(crate) fn follow(
        &mut self,
        pid: u32,
        trace: &mut ThreadTrace,
        numbers: &mut ThreadNumbers,
    ) -> Result<(), String> {
        if !numbers.differ() {
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
            let kernel = self.kernel_numbers(&new, numbers)?;
            if kernel.is_empty() {
                return Err("the kernel's numbers of its threads are not known".into());
            }
            trace.follow_threads(&kernel)?;
        }
        Ok(())
    }
}

/// The threads of a process now.
fn threads_of(pid: u32) -> Result<Vec<u32>, String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"))
        .map_err(|_| "there is no such process".to_owned())?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}
