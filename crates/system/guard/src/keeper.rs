//! Keepers: processes that wait for a worker, and end and remove what it leaves, however it ends.
//!
//! ```text
//! first keeper       the process that the user started: the shell's child; it ends as the worker does
//!   second keeper    in a process group of its own, so that a signal to the user's group does not end it too
//!     worker         in the user's group, as the only process would be; it does what the command does
//!       programs     their orphans become children of the second keeper (PR_SET_CHILD_SUBREAPER)
//! ```
//! Any of the three may be killed, and the first and the worker together. When the worker has died, its keeper ends the children that it
//! is left with: SIGTERM, and SIGKILL after a while. When a keeper has died, the kernel sends SIGTERM to what it kept (PR_SET_PDEATHSIG).
//! A keeper signals its own children alone: their numbers cannot go to others before it has reaped them.
//!
//! Signals of processes are passed on to the worker. Keys of the terminal reach the worker without. Keepers stop when the worker
//! stops, so that the shell sees it, and let it go on when they go on.

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
/// The same where the worker, or a keeper, was killed.
const PATIENCE_AFTER_A_KILL: Duration = Duration::from_millis(1000);
/// How long a process may take to be gone after SIGKILL; then the kernel holds it.
const DIES: Duration = Duration::from_secs(2);
/// How often it is looked who is left.
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
/// What process lists show of the second keeper.
const NAME: &std::ffi::CStr = c"sl-keeper";

/// Which processes go with a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// All that it started and these started, in whatever session, also when it ends well.
    Everything,
    /// Those of its session, when it does not end well. Daemons stay: a shared connection of ssh is one.
    Session,
}

/// What keepers do.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// Which processes go with the worker.
    pub goes: Goes,
    /// A process that stays on purpose, by its number.
    pub stays: fn(u32) -> bool,
    /// Removes what is left of files and the like. Called after a worker that did not end well.
    pub sweep: fn(),
}

/// Returns in the worker. In the keepers it does not return: they end as the worker does. Called while the process has one thread.
///
/// # Errors
/// The kernel's; then this process is the only one.
pub fn fork_keepers(keeping: &Keeping) -> io::Result<()> {
    let mut above = None;
    for keeper in [Keeper::First, Keeper::Second] {
        // A keeper is ready before it has whom to keep, however late it runs after the fork.
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
            // It died before the kernel had the setting.
            std::process::exit(128 + Signal::SIGTERM as i32);
        }
        above = Some(parent);
    }
    Ok(())
}

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeper {
    First,
    Second,
}

impl Keeper {
    /// A signal to the user's group does not end the second keeper, from before there is anything that it has to end.
    fn leave_group(self) {
        if self == Self::Second {
            let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
        }
    }

    /// The worker is in the user's group.
    fn join_group(self, group: Pid) -> nix::Result<()> {
        match self {
            Self::First => Ok(()),
            Self::Second => setpgid(Pid::from_raw(0), group),
        }
    }

    /// Waits for the end of the child, sees to what is left, and ends as it did.
    fn wait(self, child: Pid, above: Option<Pid>, signals: SignalFd, keeping: &Keeping) -> ! {
        if self == Self::Second {
            // What people see of it, and what `killall stackline` does not end.
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

/// Takes orphans, and signals as events to wait for; and the mask of signals before.
fn prepare() -> nix::Result<(SignalFd, SigSet)> {
    set_child_subreaper(true)?;
    let mut signals: SigSet = PASSED_ON.into_iter().collect();
    signals.add(Signal::SIGCHLD);
    let held = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
    Ok((held, signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?))
}

struct KeeperWait {
    child: Pid,
    /// The keeper's own keeper.
    above: Option<Pid>,
    signals: SignalFd,
}

impl KeeperWait {
    /// How the child ended; `None` when the keeper's own keeper has died, so that the child has to end.
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
            // The codes of kill, sigqueue and tgkill are not above 0; keys of the terminal reach the worker without.
            if signal != Signal::SIGCHLD && sent.ssi_code <= 0 {
                let _ = kill(self.child, signal);
            }
        }
    }

    /// Takes note of children that ended, until it was the one.
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

/// Ends the children of this process and, as they become its children, theirs: asks first.
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
                // One that is stopped hears it when it goes on.
                let _ = kill(child, Signal::SIGCONT);
            }
        }
        sleep(LOOK);
    }
}

/// Takes note of all children that have ended; an error when there is none any more.
fn reap_all() -> nix::Result<()> {
    while waitpid(None, Some(WaitPidFlag::WNOHANG))? != WaitStatus::StillAlive {}
    Ok(())
}

/// The children of this process that have to go.
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

/// Parent and session of a process (proc_pid_stat(5): the name may hold anything, brackets too).
fn stat_of(process: u32) -> Option<(i64, i64)> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(1);
    let parent = fields.next()?.parse().ok()?;
    Some((parent, fields.nth(1)?.parse().ok()?))
}

/// Whether a process runs the same program as this one, with this first argument; a file that has been replaced since is the same.
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

/// Ends this process by a signal, as the one that it kept was.
fn end_by(signal: Signal) -> ! {
    // The core is the worker's.
    let _ = set_dumpable(false);
    let _ = SigSet::from_iter([signal]).thread_unblock();
    let _ = raise(signal);
    std::process::exit(128 + signal as i32)
}
