//! What is set between fork and exec of a program: its signal mask, and the signal that it gets when its starter dies.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the command start its program with exactly these signals blocked.
pub fn blocking(command: &mut Command, signals: SigSet) -> &mut Command {
    // SAFETY: between fork and exec a single system call is made, which may be made there; nothing is allocated.
    unsafe { command.pre_exec(move || Ok(signals.thread_set_mask()?)) }
}

/// Makes the kernel kill the program when the thread that starts it ends, as it does when its process is killed.
pub fn dying_with_thread(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec a single system call is made, which may be made there; nothing is allocated.
    unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) }
}
