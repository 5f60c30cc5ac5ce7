//! Forks a process of one thread, and starts programs with the signal mask they expect.

use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, Pid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

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

/// The program will begin with those signals blocked and no others.
pub(crate) fn blocking(command: &mut Command, signals: SigSet) -> &mut Command {
    // SAFETY: between fork and exec a single system call is made, which may be made there; nothing is allocated.
    unsafe { command.pre_exec(move || Ok(signals.thread_set_mask()?)) }
}
