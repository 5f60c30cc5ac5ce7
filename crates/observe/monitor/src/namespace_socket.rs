//! Opens a socket in this network namespace or another one. A socket stays in the namespace in which it was opened, whichever
//! thread reads it; the calling thread never changes its own namespace.

use nix::sched::{CloneFlags, setns};
use stackline_os::foreign_socket::{self, SocketKind};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Opens a socket in the network namespace of this thread.
pub(crate) fn open_here(kind: SocketKind) -> io::Result<OwnedFd> {
    foreign_socket::open_here(kind).map_err(|error| named("a socket", &error))
}

/// Opens a socket in another network namespace, after joining the user namespace if one is given.
pub(crate) fn open_in(
    net: BorrowedFd<'_>,
    user: Option<BorrowedFd<'_>>,
    kind: SocketKind,
) -> io::Result<OwnedFd> {
    match user {
        None => on_a_thread(net, kind),
        Some(user) => foreign_socket::open(user, net, kind)
            .map_err(|error| named("a socket in another user namespace", &error)),
    }
}

/// Opens the socket on a thread that enters the network namespace and then ends.
fn on_a_thread(net: BorrowedFd<'_>, kind: SocketKind) -> io::Result<OwnedFd> {
    let work = || {
        setns(net, CloneFlags::CLONE_NEWNET)
            .map_err(|error| named("entering the network namespace", &error.into()))?;
        open_here(kind)
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

/// Prefixes an error with `what` failed.
pub(crate) fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
