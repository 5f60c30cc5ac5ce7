//! Socket options missing in socket2, and waiting for a socket.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Sets an integer option.
pub(crate) fn set(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the pointer is to a live i32 of the length given.
    let result =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads an integer option.
pub(crate) fn get(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0_i32;
    let mut size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: both pointers are to live values and the kernel writes at most `size` bytes.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut size,
        )
    };
    if result == 0 {
        Ok(value)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Waits until the socket can be read (or, with `write`, written) or has an error; false when the time is over.
pub(crate) fn ready(fd: BorrowedFd<'_>, write: bool, most: Duration) -> io::Result<bool> {
    let events = if write { libc::POLLOUT } else { libc::POLLIN };
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    };
    let seconds = libc::time_t::try_from(most.as_secs()).unwrap_or(libc::time_t::MAX);
    let time = libc::timespec {
        tv_sec: seconds,
        tv_nsec: most.subsec_nanos().into(),
    };
    // SAFETY: one live pollfd, a live timespec, and the caller's signal mask stays as it is.
    let n = unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) };
    if n < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(n > 0)
    }
}
