//! Signals as events that a process can wait for (signalfd(2)), and the list of those that are passed on to a program.

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

/// The descriptor from which this process reads its pending signals. They no longer interrupt or end it.
#[derive(Debug)]
pub(super) struct Signals {
    held: SignalFd,
    /// The signal mask before the signals were blocked; the program is started with it.
    pub(super) before: SigSet,
}

/// A signal that was read.
#[derive(Clone, Copy, Debug)]
pub(super) enum PendingSignal {
    /// A child ended.
    Child,
    /// Sent by a process. The number is the sender's process id, 0 when it is outside this process's PID namespace.
    By(u32, Signal),
    /// Sent by the kernel because of a key of the terminal: the program gets it too.
    Kernel,
}

impl Signals {
    /// Blocks the signals that are passed on, and SIGCHLD, and opens the descriptor.
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

    /// Reads the next pending signal; `None` when there is none yet.
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
