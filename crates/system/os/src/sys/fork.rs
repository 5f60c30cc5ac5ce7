//! Forks this process, if it has one thread only.

use nix::unistd::{ForkResult, Pid};
use std::io;

/// Forks. Returns the child's process ID in the parent, and `None` in the child.
///
/// # Errors
/// If the process has several threads, because locks that others hold would stay locked in the child; and the kernel's.
pub fn fork() -> io::Result<Option<Pid>> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other(format!(
            "the process has {threads} threads"
        )));
    }
    // SAFETY: this is the only thread, so that no lock is held by another and everything may be called in the child.
    let forked = unsafe { nix::unistd::fork() }?;
    Ok(match forked {
        ForkResult::Parent { child } => Some(child),
        ForkResult::Child => None,
    })
}
