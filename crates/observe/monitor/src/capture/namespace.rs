//! Opens a packet socket in this network namespace or another one. A socket stays in the namespace in which it was opened, whichever
//! thread reads it; the calling thread never changes its own namespace.

use super::open_failure::named;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use stackline_os::foreign_socket;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Opens a packet socket in the network namespace of this thread. Its packets have no link headers, and it receives nothing until it
/// is bound.
pub(super) fn packet_socket() -> io::Result<OwnedFd> {
    socket(
        AddressFamily::Packet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map_err(|error| named("a packet socket", &error.into()))
}

/// Opens a packet socket in another network namespace, after joining the user namespace if one is given.
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

/// Opens the socket on a thread that enters the network namespace and then ends.
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
