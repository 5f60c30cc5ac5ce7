//! Sets up the UDP carrier's socket: buffer sizes, fragmentation of packets that are too long, and the longest packet of the route.

use crate::carrier::LONGEST_HEAD;
use crate::packet_train::LONGEST;
use socket2::{SockAddr, Socket};
use stackline_os::socket_option;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of the headers of IPv4 and UDP.
const HEADERS_V4: usize = 28;
/// Bytes of the headers of IPv6 and UDP.
const HEADERS_V6: usize = 48;

/// How a socket is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpCarrierOptions {
    /// Receive buffer requested from the kernel, in bytes; beyond `net.core.rmem_max` only with `CAP_NET_ADMIN`.
    pub receive_buffer: usize,
    /// Send buffer requested from the kernel, in bytes.
    pub send_buffer: usize,
    /// Most bytes of a packet, head and payload; 0 for what the route's MTU allows.
    pub packet: usize,
    /// Whether the kernel is to segment sent packets and join received ones.
    pub offload: bool,
    /// The byte of each packet that has its code point (RFC 2474) in the upper six bits; 0 as the kernel has it.
    pub traffic_class: u8,
    /// How many routers a packet may pass (IP_TTL, IPV6_UNICAST_HOPS); 0 as the kernel has it.
    pub hops: u8,
}

impl UdpCarrierOptions {
    /// Buffers of 4 MiB, packets as long as the route's MTU allows, offload where the kernel has it.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            packet: 0,
            offload: true,
            traffic_class: 0,
            hops: 0,
        }
    }
}

impl Default for UdpCarrierOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Requests buffer sizes from the kernel: beyond its limits where this process may do that, else within them.
pub(super) fn widen(socket: &Socket, options: UdpCarrierOptions) -> io::Result<()> {
    let fd = socket.as_fd();
    let most = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    if socket_option::set_option(
        fd,
        libc::SOL_SOCKET,
        libc::SO_RCVBUFFORCE,
        most(options.receive_buffer),
    )
    .is_err()
    {
        socket.set_recv_buffer_size(options.receive_buffer)?;
    }
    if socket_option::set_option(
        fd,
        libc::SOL_SOCKET,
        libc::SO_SNDBUFFORCE,
        most(options.send_buffer),
    )
    .is_err()
    {
        socket.set_send_buffer_size(options.send_buffer)?;
    }
    Ok(())
}

/// Marks what the socket will send.
pub(super) fn mark(socket: &Socket, v6: bool, options: UdpCarrierOptions) -> io::Result<()> {
    if options.traffic_class == 0 && options.hops == 0 {
        return Ok(());
    }
    // A socket of IPv6 also has the marks of IPv4, for peers at mapped addresses.
    if options.traffic_class > 0 {
        let class = u32::from(options.traffic_class);
        socket.set_tos_v4(class)?;
        if v6 {
            socket.set_tclass_v6(class)?;
        }
    }
    if options.hops > 0 {
        let hops = u32::from(options.hops);
        socket.set_ttl_v4(hops)?;
        if v6 {
            socket.set_unicast_hops_v6(hops)?;
        }
    }
    // A mark may choose another route, so the kernel has forgotten the one of a connected socket.
    match socket.peer_addr() {
        Ok(peer) => socket.connect(&peer),
        Err(_) => Ok(()),
    }
}

/// Sets what the kernel does with packets longer than the route's MTU; `what` is a value of `IP_MTU_DISCOVER`, whose values IPv6 shares.
pub(super) fn discover(fd: BorrowedFd<'_>, v6: bool, what: i32) -> io::Result<()> {
    if v6 {
        socket_option::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, what)
    } else {
        socket_option::set_option(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, what)
    }
}

/// Bytes of the longest packet (head and payload) that a connected socket can send without fragments.
pub(super) fn packet_of(fd: BorrowedFd<'_>, v6: bool) -> io::Result<usize> {
    let (level, name, headers) = if v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU, HEADERS_V6)
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU, HEADERS_V4)
    };
    let mtu = usize::try_from(socket_option::read_option(fd, level, name)?).unwrap_or_default();
    Ok(mtu.saturating_sub(headers).clamp(LONGEST_HEAD, LONGEST))
}

/// An address as the standard library has it.
pub(super) fn address(address: SockAddr) -> io::Result<SocketAddr> {
    address
        .as_socket()
        .ok_or_else(|| io::Error::other("the socket has no IP address"))
}
