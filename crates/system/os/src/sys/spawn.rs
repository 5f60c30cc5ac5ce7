//! Sets the signal mask with which a program is started.

use nix::sys::signal::SigSet;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the command start its program with exactly these signals blocked.
pub fn blocking(command: &mut Command, signals: SigSet) -> &mut Command {
    // SAFETY: between fork and exec a single system call is made, which may be made there; nothing is allocated.
    unsafe { command.pre_exec(move || Ok(signals.thread_set_mask()?)) }
}
