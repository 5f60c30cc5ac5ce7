//! Receives many frames of a packet socket with one call, with their timestamps. Pointers to the caller's memory live for one call only.

use super::length;
use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most frames of one call.
pub const BATCH: usize = 32;

/// Room for the control messages of one frame: a time stamp needs 32 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct StampControlBuffer([u8; 64]);

/// One frame received.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivedPacketInfo {
    /// Length of the whole frame, bytes; more than the room if it did not fit.
    pub length: usize,
    /// The kernel's timestamp, in ns of `CLOCK_REALTIME`, if there is one.
    pub stamp: Option<u64>,
}

/// Receives frames without waiting, each into the two slices of its room. Returns how many; `WouldBlock` if there is none.
pub fn receive_frames<'a>(
    socket: BorrowedFd<'_>,
    rooms: impl Iterator<Item = [&'a mut [u8]; 2]>,
    received: &mut [ReceivedPacketInfo; BATCH],
) -> io::Result<usize> {
    let mut vectors = [const { MaybeUninit::<[libc::iovec; 2]>::uninit() }; BATCH];
    let mut controls = [const { MaybeUninit::<StampControlBuffer>::uninit() }; BATCH];
    // SAFETY: mmsghdr is plain data, for which all bytes zero is a value.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    let mut count = 0;
    for (((room, vector), control), header) in
        rooms.zip(&mut vectors).zip(&mut controls).zip(&mut headers)
    {
        let [head, tail] = room;
        let vector = vector.write([vector_of(head), vector_of(tail)]);
        header.msg_hdr.msg_iov = vector.as_mut_ptr();
        header.msg_hdr.msg_iovlen = 2;
        header.msg_hdr.msg_control = control.as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = size_of::<StampControlBuffer>() as _;
        count += 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the first `count` headers point at vectors and control room of this frame, the vectors at borrowed memory.
    let number = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            flags as _,
            std::ptr::null_mut(),
        )
    };
    let number = length(number as isize)?;
    for (header, received) in headers[..number].iter().zip(received) {
        *received = ReceivedPacketInfo {
            length: header.msg_len as usize,
            stamp: stamp(&header.msg_hdr),
        };
    }
    Ok(number)
}

fn vector_of(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }
}

/// The time stamp among a message's control data.
fn stamp(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled the control data that the header describes.
    let first = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (first.cmsg_level, first.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: a message of this kind carries a timespec, perhaps unaligned.
    let time = unsafe {
        libc::CMSG_DATA(first)
            .cast::<libc::timespec>()
            .read_unaligned()
    };
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
