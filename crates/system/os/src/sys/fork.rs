//! Forks a process of one thread.

use nix::unistd::{ForkResult, Pid};
use std::io;

/// The child, or `None` in the child.
///
/// # Errors
/// In a process of several threads, as locks of the others would stay locked; and the kernel's.
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
