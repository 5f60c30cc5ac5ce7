//! Queries and sets the processors that a thread may run on.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::io;

/// The processors that this thread may run on, in order.
///
/// # Errors
/// The kernel's.
pub fn allowed_processors() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count())
        .filter(|processor| set.is_set(*processor).unwrap_or(false))
        .collect())
}

/// Pins the calling thread to one processor.
///
/// # Errors
/// The kernel's; `EINVAL` if there is no processor with that number.
pub fn pin_thread(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
