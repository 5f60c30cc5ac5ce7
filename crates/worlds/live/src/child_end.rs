//! How a child process with a process group of its own ends: by itself within a time, or killed with its group.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How it ended; `None` where it does not within that time.
pub(crate) fn ended_within(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            ended => return ended.ok().flatten(),
        }
    }
}

/// Kills it and its whole group, which may have children of its own.
pub(crate) fn kill_group(child: &mut Child) {
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    let _ = child.wait();
}
