//! `getsockopt(TCP_INFO)` into bytes, for which no safe wrapper has the later fields of the structure.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Fills `room` with as much of `struct tcp_info` as it holds and the kernel has; returns the length.
pub(crate) fn read(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<usize> {
    let mut length = room.len() as libc::socklen_t;
    // SAFETY: the pointer is to `room`, the length is its length, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(length as usize)
    } else {
        Err(io::Error::last_os_error())
    }
}
