//! A connection to a display, over any of the transports.

use crate::message_stream::DisplayMessageStream;
use crate::papers::blast_stream::BlastStream;
use crate::papers::ngp::Ngp;
use crate::papers::pup::Pup;
use crate::papers::vio::Vio;
use crate::terminal_stream::TerminalStream;
use crate::transport::DisplayTransport;
use stackline_guard::timed_stream::TimedStream;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Makes the connection of one row per transport.
macro_rules! transports {
    ($($(#[$doc:meta])* $name:ident($stream:ty);)+) => {
        /// A connection, by its transport.
        #[derive(Debug)]
        pub enum DisplayStream {
            $($(#[$doc])* $name($stream),)+
        }

        impl DisplayStream {
            /// A second handle of the same connection.
            ///
            /// # Errors
            /// The kernel's error; `Unsupported` if a connection has one user only.
            pub fn again(&self) -> io::Result<Self> {
                match self {
                    $(Self::$name(stream) => stream.second_handle().map(Self::$name),)+
                }
            }
        }

        impl Deref for DisplayStream {
            type Target = dyn DisplayTransport;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$name(stream) => stream,)+
                }
            }
        }

        impl DerefMut for DisplayStream {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self {
                    $(Self::$name(stream) => stream,)+
                }
            }
        }
    };
}

transports! {
    /// A TCP connection.
    Tcp(TcpStream);
    /// A unix socket on this machine.
    Unix(UnixStream);
    /// A serial terminal, or a pair of pipes.
    Terminal(TerminalStream);
    /// V's messages (`ikp`, over UDP).
    Messages(DisplayMessageStream);
    /// A PUP byte stream.
    Pup(Pup);
    /// A stream of blasts.
    Blast(BlastStream);
    /// A stream through an internet server.
    Vio(Vio);
    /// Another connection with the network graphics protocol on it.
    Ngp(Ngp);
}

impl TimedStream for DisplayStream {
    fn limit_reads(&self, time: Option<Duration>) -> io::Result<()> {
        self.read_within(time)
    }

    fn limit_writes(&self, time: Duration) -> io::Result<()> {
        self.write_within(time)
    }

    fn close_sending(&self) {
        self.ends_writing();
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
