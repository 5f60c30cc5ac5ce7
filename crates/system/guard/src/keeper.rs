//! Keepers: processes that wait for a worker process and, however it ends, end the programs and remove the files that it leaves.
//!
//! ```text
//! first keeper       the process that the user started: the shell's child; it ends as the worker does
//!   second keeper    in a process group of its own, so that a signal to the user's group does not end it too
//!     worker         in the user's group, as the only process would be; it does what the command does
//!       programs     their orphans become children of the second keeper (PR_SET_CHILD_SUBREAPER)
//! ```
//! Any one of the three may be killed, or the first and the worker together. When the worker has died, its keeper ends the children that
//! it has inherited: SIGTERM, and SIGKILL after a while. When a keeper has died, the kernel sends SIGTERM to its child (PR_SET_PDEATHSIG).
//! A keeper signals only its own children: their process IDs cannot be reused before it has reaped them.
//!
//! Keepers pass on to the worker the signals that other processes send them. Signals of the terminal's keys reach the worker directly,
//! because it is in the user's process group. Keepers stop when the worker stops, so that the shell sees it, and continue it when they
//! are continued.

use nix::errno::Errno;
use nix::sys::prctl::{set_child_subreaper, set_dumpable, set_name, set_pdeathsig};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getpid, getppid, setpgid};
pub use stackline_os::fork::fork;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the programs of a worker that ended well may take to end after they were asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long they may take if the worker, or a keeper, was killed.
const PATIENCE_AFTER_A_KILL: Duration = Duration::from_millis(1000);
/// How long a process may take to end after SIGKILL; a process that takes longer hangs in the kernel and is given up.
const DIES: Duration = Duration::from_secs(2);
/// Time between two checks which children are left.
const LOOK: Duration = Duration::from_millis(5);
/// Signals that are passed on to the worker.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
];
/// The second keeper's name in process lists.
const NAME: &std::ffi::CStr = c"sl-keeper";

/// Which processes are ended with a worker. A worker ends well if it exits by itself, rather than by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// All its descendants, in any session, however it ends.
    Everything,
    /// The descendants in its session, only if it does not end well. Daemons, such as a shared connection of ssh, are left.
    Session,
}

/// What keepers do after the worker has ended.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// Which processes are ended.
    pub goes: Goes,
    /// Whether the process with this ID is left running on purpose.
    pub stays: fn(u32) -> bool,
    /// Removes leftover files and the like. Called unless the worker exited with code 0.
    pub sweep: fn(),
}

/// Forks twice and returns in the worker only. The two keepers end in the way the worker ends. Must be called while the process has one
/// thread.
///
/// # Errors
/// The kernel's.
pub fn fork_keepers(keeping: &Keeping) -> io::Result<()> {
    let mut above = None;
    for keeper in [Keeper::First, Keeper::Second] {
        // Set everything up before the fork: afterwards the child may run, and end, before its keeper runs again.
        let (parent, group) = (getpid(), getpgrp());
        let (signals, before) = prepare()?;
        keeper.leave_group();
        let forked = fork().inspect_err(|_| {
            let _ = before.thread_set_mask();
            let _ = keeper.join_group(group);
        })?;
        if let Some(child) = forked {
            keeper.wait(child, above, signals, keeping);
        }
        set_pdeathsig(Signal::SIGTERM)?;
        keeper.join_group(group)?;
        before.thread_set_mask()?;
        if getppid() != parent {
            // The keeper died before PR_SET_PDEATHSIG was set, so its signal will not come.
            std::process::exit(128 + Signal::SIGTERM as i32);
        }
        above = Some(parent);
    }
    Ok(())
}

/// Which of the two keepers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeper {
    First,
    Second,
}

impl Keeper {
    /// Moves the second keeper to a process group of its own, before it has a child, so that a signal to the user's group does not end it.
    fn leave_group(self) {
        if self == Self::Second {
            let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
        }
    }

    /// Moves the worker, a child of the second keeper, back to the user's process group.
    fn join_group(self, group: Pid) -> nix::Result<()> {
        match self {
            Self::First => Ok(()),
            Self::Second => setpgid(Pid::from_raw(0), group),
        }
    }

    /// Waits until the child has ended, ends its remaining processes, removes its files, and ends in the same way.
    fn wait(self, child: Pid, above: Option<Pid>, signals: SignalFd, keeping: &Keeping) -> ! {
        if self == Self::Second {
            // Another name than the program's, so that `killall stackline` does not end it.
            let _ = set_name(NAME);
        }
        let ended = KeeperWait {
            child,
            above,
            signals,
        }
        .end();
        let patience = match ended {
            Ok(Some(WaitStatus::Exited(..))) => PATIENCE,
            _ => PATIENCE_AFTER_A_KILL,
        };
        if keeping.goes == Goes::Everything || !matches!(ended, Ok(Some(WaitStatus::Exited(..)))) {
            end_children(keeping, patience);
        }
        if !matches!(ended, Ok(Some(WaitStatus::Exited(_, 0)))) {
            (keeping.sweep)();
        }
        match ended {
            Ok(Some(WaitStatus::Exited(_, code))) => std::process::exit(code),
            Ok(Some(WaitStatus::Signaled(_, signal, _))) => end_by(signal),
            _ => end_by(Signal::SIGTERM),
        }
    }
}

