//! Opens a socket in a network namespace of another user namespace. The kernel does not let a process with several threads join a
//! user namespace, so a child process that shares only the file descriptors joins it, opens the socket and ends.

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

/// What kind of socket is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketKind {
    domain: AddressFamily,
    kind: SockType,
    protocol: Option<SockProtocol>,
}

impl SocketKind {
    /// Packets without link headers (packet(7)); it is not bound and receives nothing yet.
    pub const PACKETS: Self = Self {
        domain: AddressFamily::Packet,
        kind: SockType::Datagram,
        protocol: None,
    };
    /// The sockets of the namespace and their states (sock_diag(7)).
    pub const SOCK_DIAG: Self = Self {
        domain: AddressFamily::Netlink,
        kind: SockType::Raw,
        protocol: Some(SockProtocol::NetlinkSockDiag),
    };
}

/// Opens a socket of this kind in the network namespace of this thread.
pub fn open_here(kind: SocketKind) -> io::Result<OwnedFd> {
    socket(
        kind.domain,
        kind.kind,
        SockFlag::SOCK_CLOEXEC,
        kind.protocol,
    )
    .map_err(io::Error::from)
}

/// Opens a socket of this kind in these namespaces.
pub fn open(user: BorrowedFd<'_>, net: BorrowedFd<'_>, kind: SocketKind) -> io::Result<OwnedFd> {
    // The child puts its socket in this one's place.
    let place = OwnedFd::from(File::open("/dev/null")?);
    // SAFETY: without CLONE_VM the child has its own copy of the memory and of this stack. Locks of other threads stay locked
    // in it, so it makes system calls only, and returns from here never.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_FILES, 0, 0, 0, 0) };
    match child {
        0 => join_and_open(user.as_raw_fd(), net.as_raw_fd(), kind, place.as_raw_fd()),
        child if child < 0 => Err(io::Error::last_os_error()),
        child => finish(Pid::from_raw(child as libc::pid_t)).map(|()| place),
    }
}

/// Runs in the child: ends it with exit code 0, or with the error number of what failed.
fn join_and_open(user: RawFd, net: RawFd, kind: SocketKind, place: RawFd) -> ! {
    let (domain, socket_type) = (kind.domain as i32, kind.kind as i32);
    let protocol = kind.protocol.map_or(0, |protocol| protocol as i32);
    // SAFETY: system calls on numbers that are open, which may be made after a fork; nothing is allocated.
    unsafe {
        let opened = || {
            if libc::setns(user, libc::CLONE_NEWUSER) < 0
                || libc::setns(net, libc::CLONE_NEWNET) < 0
            {
                return false;
            }
            let socket = libc::socket(domain, socket_type | libc::SOCK_CLOEXEC, protocol);
            let put = socket >= 0 && libc::dup3(socket, place, libc::O_CLOEXEC) >= 0;
            // Close the first descriptor: the table is shared, so it would stay open in the parent.
            put && libc::close(socket) == 0
        };
        let code = if opened() {
            0
        } else {
            *libc::__errno_location()
        };
        libc::_exit(code)
    }
}

fn finish(child: Pid) -> io::Result<()> {
    loop {
        // It sends no signal when it ends, so that who waits for any child does not see it.
        match waitpid(child, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
            Ok(WaitStatus::Exited(_, error)) => return Err(io::Error::from_raw_os_error(error)),
            Ok(WaitStatus::Signaled(..)) => return Err(io::ErrorKind::Interrupted.into()),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
