//! Forks a process of one thread.

use nix::unistd::{ForkResult, Pid};
use std::io;

/// The child, or `None` in the child. An error in a process of several threads: locks of the others would stay locked.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other(format!("the process has {threads} threads")));
    }
    // SAFETY: this is the only thread, so that no lock is held by another and everything may be called in the child.
    let forked = unsafe { nix::unistd::fork() }?;
    Ok(match forked {
        ForkResult::Parent { child } => Some(child),
        ForkResult::Child => None,
    })
}
