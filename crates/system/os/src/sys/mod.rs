//! System calls without a safe wrapper elsewhere, and pointers into memory that is shared with the kernel: the only unsafe code of this
//! crate, each block with its reason. There is no policy here, only mechanism.
#![allow(
    unsafe_code,
    reason = "calls without a safe wrapper are made here and nowhere else"
)]

pub mod adjtimex;
pub mod block_ring;
pub mod clock;
pub mod close_on_exec;
pub mod coroutine;
pub mod datagram_batch;
pub mod epoll;
pub mod foreign_socket;
pub mod fork;
pub mod frame_batch;
pub mod frame_ring;
mod mapping;
pub mod memory;
pub mod message_batch;
pub mod packet_socket;
pub mod plugin;
pub mod receive_buffers;
pub mod slot_rings;
pub mod socket_option;
pub mod spawn;
pub mod stream_socket;
pub mod thread;

use std::io;

/// Converts the return value of a system call: -1 is the error in `errno`, anything else a length.
#[inline]
fn length(value: isize) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::Error::last_os_error())
}
