//! Starts programs with the signal mask they expect.

use nix::sys::signal::SigSet;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program will begin with those signals blocked and no others.
pub fn blocking(command: &mut Command, signals: SigSet) -> &mut Command {
    // SAFETY: between fork and exec a single system call is made, which may be made there; nothing is allocated.
    unsafe { command.pre_exec(move || Ok(signals.thread_set_mask()?)) }
}
