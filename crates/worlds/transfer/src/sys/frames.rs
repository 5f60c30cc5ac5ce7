//! Packet sockets: which interface, which ethertype, what the kernel had no room for.

use super::length;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Properties of an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterfaceProperties {
    /// Its number.
    pub(crate) index: i32,
    /// `ARPHRD_ETHER`, `ARPHRD_LOOPBACK`, ...
    pub(crate) kind: u16,
    /// Whether it is up.
    pub(crate) up: bool,
    /// Most bytes behind the Ethernet header.
    pub(crate) mtu: usize,
    /// Its hardware address.
    pub(crate) address: [u8; 6],
}

/// Asks for an interface of the socket's network namespace by name; `NotFound` where no interface can have that name.
pub(crate) fn interface(fd: BorrowedFd<'_>, name: &str) -> io::Result<InterfaceProperties> {
    // SAFETY: ifreq is plain data, for which all bytes zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::ErrorKind::NotFound.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let mut ask = |what: libc::Ioctl| {
        // SAFETY: the request is alive, and the kernel writes no more than an ifreq.
        length(unsafe { libc::ioctl(fd.as_raw_fd(), what, &raw mut request) } as isize)?;
        io::Result::Ok(request.ifr_ifru)
    };
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
        index,
        kind: hardware.sa_family,
        up: i32::from(flags) & libc::IFF_UP != 0,
        mtu: usize::try_from(mtu).unwrap_or_default(),
        address: std::array::from_fn(|i| hardware.sa_data[i] as u8),
    })
}

/// Binds the socket to that ethertype and interface, for receiving and sending.
pub(crate) fn bind(fd: BorrowedFd<'_>, interface: i32, ethertype: u16) -> io::Result<()> {
    // SAFETY: all bytes zero are a value of this type.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = interface;
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to a value of that length, alive for the call.
    length(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) } as isize)?;
    Ok(())
}

/// Frames received since the last call, and those of them dropped for lack of room (`struct tpacket_stats`).
pub(crate) fn take_counts(fd: BorrowedFd<'_>) -> io::Result<[u64; 2]> {
    let mut counts = [0_u32; 2];
    let mut size = size_of::<[u32; 2]>() as libc::socklen_t;
    let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: both pointers are to live values, and the kernel writes at most `size` bytes.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            counts.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    length(result as isize)?;
    Ok(counts.map(u64::from))
}