/// Makes this process the parent of its descendants' orphans, and blocks signals to read them from a descriptor. Returns the descriptor and
/// the previous signal mask.
fn prepare() -> nix::Result<(SignalFd, SigSet)> {
    set_child_subreaper(true)?;
    let mut signals: SigSet = PASSED_ON.into_iter().collect();
    signals.add(Signal::SIGCHLD);
    let held = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
    Ok((held, signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?))
}

/// A keeper's wait for its child.
struct KeeperWait {
    child: Pid,
    /// The keeper's own keeper, if it has one.
    above: Option<Pid>,
    signals: SignalFd,
}

impl KeeperWait {
    /// Waits until the child has ended and returns how; `None` if the keeper's own keeper has died, so that the child has to be ended.
    fn end(&self) -> nix::Result<Option<WaitStatus>> {
        loop {
            if let Some(ended) = self.reap()? {
                return Ok(Some(ended));
            }
            let Some(sent) = self.signals.read_signal()? else {
                continue;
            };
            let signal = Signal::try_from(sent.ssi_signo.cast_signed())?;
            if self.above.is_some_and(|above| getppid() != above) {
                return Ok(None);
            }
            // Signals sent by processes (kill, sigqueue, tgkill) have codes of at most 0. Those of the terminal's keys, with higher codes,
            // reach the worker directly.
            if signal != Signal::SIGCHLD && sent.ssi_code <= 0 {
                let _ = kill(self.child, signal);
            }
        }
    }

    /// Reaps children that have ended; returns how the kept child ended, or `None` if it runs. If the child was stopped, stops this process
    /// too, and continues the child afterwards.
    fn reap(&self) -> nix::Result<Option<WaitStatus>> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
                Ok(ended @ (WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)))
                    if pid == self.child =>
                {
                    return Ok(Some(ended));
                }
                Ok(WaitStatus::Stopped(pid, _)) if pid == self.child => {
                    raise(Signal::SIGSTOP)?;
                    let _ = kill(self.child, Signal::SIGCONT);
                }
                Ok(WaitStatus::StillAlive) => return Ok(None),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Ends the children of this process and, as orphans become its children, all its descendants: by SIGTERM, and SIGKILL after `patience`.
fn end_children(keeping: &Keeping, patience: Duration) {
    let begun = Instant::now();
    let mut asked = HashSet::new();
    while begun.elapsed() < patience + DIES {
        let left = match reap_all() {
            Err(_) => return,
            Ok(()) => children(keeping),
        };
        if left.is_empty() {
            return;
        }
        for child in left {
            if begun.elapsed() > patience {
                let _ = kill(child, Signal::SIGKILL);
            } else if asked.insert(child) {
                let _ = kill(child, Signal::SIGTERM);
                // A stopped process handles SIGTERM only once it is continued.
                let _ = kill(child, Signal::SIGCONT);
            }
        }
        sleep(LOOK);
    }
}

/// Reaps all children that have ended; an error if there is no child left.
fn reap_all() -> nix::Result<()> {
    while waitpid(None, Some(WaitPidFlag::WNOHANG))? != WaitStatus::StillAlive {}
    Ok(())
}

/// The children of this process that have to be ended.
fn children(keeping: &Keeping) -> Vec<Pid> {
    let own = i64::from(getpid().as_raw());
    let session = stat_of(getpid().as_raw().unsigned_abs()).map(|(_, session)| session);
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let goes = |number: &u32| {
        let Some((parent, its)) = stat_of(*number) else {
            return false;
        };
        parent == own
            && (keeping.goes == Goes::Everything || Some(its) == session)
            && !(keeping.stays)(*number)
    };
    numbers
        .filter(goes)
        .map(|number| Pid::from_raw(number.cast_signed()))
        .collect()
}

/// Parent and session of a process, from `/proc/PID/stat` (proc_pid_stat(5)). The name in it may contain anything, also brackets, so the
/// fields are counted from its last closing bracket.
fn stat_of(process: u32) -> Option<(i64, i64)> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(1);
    let parent = fields.next()?.parse().ok()?;
    Some((parent, fields.nth(1)?.parse().ok()?))
}

/// Whether a process runs the same program as this one, with this first argument; also if the program's file has been replaced since.
#[must_use]
pub fn runs_this_program(process: u32, argument: &str) -> bool {
    let file = |process: &str| {
        let path = fs::read_link(format!("/proc/{process}/exe")).ok()?;
        let path = path.to_string_lossy();
        Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
    };
    let same = file(&process.to_string()).is_some_and(|its| file("self") == Some(its));
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    same && line.split(|byte| *byte == 0).nth(1) == Some(argument.as_bytes())
}

/// Ends this process by the signal that ended its child.
fn end_by(signal: Signal) -> ! {
    // Only the worker should leave a core dump.
    let _ = set_dumpable(false);
    let _ = SigSet::from_iter([signal]).thread_unblock();
    let _ = raise(signal);
    std::process::exit(128 + signal as i32)
}
