//! Options of sockets for which no safe wrapper has a name.

use super::length;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Values of options: any bytes are a value, and all of them are the option's.
pub(super) trait OptionValue: Copy {}

impl OptionValue for i32 {}
impl<const N: usize> OptionValue for [u32; N] {}
impl OptionValue for libc::tpacket_req {}
impl OptionValue for libc::tpacket_req3 {}
impl OptionValue for libc::sock_fprog {}

/// Sets an integer option.
///
/// # Errors
/// The kernel's.
pub fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_value(socket, level, name, &value)
}

/// Sets an option that consists of words, such as a set of bits.
///
/// # Errors
/// The kernel's.
pub fn set_words<const N: usize>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    words: &[u32; N],
) -> io::Result<()> {
    set_value(socket, level, name, words)
}

/// Reads an integer option.
///
/// # Errors
/// The kernel's.
pub fn read_option(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<i32> {
    read_value(socket, level, name, 0)
}

/// Sets an option whose value is of this type.
pub(super) fn set_value<T: OptionValue>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the pointer is to a live value of that length.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, size) };
    length(done as isize).map(drop)
}

/// Reads an option into a value of this type.
pub(super) fn read_value<T: OptionValue>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    mut value: T,
) -> io::Result<T> {
    let mut size = size_of::<T>() as libc::socklen_t;
    let room = (&raw mut value).cast();
    // SAFETY: both pointers are to live values, the length is that of the first; any bytes written to it are a value.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, room, &raw mut size) };
    length(done as isize).map(|_| value)
}

/// Fills `room` with as much of an option as it holds and the kernel has; returns the length.
pub(crate) fn read_bytes(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    room: &mut [u8],
) -> io::Result<usize> {
    let mut size = room.len() as libc::socklen_t;
    let to = room.as_mut_ptr().cast();
    // SAFETY: the pointer is to `room`, the length is its length, and the kernel writes no more than that.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, to, &raw mut size) };
    length(done as isize).map(|_| size as usize)
}

/// Attaches a classic BPF program: the socket gets only packets for which it returns more than 0, cut to that many bytes.
pub(crate) fn attach_filter(
    socket: BorrowedFd<'_>,
    program: &[libc::sock_filter],
) -> io::Result<()> {
    let length = program
        .len()
        .try_into()
        .map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel copies the program before the call returns, and does not write to it.
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut(),
    };
    set_value(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
