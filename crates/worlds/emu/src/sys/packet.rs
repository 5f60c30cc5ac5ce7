//! Packet sockets: many frames a call, their timestamps, and the kernel's drop counts.
//!
//! It decides nothing; pointers to the caller's memory live for one call only.

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most frames of one call.
pub(crate) const BATCH: usize = 32;

/// `PACKET_VNET_HDR`, missing in some headers.
const PACKET_VNET_HDR: i32 = 15;

/// Room for the control messages of one frame: a time stamp needs 32 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct StampControlBuffer([u8; 64]);

/// One frame received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceivedPacketInfo {
    /// Its length, which is more than the room when it did not fit.
    pub(crate) length: usize,
    /// The kernel's timestamp, in ns of `CLOCK_REALTIME`, if there is one.
    pub(crate) stamp: Option<u64>,
}

/// Receives frames without waiting, each into its head and then its tail; returns how many. None is `WouldBlock`.
pub(crate) fn receive<'a>(
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
        header.msg_hdr.msg_controllen = size_of::<StampControlBuffer>();
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
    let number = usize::try_from(number).map_err(|_| io::Error::last_os_error())?;
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

/// Sends the first [`BATCH`] of these frames at most, without waiting; returns how many went. An error concerns the first.
pub(crate) fn send<'a>(
    socket: BorrowedFd<'_>,
    frames: impl Iterator<Item = &'a [u8]>,
) -> io::Result<usize> {
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    // SAFETY: mmsghdr is plain data, for which all bytes zero is a value.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    let mut count = 0;
    for ((frame, vector), header) in frames.zip(&mut vectors).zip(&mut headers) {
        let vector = vector.write(libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        });
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` headers point at vectors of this frame, these at borrowed memory, which is only read.
    let number = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT as _,
        )
    };
    usize::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// Whether a virtio-net header stands before every frame.
pub(crate) fn has_header(socket: BorrowedFd<'_>) -> io::Result<bool> {
    option::<i32>(socket, libc::SOL_PACKET, PACKET_VNET_HDR).map(|on| on != 0)
}

/// Switches the virtio-net header before every frame on or off.
pub(crate) fn set_header(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, PACKET_VNET_HDR, i32::from(on))
}

/// Sends frames to the interface's driver without a queueing discipline between.
pub(crate) fn bypass_queue(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
}

/// Has the kernel timestamp each frame.
pub(crate) fn stamp_frames(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Requests buffers of so many bytes each way; false when the system's limit reduced them.
pub(crate) fn make_room(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<bool> {
    let mut forced = true;
    for (force, plain) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        if set_option(socket, libc::SOL_SOCKET, force, bytes).is_err() {
            set_option(socket, libc::SOL_SOCKET, plain, bytes)?;
            forced = false;
        }
    }
    Ok(forced)
}

/// Frames dropped for lack of room in the socket since the last call.
pub(crate) fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // struct tpacket_stats: packets, then drops.
    option::<[u32; 2]>(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)
        .map(|[_, drops]| u64::from(drops))
}

/// Plain integers, for which any bytes are a value.
trait Plain: Copy + Default {}
impl Plain for i32 {}
impl Plain for [u32; 2] {}

fn option<T: Plain>(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: both pointers are to live values, the length is that of the first; any bytes written to it are a value.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}

pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: i32,
) -> io::Result<()> {
    // SAFETY: the pointer is to a value of that length, alive for the call.
    let done = unsafe {
        let length = size_of::<i32>() as libc::socklen_t;
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            length,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
