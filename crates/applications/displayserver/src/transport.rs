//! What a connection to a display can do besides reading and writing, for each transport; and its implementation for kernel sockets.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout};
use rustix::net::{Shutdown, shutdown};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection. Each transport overrides the functions that it supports; the others do nothing, or if it is a socket of the kernel, what
/// the kernel does for sockets.
pub trait DisplayTransport: Read + Write {
    /// A second handle of the same connection.
    ///
    /// # Errors
    /// The kernel's error; `Unsupported` if a connection has one user only.
    fn second_handle(&self) -> io::Result<Self>
    where
        Self: Sized,
    {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The kernel's stream socket, if the connection is one.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether the kernel knows the peer's user, so that neither has to prove who it is by a secret.
    fn knows_user(&self) -> bool {
        false
    }

    /// Whether the kernel says that the peer is a program of the same user: only possible on a unix socket of this machine.
    fn is_same_user(&self) -> bool {
        false
    }

    /// Sets the longest time that a write may take before it fails.
    ///
    /// # Errors
    /// The kernel's error.
    fn write_within(&self, patience: Duration) -> io::Result<()> {
        self.socket().map_or(Ok(()), |socket| {
            Ok(set_socket_timeout(socket, Timeout::Send, Some(patience))?)
        })
    }

    /// Sets the longest time that a read may take before it fails; `None`: without limit.
    ///
    /// # Errors
    /// The kernel's error.
    fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        self.socket().map_or(Ok(()), |socket| {
            Ok(set_socket_timeout(socket, Timeout::Recv, patience)?)
        })
    }

    /// Sets the size of the kernel's send buffer to about this many bytes.
    fn keeps(&self, bytes: usize) {
        let _ = self
            .socket()
            .map(|socket| set_socket_send_buffer_size(socket, bytes));
    }

    /// Whether the peer has closed the connection or its sending direction, as far as is known without reading.
    fn is_gone(&self) -> bool {
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        self.socket().is_some_and(|socket| shows(socket, ended))
    }

    /// Waits until something can be read. Returns whether urgent data (TCP) has come.
    fn waits_urgent(&self) -> bool {
        false
    }

    /// Whether urgent data (TCP) has come and is not read: then what precedes it may be dropped (RFC 854's Synch).
    fn is_urgent(&self) -> bool {
        false
    }

    /// Closes the sending direction: the peer is notified that nothing more is written here, and may still write.
    fn ends_writing(&self) {
        let _ = self
            .socket()
            .map(|socket| shutdown(socket, Shutdown::Write));
    }

    /// Ends both directions; threads that read or write here notice. Protocols of this program first wait until what was written has
    /// arrived.
    fn end(&self) {
        let _ = self.socket().map(|socket| shutdown(socket, Shutdown::Both));
    }

    /// Ends both directions, for protocols of this program after waiting until what was written has arrived.
    ///
    /// # Errors
    /// If it has not arrived.
    fn finish(&self) -> io::Result<()> {
        self.end();
        Ok(())
    }
}

impl DisplayTransport for TcpStream {
    fn second_handle(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn waits_urgent(&self) -> bool {
        let mut asked = [PollFd::new(self, PollFlags::IN | PollFlags::PRI)];
        poll(&mut asked, None).is_ok() && asked[0].revents().intersects(PollFlags::PRI)
    }

    fn is_urgent(&self) -> bool {
        shows(self.as_fd(), PollFlags::PRI)
    }
}

impl DisplayTransport for UnixStream {
    fn second_handle(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn knows_user(&self) -> bool {
        true
    }

    fn is_same_user(&self) -> bool {
        stackline_guard::socket::is_same_user(self)
    }
}

/// Whether poll reports one of these events for a socket, without waiting.
fn shows(socket: BorrowedFd<'_>, what: PollFlags) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(socket, what)];
    poll(&mut asked, Some(&Timespec::default())).is_ok() && asked[0].revents().intersects(what)
}
