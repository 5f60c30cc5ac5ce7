//! `send`, `recv` and the zero-copy error queue, as safe functions over a borrowed descriptor.

use super::length;
pub use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Protocol number of Multipath TCP.
pub const IPPROTO_MPTCP: i32 = libc::IPPROTO_MPTCP;

/// `send(2)` as a direct system call: libc's function is a cancellation point, which costs time at every call in a process with several
/// threads. `SIGPIPE` is never raised.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    rustix::net::send(fd, bytes, flags | SendFlags::NOSIGNAL).map_err(io::Error::from)
}

/// Sends both slices, one behind the other, with one `sendmsg(2)`. Returns how many bytes of both together the kernel took.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn send_two(fd: BorrowedFd<'_>, first: &[u8], second: &[u8]) -> io::Result<usize> {
    let both = [io::IoSlice::new(first), io::IoSlice::new(second)];
    send_vectored(fd, &both, SendFlags::empty())
}

/// Sends slices, one behind the other, with one `sendmsg(2)`: as many as it takes (`IOV_MAX`, 1024). Returns how many bytes of all of them
/// together the kernel took.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn send_vectored(
    fd: BorrowedFd<'_>,
    slices: &[io::IoSlice<'_>],
    flags: SendFlags,
) -> io::Result<usize> {
    let slices = &slices[..slices.len().min(1024)];
    let nothing = &mut rustix::net::SendAncillaryBuffer::default();
    rustix::net::sendmsg(fd, slices, nothing, flags | SendFlags::NOSIGNAL).map_err(io::Error::from)
}

/// `recv(2)` as a direct system call.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn receive(fd: BorrowedFd<'_>, bytes: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    rustix::net::recv(fd, bytes, flags)
        .map(|(got, _)| got)
        .map_err(io::Error::from)
}

/// Discards up to `most` bytes of a TCP stream in the kernel, without copying them (`MSG_TRUNC`, tcp(7)).
///
/// # Errors
/// The kernel's.
#[inline]
pub fn discard(fd: BorrowedFd<'_>, most: usize, flags: i32) -> io::Result<usize> {
    let flags = flags | libc::MSG_TRUNC;
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel writes nothing, so no buffer is needed.
    length(unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), most, flags) })
}

/// Room for the control messages of the error queue.
#[repr(C, align(8))]
struct ErrorControl([u8; 128]);

/// `SO_EE_ORIGIN_ZEROCOPY` of linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;

/// Reads one notification of completed `MSG_ZEROCOPY` sends: how many sends, and whether the kernel copied their data after all. `None` if
/// none is waiting.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn zerocopy_completions(fd: BorrowedFd<'_>) -> io::Result<Option<(u32, bool)>> {
    let mut control = ErrorControl([0; 128]);
    // SAFETY: msghdr is plain data, for which all bytes zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: the header points at a live control buffer of the length given and at no data.
    let got = unsafe {
        libc::recvmsg(
            fd.as_raw_fd(),
            &raw mut message,
            libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
        )
    };
    if let Err(error) = length(got) {
        return if error.kind() == io::ErrorKind::WouldBlock {
            Ok(None)
        } else {
            Err(error)
        };
    }
    // SAFETY: the kernel filled the control buffer and its length; CMSG_FIRSTHDR checks that a header fits.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if header.is_null() {
        return Ok(None);
    }
    // SAFETY: a non-null first header points into the control buffer; the error queue of an IP socket carries a
    // sock_extended_err there, read unaligned.
    let error: libc::sock_extended_err = unsafe {
        libc::CMSG_DATA(header)
            .cast::<libc::sock_extended_err>()
            .read_unaligned()
    };
    if error.ee_origin != ORIGIN_ZEROCOPY {
        return Ok(None);
    }
    let n = error.ee_data.wrapping_sub(error.ee_info).wrapping_add(1);
    Ok(Some((n, error.ee_code & 1 != 0)))
}
