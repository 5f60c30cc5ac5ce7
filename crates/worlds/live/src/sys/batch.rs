//! Datagrams many at a time: `sendmmsg`, `recvmmsg`, and segmentation offload (`UDP_SEGMENT`, `UDP_GRO`).
//!
//! A [`DatagramBatch`] owns one contiguous buffer and the headers that point into it, set up once and used for every call.

use super::length;
use super::socket::RecvFlags;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Largest UDP payload over IPv4.
pub(crate) const LARGEST_DATAGRAM: usize = 65_507;

/// Buffers for up to `slots` messages of `slot_bytes`.
pub(crate) struct DatagramBatch {
    buffer: Vec<u8>,
    slot_bytes: usize,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers inside point only into the vectors the batch owns, which move with it.
unsafe impl Send for DatagramBatch {}

impl DatagramBatch {
    /// Buffers are zeroed.
    pub(crate) fn new(slots: usize, slot_bytes: usize) -> Self {
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
    pub(crate) fn slots(&self) -> usize {
        self.headers.len()
    }

    /// One message's bytes.
    pub(crate) fn slot(&mut self, index: usize) -> &mut [u8] {
        &mut self.buffer[index * self.slot_bytes..][..self.slot_bytes]
    }

    /// Length of a message received last.
    pub(crate) fn received(&self, index: usize) -> usize {
        self.headers[index].msg_len as usize
    }

    /// Sends the first `n` messages of `bytes` each; returns how many went.
    pub(crate) fn send(&mut self, fd: BorrowedFd<'_>, n: usize, bytes: usize) -> io::Result<usize> {
        let n = n.min(self.headers.len());
        for vector in &mut self.vectors[..n] {
            vector.iov_len = bytes.min(self.slot_bytes);
        }
        // SAFETY: the first n headers point at live vectors and these into the live buffer.
        let sent = unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                n as u32,
                libc::MSG_NOSIGNAL,
            )
        };
        length(sent as isize)
    }

    /// Waits for one message and takes what else is there; returns how many.
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<usize> {
        for vector in &mut self.vectors {
            vector.iov_len = self.slot_bytes;
        }
        let n = self.headers.len() as u32;
        let flags = flags.bits() as i32 | libc::MSG_WAITFORONE;
        // SAFETY: as above; no timeout is given.
        let got = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
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
struct BatchControlBuffer([u8; 64]);

/// Sends `bytes` as datagrams of `segment` bytes each (the last may be shorter), in one call.
#[inline]
pub(crate) fn send_segmented(fd: BorrowedFd<'_>, bytes: &[u8], segment: u16) -> io::Result<usize> {
    let mut control = BatchControlBuffer([0; 64]);
    let mut vector = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: msghdr is plain data, for which all bytes zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE only computes.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as usize;
    // SAFETY: the control buffer is aligned and larger than one header with a u16; the data is only read by the kernel.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_UDP;
        (*header).cmsg_type = libc::UDP_SEGMENT;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as usize;
        libc::CMSG_DATA(header)
            .cast::<u16>()
            .write_unaligned(segment);
        length(libc::sendmsg(
            fd.as_raw_fd(),
            &raw const message,
            libc::MSG_NOSIGNAL,
        ))
    }
}

/// Receives a run of equal datagrams joined by the kernel: total length and the length of each (the last may be shorter).
#[inline]
pub(crate) fn receive_joined(
    fd: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, usize)> {
    let mut control = BatchControlBuffer([0; 64]);
    let mut vector = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: msghdr is plain data, for which all bytes zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    // SAFETY: the header points at live buffers of the lengths given.
    let got =
        length(unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags.bits() as i32) })?;
    // SAFETY: the kernel filled the control buffer and its length; the macros stay inside; an int is read unaligned.
    let segment = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if !header.is_null()
            && (*header).cmsg_level == libc::SOL_UDP
            && (*header).cmsg_type == libc::UDP_GRO
        {
            usize::try_from(libc::CMSG_DATA(header).cast::<i32>().read_unaligned()).unwrap_or(got)
        } else {
            got
        }
    };
    Ok((got, segment.max(1)))
}
