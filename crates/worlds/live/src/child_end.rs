//! Waits for a child process to end by itself, or kills it with its process group.

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Time between two checks whether the child has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Waits up to `patience` for the child and returns its exit status; `None` if it is still running (or cannot be waited for).
pub(crate) fn ended_within(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            ended => return ended.ok().flatten(),
        }
    }
}

/// Waits up to `patience` for the child to end by itself and says how it did, without reaping it; `None` if it is still running.
pub(crate) fn seen_ended_within(child: &Child, patience: Duration) -> Option<WaitStatus> {
    let until = Instant::now() + patience;
    let pid = Pid::from_raw(child.id().cast_signed());
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    loop {
        match waitid(Id::Pid(pid), look) {
            Ok(WaitStatus::StillAlive) if Instant::now() < until => std::thread::sleep(LOOK),
            Ok(WaitStatus::StillAlive) | Err(_) => return None,
            Ok(status) => return Some(status),
        }
    }
}

/// Waits up to `patience` for the child to end by itself, kills what is left of its process group, and reaps it. The child must lead that
/// group. A child that has ended is reaped only after the kill, so that no other process can have got its number.
pub(crate) fn end_group(child: &mut Child, patience: Duration) {
    let _ = seen_ended_within(child, patience);
    kill_group(child);
}

/// Kills the child and its whole process group (its own children are in it), and reaps it. The child must lead that group.
pub(crate) fn kill_group(child: &mut Child) {
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    let _ = child.wait();
}
