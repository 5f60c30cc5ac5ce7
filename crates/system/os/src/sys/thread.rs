//! The scheduling of threads, signals that interrupt their system calls, and threads with a file table of their own.

use super::length;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{dup2_stdin, dup2_stdout};
use std::fs::File;
use std::io;
use std::os::unix::thread::{JoinHandleExt, RawPthread};
use std::thread::{Builder, JoinHandle};

/// Sets the timer slack of this thread: how many ns after a timer's end the kernel may wake it. Returns the previous value.
pub fn set_timer_slack(ns: u64) -> u64 {
    // SAFETY: takes numbers only.
    let before = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) };
    u64::try_from(before).unwrap_or(0)
}

/// How the scheduler treats a thread (`struct sched_attr`, its first version).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ThreadSchedule {
    size: u32,
    /// `SCHED_OTHER`, `SCHED_IDLE` or `SCHED_FIFO`.
    pub policy: u32,
    flags: u64,
    /// -20 to 19.
    pub nice: i32,
    /// Of `SCHED_FIFO`.
    priority: u32,
    /// Requested time slice of `SCHED_OTHER`, in ns: threads with a short slice run sooner.
    turn: u64,
    deadline: u64,
    period: u64,
}

impl ThreadSchedule {
    /// The same with another niceness and time slice.
    pub const fn with(self, nice: i32, turn: u64) -> Self {
        Self { nice, turn, ..self }
    }

    /// The same with the policy `SCHED_IDLE`: the thread runs only on cores that no other thread needs.
    pub const fn idle(self) -> Self {
        Self {
            policy: libc::SCHED_IDLE.cast_unsigned(),
            nice: 0,
            ..self
        }
    }
}

/// The present scheduling of the calling thread.
pub fn schedule() -> io::Result<ThreadSchedule> {
    let mut schedule = ThreadSchedule::default();
    let size = size_of::<ThreadSchedule>();
    // SAFETY: the pointer is to a live value of that size, in the kernel's layout; any bytes are a value of it.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut schedule, size, 0) };
    length(done as isize).map(|_| schedule)
}

/// Requests this scheduling for the calling thread.
pub fn set_schedule(schedule: ThreadSchedule) -> io::Result<()> {
    set_schedule_of(0, schedule)
}

/// Requests this scheduling for the thread with this kernel thread ID; 0 is the calling thread.
pub fn set_schedule_of(thread: u32, schedule: ThreadSchedule) -> io::Result<()> {
    let schedule = ThreadSchedule {
        size: size_of::<ThreadSchedule>() as u32,
        ..schedule
    };
    // SAFETY: the pointer is to a live value that says its own size, in the kernel's layout.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const schedule, 0) };
    length(done as isize).map(drop)
}

extern "C" fn nothing(_: i32) {}

/// After this, `SIGUSR1` does nothing but make a waiting system call return `EINTR`.
pub fn make_interruptible() -> io::Result<()> {
    let action = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::empty(),
        SigSet::empty(),
    );
    // SAFETY: the handler touches nothing, so it is safe at any moment.
    unsafe { sigaction(Signal::SIGUSR1, &action) }
        .map(drop)
        .map_err(io::Error::from)
}

/// Makes the thread's present system call return `EINTR`. A finished thread that is not joined yet is no error.
pub fn interrupt<T>(thread: &JoinHandle<T>) {
    let id: RawPthread = thread.as_pthread_t();
    // SAFETY: the handle is not joined, so the id is still that of our thread.
    unsafe { libc::pthread_kill(id as _, libc::SIGUSR1) };
}

/// Sets the calling thread's nice value.
pub fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: no pointers; on Linux 0 names the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    length(result as isize).map(drop)
}

/// Gives the calling thread standard streams of its own: what it reads from standard input is empty, and what it prints to standard output
/// goes to standard error. Other threads keep theirs.
///
/// # Errors
/// The kernel's.
pub fn keep_standard_streams_apart() -> io::Result<()> {
    // Does nothing where the thread has a file table of its own already.
    unshare(CloneFlags::CLONE_FILES)?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(dup2_stdout(io::stderr())?)
}

/// Starts a thread with a file table of its own that has only descriptors 0 to 2, because in a shared table the kernel counts references
/// to a file at every system call. An old kernel leaves the thread with the shared table. `work` must not hold a descriptor.
///
/// # Errors
/// When the thread cannot be started.
pub fn spawn_with_own_file_table<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    builder.spawn(move || {
        // SAFETY: the table is unshared first, so what is closed stays open for every other thread; this one has just begun and
        // has opened nothing yet.
        unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3,
                u32::MAX,
                libc::CLOSE_RANGE_UNSHARE,
            )
        };
        work()
    })
}
