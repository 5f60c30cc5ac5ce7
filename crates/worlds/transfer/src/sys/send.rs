//! Runs of packets into a socket without a copy: vectors of heads and payloads, `UDP_SEGMENT`, `sendmmsg`.
//!
//! Straight into the kernel: libc's functions are cancellation points, which a process with threads pays for at every call.

use super::length;
use crate::carrier::PacketRun;
use socket2::SockAddr;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most messages of one call.
const MESSAGES: usize = 64;
/// Most packets of one call.
pub(crate) const PACKETS: usize = 512;

const fn vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

/// A packet of so many bytes costs less to copy than to describe.
const SHORT: usize = 1 << 11;

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct SendControlBuffer([u8; 24]);

/// The vectors and message headers of one call, kept so that no call allocates: on the heap, as endpoints have small stacks.
pub(crate) struct UdpSendBuffers {
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    control: Box<[SendControlBuffer]>,
    /// A short packet.
    short: Box<[u8]>,
    /// Where packets go, where the socket is not connected.
    pub(crate) to: Option<SockAddr>,
}

// SAFETY: the raw pointers inside are written at the beginning of every call and used by none but that.
unsafe impl Send for UdpSendBuffers {}

impl UdpSendBuffers {
    /// Nothing prepared.
    pub(crate) fn new() -> Self {
        Self {
            vectors: Vec::with_capacity(2 * PACKETS),
            messages: Vec::with_capacity(MESSAGES),
            control: vec![SendControlBuffer([0; 24]); MESSAGES].into(),
            short: vec![0; SHORT].into(),
            to: None,
        }
    }

    /// Sends a run as messages of `joined` packets, which the kernel cuts into packets again; returns how many packets it
    /// took. Never waits.
    pub(crate) fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        run: PacketRun<'_>,
        joined: usize,
    ) -> io::Result<usize> {
        if let [head] = run.heads
            && run.head + run.payload.len() <= SHORT
        {
            return self.send_short(fd, &head.0[..run.head], run.payload);
        }
        let joined = joined.clamp(1, PACKETS);
        let packets = run.heads.len().min(PACKETS).min(joined * MESSAGES);
        self.fill(&run, packets);
        self.messages.clear();
        let mut from = 0;
        while from < packets {
            let n = joined.min(packets - from);
            let segment = if n > 1 { run.head + run.each } else { 0 };
            self.message(from, n, segment);
            from += n;
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let fd = fd.as_raw_fd();
        if let [one] = &self.messages[..] {
            // SAFETY: the message points at live vectors, these into memory borrowed for this call.
            length(
                unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const one.msg_hdr, flags) }
                    as isize,
            )?;
            return Ok(packets);
        }
        let n = self.messages.len() as u32;
        // SAFETY: as above, for each of the n messages.
        let sent =
            unsafe { libc::syscall(libc::SYS_sendmmsg, fd, self.messages.as_mut_ptr(), n, flags) };
        Ok((length(sent as isize)? * joined).min(packets))
    }

    /// One packet, put together here.
    fn send_short(&mut self, fd: BorrowedFd<'_>, head: &[u8], payload: &[u8]) -> io::Result<usize> {
        let bytes = head.len() + payload.len();
        self.short[..head.len()].copy_from_slice(head);
        self.short[head.len()..bytes].copy_from_slice(payload);
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let (to, room) = self
            .to
            .as_ref()
            .map_or((std::ptr::null(), 0), |to| (to.as_ptr(), to.len()));
        // SAFETY: the pointers are to live memory of the lengths given, or null for an address that is not needed.
        let sent = unsafe {
            libc::sendto(
                fd.as_raw_fd(),
                self.short.as_ptr().cast(),
                bytes,
                flags,
                to.cast(),
                room,
            )
        };
        length(sent).map(|_| 1)
    }

    /// Two vectors a packet, so that packet i has numbers 2i and 2i + 1.
    fn fill(&mut self, run: &PacketRun<'_>, packets: usize) {
        self.vectors.clear();
        // The last payload may be empty, or longer than the others where it is the only one.
        let each = if packets == 1 && run.heads.len() == 1 {
            run.payload.len()
        } else {
            run.each
        };
        let payloads = run
            .payload
            .chunks(each.max(1))
            .chain(std::iter::once(&[][..]));
        self.vectors.extend(
            run.heads[..packets]
                .iter()
                .zip(payloads)
                .flat_map(|(head, payload)| [vector(&head.0[..run.head]), vector(payload)]),
        );
    }

    /// Packets `from..from + n` as one message, cut at `segment` bytes unless that is 0.
    fn message(&mut self, from: usize, n: usize, segment: usize) {
        let control = &mut self.control[self.messages.len()];
        // SAFETY: mmsghdr is plain data, for which all bytes zero is a value.
        let mut message: libc::mmsghdr = unsafe { zeroed() };
        message.msg_hdr.msg_iov = &raw mut self.vectors[2 * from];
        message.msg_hdr.msg_iovlen = 2 * n;
        if let Some(to) = &self.to {
            message.msg_hdr.msg_name = to.as_ptr().cast_mut().cast();
            message.msg_hdr.msg_namelen = to.len();
        }
        if segment > 0 {
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            let size = size_of::<u16>() as u32;
            // SAFETY: the control buffer is aligned and as large as one header with a u16 (24 bytes), which is written here.
            unsafe {
                message.msg_hdr.msg_controllen = libc::CMSG_SPACE(size) as usize;
                let header = libc::CMSG_FIRSTHDR(&raw const message.msg_hdr);
                (*header).cmsg_level = libc::SOL_UDP;
                (*header).cmsg_type = libc::UDP_SEGMENT;
                (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
                libc::CMSG_DATA(header)
                    .cast::<u16>()
                    .write_unaligned(segment.min(usize::from(u16::MAX)) as u16);
            }
        }
        self.messages.push(message);
    }
}
