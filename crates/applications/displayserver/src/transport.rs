//! What a connection to a display can do besides reading and writing, for each transport; and its implementation for kernel sockets.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout};
use rustix::net::{Shutdown, shutdown};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection. Each transport overrides the functions that it supports; the others do nothing.
pub trait DisplayTransport: Read + Write {
    /// Whether the kernel says that the peer is a program of the same user: only possible on a unix socket of this machine.
    fn is_same_user(&self) -> bool {
        false
    }

    /// Sets the longest time that a write may take before it fails.
    ///
    /// # Errors
    /// The kernel's error.
    fn write_within(&self, _patience: Duration) -> io::Result<()> {
        Ok(())
    }

    /// Sets the longest time that a read may take before it fails; `None`: without limit.
    ///
    /// # Errors
    /// The kernel's error.
    fn read_within(&self, _patience: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    /// Sets the size of the kernel's send buffer to about this many bytes.
    fn keeps(&self, _bytes: usize) {}

    /// Whether the peer has closed the connection or its sending direction, as far as is known without reading.
    fn is_gone(&self) -> bool {
        false
    }

    /// Closes the sending direction: the peer is notified that nothing more is written here, and may still write.
    fn ends_writing(&self) {}

    /// Ends both directions; threads that read or write here notice. Protocols of this program first wait until what was written has
    /// arrived.
    fn end(&self) {}

    /// Ends both directions, for protocols of this program after waiting until what was written has arrived.
    ///
    /// # Errors
    /// If it has not arrived.
    fn finish(&self) -> io::Result<()> {
        self.end();
        Ok(())
    }
}

/// A stream socket of the kernel.
trait KernelSocket: Read + Write + AsFd {
    fn is_same_user(&self) -> bool {
        false
    }
}

impl KernelSocket for TcpStream {}

impl KernelSocket for UnixStream {
    fn is_same_user(&self) -> bool {
        stackline_guard::socket::is_same_user(self)
    }
}

impl<S: KernelSocket> DisplayTransport for S {
    fn is_same_user(&self) -> bool {
        KernelSocket::is_same_user(self)
    }

    fn write_within(&self, patience: Duration) -> io::Result<()> {
        Ok(set_socket_timeout(self, Timeout::Send, Some(patience))?)
    }

    fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        Ok(set_socket_timeout(self, Timeout::Recv, patience)?)
    }

    fn keeps(&self, bytes: usize) {
        let _ = set_socket_send_buffer_size(self, bytes);
    }

    fn is_gone(&self) -> bool {
        shows(self, PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
    }

    fn ends_writing(&self) {
        let _ = shutdown(self, Shutdown::Write);
    }

    fn end(&self) {
        let _ = shutdown(self, Shutdown::Both);
    }
}

/// Whether poll reports one of these events for a socket, without waiting.
pub(crate) fn shows(socket: &impl AsFd, what: PollFlags) -> bool {
    let mut asked = [PollFd::new(socket, what)];
    poll(&mut asked, Some(&Timespec::default())).is_ok() && asked[0].revents().intersects(what)
}
