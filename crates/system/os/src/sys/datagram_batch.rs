//! Sends and receives many datagrams with one call, from and into buffers of their own (`sendmmsg`, `recvmmsg`), and receives datagrams of
//! equal length that the kernel has coalesced (`UDP_GRO`).

use super::length;
use super::message_batch::send_messages;
use super::stream_socket::{RecvFlags, SendFlags};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Largest UDP payload over IPv4, bytes.
pub const LARGEST_DATAGRAM: usize = 65_507;

/// Buffers for up to `slots` messages of `slot_bytes`: one contiguous buffer and the headers that point into it, set up once and used for
/// every call.
#[derive(Debug)]
pub struct DatagramBatch {
    buffer: Vec<u8>,
    slot_bytes: usize,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers inside point only into the vectors the batch owns, which move with it.
unsafe impl Send for DatagramBatch {}

impl DatagramBatch {
    /// Zeroed buffers for `slots` messages of `slot_bytes` bytes each.
    #[must_use]
    pub fn new(slots: usize, slot_bytes: usize) -> Self {
        let mut buffer = vec![0_u8; slots * slot_bytes];
        let mut vectors: Vec<libc::iovec> = (0..slots)
            // SAFETY: each offset lies within the buffer.
            .map(|i| libc::iovec {
                iov_base: unsafe { buffer.as_mut_ptr().add(i * slot_bytes) }.cast(),
                iov_len: slot_bytes,
            })
            .collect();
        let headers = vectors
            .iter_mut()
            .map(|vector| {
                // SAFETY: mmsghdr is plain data, for which all bytes zero is a value.
                let mut header: libc::mmsghdr = unsafe { zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Self {
            buffer,
            slot_bytes,
            vectors,
            headers,
        }
    }

    /// How many messages fit.
    #[inline]
    #[must_use]
    pub fn slots(&self) -> usize {
        self.headers.len()
    }

    /// The buffer of one message.
    #[inline]
    pub fn slot(&mut self, index: usize) -> &mut [u8] {
        &mut self.buffer[index * self.slot_bytes..][..self.slot_bytes]
    }

    /// The length of a message received by the last call, bytes.
    #[inline]
    #[must_use]
    pub fn received(&self, index: usize) -> usize {
        self.headers[index].msg_len as usize
    }

    /// Sends the first `n` messages, of `bytes` bytes each. Returns how many were sent.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn send(&mut self, socket: BorrowedFd<'_>, n: usize, bytes: usize) -> io::Result<usize> {
        let n = n.min(self.headers.len());
        for vector in &mut self.vectors[..n] {
            vector.iov_len = bytes.min(self.slot_bytes);
        }
        // The first n headers point at live vectors and these into the live buffer.
        send_messages(socket, &mut self.headers[..n], SendFlags::NOSIGNAL)
    }

    /// Waits for one message and also receives those that have arrived besides. Returns how many.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn receive(&mut self, socket: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<usize> {
        for vector in &mut self.vectors {
            vector.iov_len = self.slot_bytes;
        }
        let n = self.headers.len() as u32;
        let flags = flags.bits().cast_signed() | libc::MSG_WAITFORONE;
        // SAFETY: the headers point at live vectors and these into the live buffer; no timeout is given.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                n,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        length(got as isize)
    }
}

#[repr(C, align(8))]
struct JoinedControl([u8; 64]);

/// Receives datagrams of equal length that the kernel has coalesced. Returns the total length and the length of each (the last may be
/// shorter), in bytes.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn receive_joined(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, usize)> {
    let mut control = JoinedControl([0; 64]);
    let mut vector = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: msghdr is plain data, for which all bytes zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    let flags = flags.bits().cast_signed();
    // SAFETY: the header points at live buffers of the lengths given.
    let got = length(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) })?;
    Ok((got, joined_segment(&message).unwrap_or(got).max(1)))
}

/// The length of each packet but the last, if the kernel has coalesced packets in this received message.
#[inline]
pub(super) fn joined_segment(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel filled the control buffer and its length; the macros stay inside; an int is read unaligned.
    unsafe {
        let control = libc::CMSG_FIRSTHDR(message);
        if control.is_null()
            || (*control).cmsg_level != libc::SOL_UDP
            || (*control).cmsg_type != libc::UDP_GRO
        {
            return None;
        }
        usize::try_from(libc::CMSG_DATA(control).cast::<i32>().read_unaligned()).ok()
    }
}
