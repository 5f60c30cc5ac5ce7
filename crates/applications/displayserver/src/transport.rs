//! What carries a connection, as each transport does it, and sockets of the kernel as such.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout};
use rustix::net::{Shutdown, shutdown};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What carries a connection. A transport leaves out what it has nothing of.
pub trait DisplayTransport: Read + Write {
    /// Whether the kernel says that the other end is a program of this user: one that came to a unix socket here.
    fn is_same_user(&self) -> bool {
        false
    }

    /// Writing takes no longer than that, or fails.
    ///
    /// # Errors
    /// The kernel's.
    fn write_within(&self, _patience: Duration) -> io::Result<()> {
        Ok(())
    }

    /// Reading takes no longer than that, or fails; without, as long as it takes.
    ///
    /// # Errors
    /// The kernel's.
    fn read_within(&self, _patience: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    /// The kernel keeps about so many bytes of what was written and not read.
    fn keeps(&self, _bytes: usize) {}

    /// Whether the other end is gone, or says no more, as far as is known without reading.
    fn is_gone(&self) -> bool {
        false
    }

    /// It is reported to the other end that no more is written here; it may write on, where the kernel keeps both ways apart.
    fn ends_writing(&self) {}

    /// Ends both ways, once what was written is there where the protocol is this program's: whoever reads or writes here notices.
    fn end(&self) {}

    /// Ends both ways, and waits until what was written is there where the protocol is this program's.
    ///
    /// # Errors
    /// Why it is not.
    fn finish(&self) -> io::Result<()> {
        self.end();
        Ok(())
    }
}

/// A stream of the kernel's.
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

/// Whether a socket shows one of these at once.
pub(crate) fn shows(socket: &impl AsFd, what: PollFlags) -> bool {
    let mut asked = [PollFd::new(socket, what)];
    poll(&mut asked, Some(&Timespec::default())).is_ok() && asked[0].revents().intersects(what)
}
