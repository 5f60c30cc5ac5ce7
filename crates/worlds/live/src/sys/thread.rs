//! Interrupting a thread that waits in the kernel, its priority, and what it used.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::io;
use std::os::unix::thread::{JoinHandleExt, RawPthread};
use std::thread::JoinHandle;

extern "C" fn nothing(_: i32) {}

/// After this, `SIGUSR1` does nothing but make a waiting system call return `EINTR`.
pub(crate) fn make_interruptible() -> io::Result<()> {
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
pub(crate) fn interrupt<T>(thread: &JoinHandle<T>) {
    let id: RawPthread = thread.as_pthread_t();
    // SAFETY: the handle is not joined, so the id is still that of our thread.
    unsafe { libc::pthread_kill(id, libc::SIGUSR1) };
}

/// Sets the calling thread's nice value.
pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: no pointers; on Linux 0 names the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Gives the calling thread a file table of its own with nothing in it but the first three descriptors.
pub(crate) fn own_file_table() -> io::Result<()> {
    // SAFETY: the table is unshared first, so what is closed stays open for every other thread; the caller, a thread that
    // has just begun, owns no descriptor yet.
    let result = unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_UNSHARE as i32) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
