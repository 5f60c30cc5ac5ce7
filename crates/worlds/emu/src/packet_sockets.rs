//! Opens the packet sockets of the hosts' ports; the engine sends and receives on them.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use stackline_os::packet_socket::{
    EVERY_PROTOCOL, NO_PROTOCOL, bind, bound_interface, ignore_outgoing, set_virtio_header,
    widen_buffers,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Buffer size requested for each direction, in bytes: enough for large trains while the emulator is not running.
const BUFFER: i32 = 16 << 20;

/// A packet socket on the interface with this index in the thread's network namespace. It is non-blocking and receives the arriving
/// Ethernet frames of every protocol, each behind a virtio-net header.
pub(crate) fn packet_socket(interface: u32) -> io::Result<OwnedFd> {
    let socket = unbound()?;
    bind(socket.as_fd(), interface, EVERY_PROTOCOL)?;
    Ok(socket)
}

/// A packet socket that only sends, on the interface of the socket `like`.
pub(crate) fn sending_socket(like: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let interface = bound_interface(like)?;
    let socket = unbound()?;
    bind(socket.as_fd(), interface, NO_PROTOCOL)?;
    Ok(socket)
}

/// A packet socket that is not bound yet, with a virtio-net header before every frame and large buffers.
fn unbound() -> io::Result<OwnedFd> {
    // Without a protocol nothing is received before the socket is bound to its interface.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
    set_virtio_header(socket.as_fd(), true)?;
    ignore_outgoing(socket.as_fd())?;
    // Without the privilege to exceed the system's limit, the buffers get that limit; the result is ignored.
    widen_buffers(socket.as_fd(), BUFFER)?;
    Ok(socket)
}
