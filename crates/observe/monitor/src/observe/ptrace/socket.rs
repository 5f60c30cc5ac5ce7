//! Finds out which socket a descriptor of another process refers to: from the process's list of files in `/proc`, and if that is not
//! enough, through a copy of the descriptor.

use crate::observe::existing_connections::connection_of_socket;
use nix::sys::socket::{SockType, SockaddrStorage, getpeername, getsockname, getsockopt, sockopt};
use nix::unistd::Pid;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;

/// The inode number of the socket of a thread's descriptor; `None` if it is no socket.
pub(super) fn number_of(thread: Pid, descriptor: u64) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{thread}/fd/{descriptor}")).ok()?;
    link.to_str()?
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// What is known of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketIdentity {
    /// A TCP connection: this end, and the other.
    Connection(SocketAddr, SocketAddr),
    /// Another kind of socket.
    Other,
    /// A TCP socket that is not connected yet, or that could not be examined.
    NotYet,
}

/// Identifies a socket of another process by its descriptor and inode number. Kernels before 5.6 give no copy of a descriptor
/// (pidfd_getfd); there, the lists of connections in `/proc` are used.
pub(super) fn identify_socket(process: Pid, descriptor: u64, number: u64) -> SocketIdentity {
    let copy = rustix::process::Pid::from_raw(process.as_raw())
        .zip(i32::try_from(descriptor).ok())
        .and_then(|(process, descriptor)| {
            let process =
                rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok()?;
            let flags = rustix::process::PidfdGetfdFlags::empty();
            rustix::process::pidfd_getfd(process, descriptor, flags).ok()
        });
    let Some(copy) = copy else {
        if !is_tcp(process, descriptor) {
            return SocketIdentity::Other;
        }
        return match connection_of_socket(process.as_raw().cast_unsigned(), number) {
            Some((local, remote)) => SocketIdentity::Connection(local, remote),
            None => SocketIdentity::NotYet,
        };
    };
    if getsockopt(&copy, sockopt::SockType) != Ok(SockType::Stream) {
        return SocketIdentity::Other;
    }
    let Ok(local) = getsockname::<SockaddrStorage>(copy.as_raw_fd()) else {
        return SocketIdentity::NotYet;
    };
    let Some(local) = address(&local) else {
        return SocketIdentity::Other;
    };
    let remote = getpeername::<SockaddrStorage>(copy.as_raw_fd()).ok();
    match remote.and_then(|remote| address(&remote)) {
        Some(remote) => SocketIdentity::Connection(local, remote),
        None => SocketIdentity::NotYet,
    }
}

/// Whether a socket of another process is a TCP socket, by the kernel's name of its protocol; true if there is no name.
fn is_tcp(process: Pid, descriptor: u64) -> bool {
    let mut name = [0; 32];
    let path = format!("/proc/{process}/fd/{descriptor}");
    match rustix::fs::getxattr(path, "system.sockprotoname", &mut name[..]) {
        Ok(length) => name[..length].starts_with(b"TCP"),
        Err(_) => true,
    }
}

/// An IPv4 or IPv6 address; an IPv4-mapped address becomes the IPv4 one, as other components use it.
fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let four = storage
        .as_sockaddr_in()
        .map(|four| SocketAddr::new(IpAddr::V4(four.ip()), four.port()));
    four.or_else(|| {
        storage
            .as_sockaddr_in6()
            .map(|six| SocketAddr::new(six.ip().to_canonical(), six.port()))
    })
}
