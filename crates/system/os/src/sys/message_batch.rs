//! Sends many messages with one call and without a copy (`sendmmsg`): each message is a vector of pieces of memory, which the kernel may
//! segment into several packets (`UDP_SEGMENT`).
//!
//! The system calls are made directly, because libc's functions are cancellation points, which cost time at every call in a process with
//! several threads.

use super::length;
use super::stream_socket::SendFlags;
use socket2::SockAddr;
use std::io;
use std::marker::PhantomData;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Room for the control message with the segment size.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct SegmentControl([u8; 24]);

/// Vectors and headers of the messages of one call, kept so that no call allocates: on the heap, as endpoints have small stacks.
#[derive(Debug)]
pub struct MessageBatch {
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    controls: Box<[SegmentControl]>,
}

// SAFETY: the raw pointers inside are written by a `MessageWriter` and used by none but that, as long as it lives.
unsafe impl Send for MessageBatch {}
// SAFETY: without a `MessageWriter`, which borrows it alone, nothing can be done with it.
unsafe impl Sync for MessageBatch {}

impl MessageBatch {
    /// Room for `messages` messages with `parts` parts in all.
    #[must_use]
    pub fn new(messages: usize, parts: usize) -> Self {
        Self {
            vectors: Vec::with_capacity(parts),
            headers: Vec::with_capacity(messages),
            controls: vec![SegmentControl([0; 24]); messages].into(),
        }
    }

    /// Begins to write messages, which borrow their parts until they are sent.
    #[inline]
    pub fn write<'m>(&mut self) -> MessageWriter<'_, 'm> {
        self.vectors.clear();
        self.headers.clear();
        MessageWriter {
            batch: self,
            from: 0,
            to: None,
            parts: PhantomData,
        }
    }
}

impl MessageBatch {
    /// Sends each of these slices as a message, as many as there is room for, with one call. Returns how many were sent; an error concerns
    /// the first.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn send_each<'m>(
        &mut self,
        socket: BorrowedFd<'_>,
        messages: impl Iterator<Item = &'m [u8]>,
        flags: SendFlags,
    ) -> io::Result<usize> {
        let room = self.controls.len();
        let mut writer = self.write();
        for message in messages.take(room) {
            writer.push(message);
            writer.end_message(0);
        }
        writer.send(socket, flags)
    }
}

/// Messages that are being written.
#[derive(Debug)]
pub struct MessageWriter<'b, 'm> {
    batch: &'b mut MessageBatch,
    /// The first part of the message that is being written.
    from: usize,
    to: Option<&'m SockAddr>,
    parts: PhantomData<&'m [u8]>,
}

impl<'m> MessageWriter<'_, 'm> {
    /// Where the messages go, on a socket that is not connected.
    #[inline]
    #[must_use]
    pub fn to(mut self, to: Option<&'m SockAddr>) -> Self {
        self.to = to;
        self
    }

    /// How many messages are complete.
    #[inline]
    #[must_use]
    pub fn messages(&self) -> usize {
        self.batch.headers.len()
    }

    /// Whether there is room for one more message of `parts` parts.
    #[inline]
    #[must_use]
    pub fn has_room(&self, parts: usize) -> bool {
        self.batch.headers.len() < self.batch.controls.len()
            && self.batch.vectors.len() + parts <= self.batch.vectors.capacity()
    }

    /// Adds the next part of the message.
    ///
    /// # Panics
    /// When there is no room for it.
    #[inline]
    pub fn push(&mut self, part: &'m [u8]) {
        // A vector that grew would move those that headers point to.
        assert!(self.batch.vectors.len() < self.batch.vectors.capacity());
        self.batch.vectors.push(libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        });
    }

    /// Makes a message of the parts pushed since the last one. The kernel segments it into packets of `segment` bytes each (the last may be
    /// shorter); 0 sends it as one packet.
    ///
    /// # Panics
    /// When nothing was pushed, or there is no room for one more.
    #[inline]
    pub fn end_message(&mut self, segment: u16) {
        let parts = self.batch.vectors.len() - self.from;
        let control = &mut self.batch.controls[self.batch.headers.len()];
        // SAFETY: mmsghdr is plain data, for which all bytes zero is a value.
        let mut message: libc::mmsghdr = unsafe { zeroed() };
        let header = &mut message.msg_hdr;
        header.msg_iov = &raw mut self.batch.vectors[self.from];
        header.msg_iovlen = parts as _;
        if let Some(to) = self.to {
            header.msg_name = to.as_ptr().cast_mut().cast();
            header.msg_namelen = to.len();
        }
        if segment > 0 {
            header.msg_control = control.0.as_mut_ptr().cast();
            let size = size_of::<u16>() as u32;
            // SAFETY: the control buffer is aligned and as large as one header with a u16 (24 bytes), which is written here.
            unsafe {
                header.msg_controllen = libc::CMSG_SPACE(size) as _;
                let first = libc::CMSG_FIRSTHDR(std::ptr::from_ref(header));
                (*first).cmsg_level = libc::SOL_UDP;
                (*first).cmsg_type = libc::UDP_SEGMENT;
                (*first).cmsg_len = libc::CMSG_LEN(size) as _;
                libc::CMSG_DATA(first)
                    .cast::<u16>()
                    .write_unaligned(segment);
            }
        }
        self.batch.headers.push(message);
        self.from += parts;
    }

    /// Sends the messages. Returns how many were sent; an error concerns the first.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub fn send(self, socket: BorrowedFd<'_>, flags: SendFlags) -> io::Result<usize> {
        send_messages(socket, &mut self.batch.headers, flags)
    }
}

/// Sends messages whose headers point at live vectors, these into live memory.
#[inline]
pub(super) fn send_messages(
    socket: BorrowedFd<'_>,
    headers: &mut [libc::mmsghdr],
    flags: SendFlags,
) -> io::Result<usize> {
    let (socket, flags) = (socket.as_raw_fd(), flags.bits());
    if let [one] = headers {
        // SAFETY: the message points at live vectors, these into memory borrowed for this call, which is only read.
        let sent =
            unsafe { libc::syscall(libc::SYS_sendmsg, socket, &raw const one.msg_hdr, flags) };
        return length(sent as isize).map(|_| 1);
    }
    let (first, count) = (headers.as_mut_ptr(), headers.len());
    // SAFETY: as above, for each of the messages.
    let sent = unsafe { libc::syscall(libc::SYS_sendmmsg, socket, first, count, flags) };
    length(sent as isize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn messages_are_put_together_and_cut() {
        let to = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let from = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let address = SockAddr::from(to.local_addr().unwrap());
        let mut batch = MessageBatch::new(2, 4);
        let mut writer = batch.write().to(Some(&address));
        writer.push(b"abc");
        writer.push(b"de");
        writer.end_message(0);
        writer.push(b"12345");
        writer.end_message(2);
        assert!(!writer.has_room(1) && writer.messages() == 2);
        assert_eq!(writer.send(from.as_fd(), SendFlags::NOSIGNAL).unwrap(), 2);
        let mut piece = [0; 16];
        for expected in [&b"abcde"[..], b"12", b"34", b"5"] {
            let count = to.recv(&mut piece).unwrap();
            assert_eq!(&piece[..count], expected);
        }
    }
}
