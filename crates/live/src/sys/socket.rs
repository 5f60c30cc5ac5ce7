//! `send`, `recv`, `TCP_INFO` and the zero-copy error queue, as safe functions over a borrowed descriptor.

use super::length;
pub(crate) use rustix::net::{RecvFlags, SendFlags};
use stackline_core::record::Transport;
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

/// `recv(2)`, likewise.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, bytes: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    rustix::net::recv(fd, bytes, flags).map(|(got, _)| got).map_err(io::Error::from)
}

/// Discards up to `most` bytes of a TCP stream in the kernel, without copying them (`MSG_TRUNC`, tcp(7)).
#[inline]
pub(crate) fn discard(fd: BorrowedFd<'_>, most: usize, flags: i32) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC on a TCP socket the kernel writes nothing, so no buffer is needed.
    length(unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), most, flags | libc::MSG_TRUNC) })
}

/// Sets an integer socket option.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the pointer is to a live i32 of the length given.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's `struct tcp_info` up to the fields used here (include/uapi/linux/tcp.h; it only ever grows at its end).
#[repr(C)]
#[derive(Clone, Copy)]
struct TcpInfo {
    bytes: [u8; 8],
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
}

fn kernel_info(fd: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    // SAFETY: TcpInfo is made of integers, for which all bytes zero is a value.
    let mut info: TcpInfo = unsafe { zeroed() };
    let mut size = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: both pointers are to live values; the kernel writes at most `size` bytes and an older one fewer.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut size)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(info)
}

/// Whether something that was sent is not acknowledged; false where the socket is not TCP.
pub(crate) fn in_transit(fd: BorrowedFd<'_>) -> bool {
    kernel_info(fd).is_ok_and(|info| info.unacked > 0 || info.notsent_bytes > 0)
}

/// `TCP_INFO`; an error where the socket is not TCP.
#[expect(clippy::cast_precision_loss, reason = "microseconds of one connection")]
pub(crate) fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<Transport> {
    let info = kernel_info(fd)?;
    Ok(Transport {
        retransmits: u64::from(info.total_retrans),
        rtt_s: f64::from(info.rtt) / 1e6,
        rtt_var_s: Some(f64::from(info.rttvar) / 1e6),
        cwnd_segments: Some(u64::from(info.snd_cwnd)),
        mss_bytes: u64::from(info.snd_mss),
        busy_s: Some(info.busy_time as f64 / 1e6),
        receive_window_limited_s: Some(info.rwnd_limited as f64 / 1e6),
        send_buffer_limited_s: Some(info.sndbuf_limited as f64 / 1e6),
        bytes_acked: Some(info.bytes_acked),
        bytes_received: info.bytes_received,
    })
}

/// `SO_EE_ORIGIN_ZEROCOPY` of linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;

/// Completions of `MSG_ZEROCOPY` sends: how many, and whether the kernel copied after all. `None`: none waiting.
pub(crate) fn zerocopy_completions(fd: BorrowedFd<'_>) -> io::Result<Option<(u32, bool)>> {
    #[repr(C, align(8))]
    struct Control([u8; 128]);
    let mut control = Control([0; 128]);
    // SAFETY: msghdr is plain data, for which all bytes zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    // SAFETY: the header points at a live control buffer of the length given and at no data.
    let got = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    if got < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    // SAFETY: the kernel filled the control buffer and its length; CMSG_FIRSTHDR checks that a header fits.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if header.is_null() {
        return Ok(None);
    }
    // SAFETY: a non-null first header points into the control buffer; the error queue of an IP socket carries a
    // sock_extended_err there, read unaligned.
    let error: libc::sock_extended_err =
        unsafe { libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned() };
    if error.ee_origin != ORIGIN_ZEROCOPY {
        return Ok(None);
    }
    let n = error.ee_data.wrapping_sub(error.ee_info).wrapping_add(1);
    Ok(Some((n, error.ee_code & 1 != 0)))
}
