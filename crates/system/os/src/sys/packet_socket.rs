//! Packet sockets: binding to an interface and protocol, properties of interfaces, options, and counts of received and dropped packets.

use super::length;
use super::socket_option::{read_option, read_value, set_option};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Every protocol.
pub const EVERY_PROTOCOL: u16 = libc::ETH_P_ALL as u16;
/// No protocol: a socket that only sends.
pub const NO_PROTOCOL: u16 = 0;
/// Every interface of the socket's network namespace.
pub const EVERY_INTERFACE: u32 = 0;

/// Properties of an interface.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceProperties {
    /// Its number.
    pub index: u32,
    /// `ARPHRD_ETHER`, `ARPHRD_LOOPBACK`, ...
    pub kind: u16,
    /// Whether it is up.
    pub up: bool,
    /// The MTU: most bytes behind the Ethernet header.
    pub mtu: usize,
    /// Its hardware address.
    pub address: [u8; 6],
}

/// What a packet socket received since the last query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets that its filter kept.
    pub packets: u64,
    /// Packets of these that were dropped for lack of room.
    pub drops: u64,
}

/// Binds a socket, so that it receives packets of this protocol from this interface, and sends on it.
///
/// # Errors
/// The kernel's.
pub fn bind(socket: BorrowedFd<'_>, interface: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to a value of that length, alive for the call.
    let done = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) };
    length(done as isize).map(drop)
}

/// The interface that a socket is bound to.
///
/// # Errors
/// The kernel's.
pub fn bound_interface(socket: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: all bytes zero are a value of this type.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    let room = (&raw mut address).cast();
    // SAFETY: both pointers are to live values, the length is that of the first.
    let done = unsafe { libc::getsockname(socket.as_raw_fd(), room, &raw mut size) };
    length(done as isize).map(|_| address.sll_ifindex.cast_unsigned())
}

/// A request about the interface of that name; `None` where no interface can have it.
fn request_of(name: &str) -> Option<libc::ifreq> {
    // SAFETY: ifreq is plain data, for which all bytes zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Some(request)
}

/// Asks one thing of an interface: the name or the number in the request says of which.
fn ask(socket: BorrowedFd<'_>, request: &mut libc::ifreq, what: libc::Ioctl) -> io::Result<()> {
    // SAFETY: the request is alive, and the kernel reads and writes no more than an ifreq.
    length(unsafe { libc::ioctl(socket.as_raw_fd(), what, std::ptr::from_mut(request)) } as isize)
        .map(drop)
}

/// Properties of an interface of the socket's network namespace.
///
/// # Errors
/// `NotFound` where no interface can have that name; the kernel's.
pub fn interface_properties(socket: BorrowedFd<'_>, name: &str) -> io::Result<InterfaceProperties> {
    let mut request = request_of(name).ok_or(io::ErrorKind::NotFound)?;
    let mut ask = |what| ask(socket, &mut request, what).map(|()| request.ifr_ifru);
    let (index, flags) = (ask(libc::SIOCGIFINDEX as _)?, ask(libc::SIOCGIFFLAGS as _)?);
    let (mtu, hardware) = (ask(libc::SIOCGIFMTU as _)?, ask(libc::SIOCGIFHWADDR as _)?);
    // SAFETY: each request fills the field read here; all are plain data within the union.
    let (index, flags, mtu, hardware) = unsafe {
        (
            index.ifru_ifindex,
            flags.ifru_flags,
            mtu.ifru_mtu,
            hardware.ifru_hwaddr,
        )
    };
    Ok(InterfaceProperties {
        index: index.cast_unsigned(),
        kind: hardware.sa_family,
        up: i32::from(flags) & libc::IFF_UP != 0,
        mtu: usize::try_from(mtu).unwrap_or_default(),
        address: std::array::from_fn(|i| hardware.sa_data[i] as u8),
    })
}

/// The number of an interface in the socket's network namespace.
///
/// # Errors
/// The kernel's; `ENODEV` where no interface can have that name.
pub fn interface_index(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    let mut request = request_of(name).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
    ask(socket, &mut request, libc::SIOCGIFINDEX as _)?;
    // SAFETY: the kernel has written this field.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex }.cast_unsigned())
}

/// The name of an interface in the socket's network namespace.
///
/// # Errors
/// The kernel's.
pub fn interface_name(socket: BorrowedFd<'_>, index: u32) -> io::Result<String> {
    // SAFETY: ifreq is plain data, for which all bytes zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_ifru.ifru_ifindex = index.cast_signed();
    ask(socket, &mut request, libc::SIOCGIFNAME as _)?;
    let name: Vec<u8> = request
        .ifr_name
        .iter()
        .flat_map(|c| c.to_ne_bytes())
        .take_while(|byte| *byte != 0)
        .collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Queries the counts since the last call, and resets them.
///
/// # Errors
/// The kernel's.
pub fn take_counts(socket: BorrowedFd<'_>) -> io::Result<PacketCounts> {
    // struct tpacket_stats: packets, then drops; that of TPACKET_V3 begins with the same.
    let [packets, drops] = read_value(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_STATISTICS,
        [0_u32; 2],
    )?;
    Ok(PacketCounts {
        packets: packets.into(),
        drops: drops.into(),
    })
}

/// Whether a virtio-net header stands before every frame.
///
/// # Errors
/// The kernel's.
pub fn has_virtio_header(socket: BorrowedFd<'_>) -> io::Result<bool> {
    read_option(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR).map(|on| on != 0)
}

/// Switches the virtio-net header before every frame on or off.
///
/// # Errors
/// The kernel's.
pub fn set_virtio_header(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let on = i32::from(on);
    set_option(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, on)
}

/// Makes a socket receive no packets that this machine sends.
///
/// # Errors
/// The kernel's.
pub fn ignore_outgoing(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
}

/// Makes a socket pass frames directly to the interface's driver, without a queueing discipline.
///
/// # Errors
/// The kernel's.
pub fn bypass_queue(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
}

/// Has the kernel timestamp each frame.
///
/// # Errors
/// The kernel's.
pub fn stamp_frames(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Requests send and receive buffers of `bytes` bytes, beyond the system's limit if that is permitted. Returns false if the limit may have
/// reduced them.
///
/// # Errors
/// The kernel's.
pub fn widen_buffers(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<bool> {
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
