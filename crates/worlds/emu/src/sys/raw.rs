//! Opens packet sockets. It never sends or receives.

use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Buffer size requested for each direction, in bytes: enough for large trains while the emulator is not running.
const BUFFER: usize = 16 << 20;

/// A packet socket of the interface of that index in the thread's network namespace: non-blocking, whole Ethernet
/// frames of every protocol with a virtio-net header before each, without outgoing ones.
pub(crate) fn packet_socket(interface: u32) -> io::Result<OwnedFd> {
    let socket = unbound()?;
    bind(&socket, interface, libc::ETH_P_ALL as u16)?;
    Ok(socket)
}

/// A socket that only sends, on the interface of that one.
pub(crate) fn sending_socket(like: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: all bytes zero are a valid address of this type.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: both pointers are to live values, the length is that of the first.
    let done =
        unsafe { libc::getsockname(like.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let socket = unbound()?;
    bind(&socket, address.sll_ifindex as u32, 0)?;
    Ok(socket)
}

/// With a virtio-net header before every frame, and much room.
fn unbound() -> io::Result<OwnedFd> {
    // With protocol 0 nothing is received before the socket is bound to its interface.
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointer.
    let number = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the socket was made just now and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    switch_on(&socket, libc::PACKET_VNET_HDR)?;
    switch_on(&socket, libc::PACKET_IGNORE_OUTGOING)?;
    // Without the right to exceed the system's limit it is that limit.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
    }
    if setsockopt(&socket, sockopt::SndBufForce, &BUFFER).is_err() {
        setsockopt(&socket, sockopt::SndBuf, &BUFFER)?;
    }
    Ok(socket)
}

fn switch_on(socket: &OwnedFd, option: i32) -> io::Result<()> {
    let on: i32 = 1;
    // SAFETY: the pointer is to a value of that length, alive for the call.
    let done = unsafe {
        let value = (&raw const on).cast();
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            value,
            size_of::<i32>() as u32,
        )
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn bind(socket: &OwnedFd, interface: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all bytes zero are a valid address of this type.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as i32;
    // SAFETY: the pointer is to a value of that length, alive for the call.
    let done = unsafe {
        let length = size_of::<libc::sockaddr_ll>() as u32;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)
    };
    if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
