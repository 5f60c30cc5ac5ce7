//! Opens a packet socket here or in another network namespace. A socket stays in the namespace it was opened in, whoever reads
//! it; the thread that calls never changes its own.

use super::open_failure::named;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use stackline_os::foreign_socket;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// In the namespace of this thread. It has no link headers, and receives nothing until it is bound.
pub(super) fn packet_socket() -> io::Result<OwnedFd> {
    socket(
        AddressFamily::Packet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map_err(|error| named("a packet socket", &error.into()))
}

/// In that network namespace, after joining that user namespace.
pub(super) fn packet_socket_in(
    net: BorrowedFd<'_>,
    user: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    match user {
        None => on_a_thread(net),
        Some(user) => foreign_socket::open(user, net)
            .map_err(|error| named("a packet socket in another user namespace", &error)),
    }
}

fn on_a_thread(net: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let work = || {
        setns(net, CloneFlags::CLONE_NEWNET)
            .map_err(|error| named("entering the network namespace", &error.into()))?;
        packet_socket()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("netns".into())
            .spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| {
            Err(io::Error::other(
                "the thread in the network namespace panicked",
            ))
        })
    })
}
