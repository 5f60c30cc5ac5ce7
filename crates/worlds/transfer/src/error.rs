//! The errors of a channel. Each is displayed as one sentence with its cause and a hint.

use stackline_core::time::Duration;
use stackline_proto::blast::negotiation::BlastRefusal;
use std::fmt;
use std::io;

/// Why an operation on a channel failed. A channel that failed once fails from then on.
#[derive(Debug)]
pub enum Error {
    /// The peer's process is gone: its host reports a closed port.
    Gone,
    /// The peer has been silent for longer than the options allow.
    Silent(Duration),
    /// The peer refused the connection.
    Refused(BlastRefusal),
    /// The peer closed the channel while data was in flight to it, or gave up in the middle of an operation.
    Closed,
    /// The operation was interrupted (see [`crate::options::BlastChannelOptions::interrupt`]).
    Interrupted,
    /// The channel failed before, or was ended in the middle of an operation.
    Broken,
    /// The options are not possible on this path, for this reason.
    Options(String),
    /// A system call failed, or the path is broken.
    Io(&'static str, io::Error),
}

impl Error {
    /// Converts an error of a carrier; `what` names the operation.
    pub(crate) fn new(what: &'static str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Gone,
            _ => Self::Io(what, error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the peer's process is gone; hint: check why it exited on the other host"),
            Self::Silent(patience) => write!(
                f,
                "the peer has been silent for {patience}; hint: check whether it is running and whether a firewall drops its packets"
            ),
            Self::Refused(BlastRefusal::Version) => {
                f.write_str("the peer has a different version of the protocol; hint: use the same version on both hosts")
            }
            Self::Refused(BlastRefusal::Parameters) => f.write_str(
                "the peer uses a different strategy or `checked` setting; hint: give both sides the same strategy and `checked` setting",
            ),
            Self::Refused(BlastRefusal::Busy) => f.write_str("the peer already has a connection; hint: close it first"),
            Self::Closed => f.write_str("the peer closed the channel before everything had arrived"),
            Self::Interrupted => f.write_str("interrupted before it finished"),
            Self::Broken => f.write_str("the channel has already failed; hint: open a new one"),
            Self::Options(what) => f.write_str(what),
            Self::Io(what, error) => write!(f, "{what} failed: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
