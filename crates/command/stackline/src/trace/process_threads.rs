//! Threads of this process, by their numbers.

/// The threads of this process.
pub(super) fn own_threads() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    tasks
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}

/// The thread that asks.
pub(super) fn own_thread() -> u32 {
    nix::unistd::gettid().as_raw().unsigned_abs()
}
