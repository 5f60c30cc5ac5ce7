//! A connection to a display, over any of the transports.

use crate::message_stream::DisplayMessageStream;
use crate::papers::blast_stream::BlastStream;
use crate::papers::ngp::Ngp;
use crate::papers::pup::Pup;
use crate::papers::vio::Vio;
use crate::raw_terminal::RawTerminal;
use crate::transport::{DisplayTransport, shows};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A connection, by its transport.
#[derive(Debug)]
pub enum DisplayStream {
    /// A TCP connection.
    Tcp(TcpStream),
    /// A unix socket on this machine.
    Unix(UnixStream),
    /// A serial terminal, or a pair of pipes.
    Terminal(TerminalStream),
    /// V's messages (`ikp`, over UDP).
    Messages(Box<DisplayMessageStream>),
    /// A PUP byte stream.
    Pup(Pup),
    /// A stream of blasts.
    Blast(BlastStream),
    /// A stream through an internet server.
    Vio(Vio),
    /// Another connection with the network graphics protocol on it.
    Ngp(Box<Ngp>),
}

/// A terminal or pipes: the files that are read and written, and the terminal's mode to restore.
#[derive(Debug)]
pub struct TerminalStream {
    pub(crate) input: File,
    pub(crate) output: File,
    pub(crate) raw: Option<Arc<RawTerminal>>,
}

impl TerminalStream {
    fn again(&self) -> io::Result<Self> {
        Ok(Self {
            input: self.input.try_clone()?,
            output: self.output.try_clone()?,
            raw: self.raw.clone(),
        })
    }
}

impl DisplayTransport for TerminalStream {}

impl Read for TerminalStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.input.read(into)
    }
}

impl Write for TerminalStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Deref for DisplayStream {
    type Target = dyn DisplayTransport;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
            Self::Terminal(stream) => stream,
            Self::Messages(stream) => stream.as_ref(),
            Self::Pup(stream) => stream,
            Self::Blast(stream) => stream,
            Self::Vio(stream) => stream,
            Self::Ngp(stream) => stream.as_ref(),
        }
    }
}

impl DerefMut for DisplayStream {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
            Self::Terminal(stream) => stream,
            Self::Messages(stream) => stream.as_mut(),
            Self::Pup(stream) => stream,
            Self::Blast(stream) => stream,
            Self::Vio(stream) => stream,
            Self::Ngp(stream) => stream.as_mut(),
        }
    }
}

impl Read for DisplayStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (**self).read(into)
    }
}

impl Write for DisplayStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (**self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DisplayStream {
    /// A second handle of the same connection.
    ///
    /// # Errors
    /// The kernel's error; `Unsupported` for V's messages.
    pub fn again(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Terminal(stream) => stream.again().map(Self::Terminal),
            Self::Pup(stream) => Ok(Self::Pup(stream.again())),
            Self::Vio(stream) => Ok(Self::Vio(stream.again())),
            Self::Blast(stream) => Ok(Self::Blast(stream.again())),
            Self::Ngp(stream) => stream.again().map(|again| Self::Ngp(Box::new(again))),
            // The sender is blocked until the reply comes, so a second thread could not read in the meantime.
            Self::Messages(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Waits until something can be read. Returns whether urgent data (TCP) has come.
    pub(crate) fn waits_urgent(&self) -> bool {
        let Self::Tcp(stream) = self else {
            return false;
        };
        let mut asked = [PollFd::new(stream, PollFlags::IN | PollFlags::PRI)];
        poll(&mut asked, None).is_ok() && asked[0].revents().intersects(PollFlags::PRI)
    }

    /// Whether urgent data (TCP) has come and is not read: then what precedes it may be dropped (RFC 854's Synch).
    #[must_use]
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self, Self::Tcp(stream) if shows(stream, PollFlags::PRI))
    }
}
