//! Signals as events to wait for, and the list of those that are passed on.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd};

/// Signals that are passed on to the program.
const PASSED_ON: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Signals pending for this process. They no longer interrupt or end it.
#[derive(Debug)]
pub(super) struct Signals {
    held: SignalFd,
    /// The signal mask before.
    pub(super) before: SigSet,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum PendingSignal {
    /// A child ended.
    Child,
    /// By a process. The number is its id, 0 when it lives outside this process's PID namespace.
    By(u32, Signal),
    /// By the kernel: a key of the terminal, which the program gets too.
    Kernel,
}

impl Signals {
    /// Blocks the signals from now on.
    pub(super) fn block() -> nix::Result<Self> {
        let mut set: SigSet = PASSED_ON.into_iter().collect();
        set.add(Signal::SIGCHLD);
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self {
            held: SignalFd::with_flags(&set, flags)?,
            before,
        })
    }

    /// The next; `None` when there is none yet.
    pub(super) fn next(&self) -> nix::Result<Option<PendingSignal>> {
        let Some(info) = self.held.read_signal()? else {
            return Ok(None);
        };
        let signal = Signal::try_from(info.ssi_signo as i32)?;
        Ok(Some(match signal {
            Signal::SIGCHLD => PendingSignal::Child,
            // The codes of kill, sigqueue and tgkill are not above 0.
            _ if info.ssi_code <= 0 => PendingSignal::By(info.ssi_pid, signal),
            _ => PendingSignal::Kernel,
        }))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }
}
