//! What an address can do, whatever its scheme.

use super::variants::DisplayAddress;
use crate::acceptor::DisplayAcceptor;
use crate::stream::DisplayStream;
use stackline_core::error::{Error, Result};
use stackline_guard::secret::Secret;
use std::io;
use std::path::PathBuf;

/// An address, or what was expected, in words.
pub(crate) type ParsedAddress = std::result::Result<DisplayAddress, String>;
/// The error that the kernel or a peer refused something.
pub(crate) type Refused<'a> = &'a dyn Fn(io::Error) -> Error;

/// What connections to an address carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayCarriage {
    /// Any bytes in both directions at once.
    Bytes,
    /// A display's requests and answers in both directions at once, and nothing else.
    Requests,
    /// Any bytes, but there is only one connection, which exists already.
    OnlyConnection,
    /// Messages, which block a client while it sends.
    Messages,
}

/// An address of one scheme. A scheme overrides what only some of them have.
pub(crate) trait DisplayScheme {
    /// The address as it is written.
    fn text(&self) -> String;

    /// Connects, or fails with an error of its own or the one that `absent` makes.
    fn connect(&self, absent: Refused<'_>) -> Result<DisplayStream>;

    /// Listens, or fails with the reason why nothing can listen there or the error that `failed` makes.
    fn listen(&self, failed: Refused<'_>) -> Result<Box<dyn DisplayAcceptor>>;

    /// What its connections carry.
    fn carriage(&self) -> DisplayCarriage {
        DisplayCarriage::Bytes
    }

    /// The host and port, if it has them.
    fn place(&self) -> Option<String> {
        None
    }

    /// The address with another host and port, and with another secret of the internet server through which it goes; `None` if it has
    /// neither.
    fn changed(
        &self,
        _place: fn(&str) -> String,
        _secret: Option<&Secret>,
    ) -> Option<DisplayAddress> {
        None
    }

    /// Whether it goes through an internet server.
    fn is_through_server(&self) -> bool {
        false
    }

    /// Whether an internet server connects to such addresses.
    fn is_behind_server(&self) -> bool {
        false
    }

    /// The file of the socket on which it listens, if there is one.
    fn socket_file(&self) -> Option<PathBuf> {
        None
    }

    /// The address behind an internet server whose stream has marks, which do not pass through the server.
    fn without_marks_of(&self) -> Option<&DisplayAddress> {
        None
    }

    /// Whether only the first exchange of bytes shows that nobody is there.
    fn shows_late(&self) -> bool {
        false
    }

    /// The address on which a service has to listen to be found at this one.
    fn listens(&self) -> String {
        self.text()
    }

    /// Another address of the same kind, as an example.
    fn elsewhere(&self) -> String {
        "HOST:ANOTHER_PORT".into()
    }
}
