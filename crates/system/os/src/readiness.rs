//! Waits until one socket can be read or written.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Waits until the socket can be read (or, with `write`, written) or has an error. Returns false if `most` has passed before.
///
/// # Errors
/// The kernel's; `Interrupted` if a signal came first.
pub fn wait_until_ready(socket: BorrowedFd<'_>, write: bool, most: Duration) -> io::Result<bool> {
    let wanted = if write { PollFlags::OUT } else { PollFlags::IN };
    let time = Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: most.subsec_nanos().into(),
    };
    Ok(poll(&mut [PollFd::from_borrowed_fd(socket, wanted)], Some(&time))? > 0)
}
