//! A connection to a display, whatever carries it: read, written, ended.

use crate::message_stream::DisplayMessageStream;
use crate::papers::blast_stream::BlastStream;
use crate::papers::ngp::Ngp;
use crate::papers::pup::Pup;
use crate::papers::vio::Vio;
use crate::raw_terminal::RawTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// A connection.
#[derive(Debug)]
pub enum DisplayStream {
    /// Over TCP.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
    /// A terminal, or pipes: where it is read and written, and how a terminal was before.
    Terminal(File, File, Option<Arc<RawTerminal>>),
    /// By V's messages.
    Messages(Box<DisplayMessageStream>),
    /// A stream of PUP.
    Pup(Pup),
    /// A stream of blasts.
    Blast(BlastStream),
    /// A stream through an internet server.
    Vio(Vio),
    /// One with the network graphics protocol on it.
    Ngp(Box<Ngp>),
}

impl DisplayStream {
    /// The same connection once more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn again(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Terminal(input, output, raw) => Ok(Self::Terminal(
                input.try_clone()?,
                output.try_clone()?,
                raw.clone(),
            )),
            Self::Pup(stream) => Ok(Self::Pup(stream.again())),
            Self::Vio(stream) => Ok(Self::Vio(stream.again())),
            Self::Blast(stream) => Ok(Self::Blast(stream.again())),
            Self::Ngp(stream) => stream.again().map(|again| Self::Ngp(Box::new(again))),
            // Who sends is blocked until the reply: nobody reads meanwhile.
            Self::Messages(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether the kernel says that the other end is a program of this user: one that came to a unix socket here.
    #[must_use]
    pub fn is_same_user(&self) -> bool {
        match self {
            Self::Unix(stream) => stackline_guard::socket::is_same_user(stream),
            Self::Ngp(stream) => stream.is_same_user(),
            _ => false,
        }
    }

    /// Writing takes no longer than that, or fails.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_within(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(Some(patience)),
            Self::Unix(stream) => stream.set_write_timeout(Some(patience)),
            Self::Pup(stream) => {
                stream.write_within(patience);
                Ok(())
            }
            Self::Vio(stream) => {
                stream.write_within(patience);
                Ok(())
            }
            Self::Ngp(stream) => stream.write_within(patience),
            // What a blast may take is its own patience.
            Self::Terminal(..) | Self::Messages(_) | Self::Blast(_) => Ok(()),
        }
    }

    /// Reading takes no longer than that, or fails; without, as long as it takes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(patience),
            Self::Unix(stream) => stream.set_read_timeout(patience),
            Self::Terminal(..) => Ok(()),
            Self::Pup(stream) => {
                stream.read_within(patience);
                Ok(())
            }
            Self::Vio(stream) => {
                stream.read_within(patience);
                Ok(())
            }
            Self::Blast(stream) => {
                stream.read_within(patience);
                Ok(())
            }
            Self::Ngp(stream) => stream.read_within(patience),
            Self::Messages(messages) => {
                messages.patience.set(patience);
                Ok(())
            }
        }
    }

    /// The kernel keeps about so many bytes of what was written and not read, where that can be set.
    pub(crate) fn keeps(&self, bytes: usize) {
        let _ = match self {
            Self::Tcp(stream) => set_socket_send_buffer_size(stream, bytes),
            Self::Unix(stream) => set_socket_send_buffer_size(stream, bytes),
            // Those have small buffers of their own, or none.
            _ => Ok(()),
        };
    }

    /// Whether the other end is gone, or says no more, as far as is known without reading.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match self {
            Self::Tcp(stream) => has_hung_up(stream),
            Self::Unix(stream) => has_hung_up(stream),
            Self::Pup(stream) => stream.is_gone(),
            Self::Blast(stream) => stream.is_gone(),
            Self::Ngp(stream) => stream.is_gone(),
            Self::Terminal(..) | Self::Messages(_) | Self::Vio(_) => false,
        }
    }

    /// Ends both ways, once what was written is there where the protocol is this program's.
    ///
    /// # Errors
    /// Why it is not.
    pub fn finish(&self) -> io::Result<()> {
        self.end();
        if let Self::Pup(stream) = self {
            stream.finish()
        } else {
            Ok(())
        }
    }

    /// It is reported to the other end that no more is written here; it may write on, where the kernel keeps both ways apart.
    pub fn ends_writing(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(std::net::Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(std::net::Shutdown::Write),
            _ => Ok(()),
        };
    }

    /// Ends both ways: whoever reads or writes here notices.
    pub fn end(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
            Self::Pup(stream) => {
                stream.end();
                Ok(())
            }
            Self::Vio(stream) => {
                stream.end();
                Ok(())
            }
            Self::Blast(stream) => {
                stream.end();
                Ok(())
            }
            Self::Ngp(stream) => {
                stream.end();
                Ok(())
            }
            Self::Terminal(..) | Self::Messages(_) => Ok(()),
        };
    }
}

impl DisplayStream {
    /// Waits until something can be read; whether something urgent has come.
    pub(crate) fn waits_urgent(&self) -> bool {
        let Self::Tcp(stream) = self else {
            return false;
        };
        let mut asked = [PollFd::new(stream, PollFlags::IN | PollFlags::PRI)];
        poll(&mut asked, None).is_ok() && asked[0].revents().intersects(PollFlags::PRI)
    }

    /// Whether something urgent has come and was not read: what is before it is in its way (RFC 854's Synch).
    #[must_use]
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self, Self::Tcp(stream) if shows(stream, PollFlags::PRI))
    }
}

fn has_hung_up(socket: &impl AsFd) -> bool {
    shows(socket, PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

fn shows(socket: &impl AsFd, what: PollFlags) -> bool {
    let mut asked = [PollFd::new(socket, what)];
    poll(&mut asked, Some(&Timespec::default())).is_ok() && asked[0].revents().intersects(what)
}

impl Read for DisplayStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            Self::Terminal(input, ..) => input.read(into),
            Self::Messages(messages) => messages.read(into),
            Self::Pup(stream) => stream.read(into),
            Self::Vio(stream) => stream.read(into),
            Self::Blast(stream) => stream.read(into),
            Self::Ngp(stream) => stream.read(into),
        }
    }
}

impl Write for DisplayStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Terminal(_, output, _) => output.write(bytes),
            Self::Messages(messages) => messages.write(bytes),
            Self::Pup(stream) => stream.write(bytes),
            Self::Vio(stream) => stream.write(bytes),
            Self::Blast(stream) => stream.write(bytes),
            Self::Ngp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
