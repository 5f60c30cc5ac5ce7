//! `send`, `recv`, `TCP_INFO` and the zero-copy error queue, as safe functions over a borrowed descriptor.

use super::length;
pub(crate) use rustix::net::{RecvFlags, SendFlags};
use stackline_core::run_record::TransportRecord;
use stackline_monitor::tcp_info::TcpInfo;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Protocol number of Multipath TCP.
pub(crate) const IPPROTO_MPTCP: i32 = libc::IPPROTO_MPTCP;

/// `send(2)`, straight into the kernel: libc's is a cancellation point, which a process with threads pays for at every
/// call. `SIGPIPE` is never raised.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    rustix::net::send(fd, bytes, flags | SendFlags::NOSIGNAL).map_err(io::Error::from)
}

/// Both with one `sendmsg(2)`; how many bytes of them were taken.
pub(crate) fn send_two(fd: BorrowedFd<'_>, first: &[u8], second: &[u8]) -> io::Result<usize> {
    let both = [io::IoSlice::new(first), io::IoSlice::new(second)];
    let nothing = &mut rustix::net::SendAncillaryBuffer::default();
    rustix::net::sendmsg(fd, &both, nothing, SendFlags::NOSIGNAL).map_err(io::Error::from)
}

/// `recv(2)`, likewise.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, bytes: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    rustix::net::recv(fd, bytes, flags)
        .map(|(got, _)| got)
        .map_err(io::Error::from)
}

/// Discards up to `most` bytes of a TCP stream in the kernel, without copying them (`MSG_TRUNC`, tcp(7)).
#[inline]
pub(crate) fn discard(fd: BorrowedFd<'_>, most: usize, flags: i32) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel writes nothing, so no buffer is needed.
    length(unsafe {
        libc::recv(
            fd.as_raw_fd(),
            std::ptr::null_mut(),
            most,
            flags | libc::MSG_TRUNC,
        )
    })
}

/// Sets an integer socket option.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
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

/// Whether something that was sent is not acknowledged; false where the socket is not TCP.
pub(crate) fn in_transit(fd: BorrowedFd<'_>) -> bool {
    TcpInfo::of(fd)
        .is_ok_and(|info| info.unacked > 0 || info.unsent_bytes.is_some_and(|bytes| bytes > 0))
}

/// `TCP_INFO`; an error where the socket is not TCP.
#[expect(clippy::cast_precision_loss, reason = "microseconds of one connection")]
pub(crate) fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<TransportRecord> {
    let info = TcpInfo::of(fd)?;
    let seconds = |us: u64| us as f64 / 1e6;
    Ok(TransportRecord {
        retransmits: info.total_retransmits.into(),
        rtt_s: seconds(info.rtt_us.into()),
        rtt_var_s: Some(seconds(info.rtt_var_us.into())),
        cwnd_segments: Some(info.cwnd_segments.into()),
        mss_bytes: info.mss_bytes.into(),
        busy_s: info.busy_us.map(seconds),
        receive_window_limited_s: info.receive_window_limited_us.map(seconds),
        send_buffer_limited_s: info.send_buffer_limited_us.map(seconds),
        bytes_acked: info.acked_bytes,
        bytes_received: info.received_bytes.unwrap_or(0),
        spent: None,
    })
}

/// `SO_EE_ORIGIN_ZEROCOPY` of linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;

/// Completions of `MSG_ZEROCOPY` sends: how many, and whether the kernel copied after all. `None`: none waiting.
pub(crate) fn zerocopy_completions(fd: BorrowedFd<'_>) -> io::Result<Option<(u32, bool)>> {
    #[repr(C, align(8))]
    struct SocketControlBuffer([u8; 128]);
    let mut control = SocketControlBuffer([0; 128]);
    // SAFETY: msghdr is plain data, for which all bytes zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    // SAFETY: the header points at a live control buffer of the length given and at no data.
    let got = unsafe {
        libc::recvmsg(
            fd.as_raw_fd(),
            &raw mut message,
            libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
        )
    };
    if got < 0 {
        let error = io::Error::last_os_error();
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
