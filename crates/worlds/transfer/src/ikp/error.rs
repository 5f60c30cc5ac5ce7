//! The errors of message passing: one sentence each, with the cause and what to try.

use stackline_core::time::Duration;
use stackline_proto::ikp::client;
use stackline_proto::ikp::server::IkpReplyError;
use stackline_proto::ikp::wire::IkpRefusal;
use std::fmt;
use std::io;

/// Why a send, a move or a reply failed. Client and server can be used on after any of them.
#[derive(Debug)]
pub enum IkpTransferError {
    /// No process receives at that address, as its host reports.
    Nobody,
    /// The peer has been silent for longer than the options allow. The message may have been received or not.
    Silent(Duration),
    /// The server does not take the message.
    Refused(IkpRefusal),
    /// The client has given the message up, or has been replied to.
    Gone,
    /// A move of this request has failed before.
    Failed,
    /// A move or the data of a reply goes beyond the segment granted.
    Outside {
        /// Bytes of the segment.
        granted: usize,
    },
    /// A message or reply is longer than its packet, or a segment longer than 4 GiB.
    Long {
        /// Bytes there is room for.
        room: usize,
    },
    /// The reply came and is longer than the memory for it. It is lost, what was moved is there.
    Reply {
        /// Bytes of the reply.
        bytes: usize,
    },
    /// The path does not carry packets of the requested length.
    Packet {
        /// Bytes of data in a packet, as requested.
        packet: usize,
        /// Bytes of data a packet carries there at most.
        room: usize,
    },
    /// The call was interrupted (see [`super::IkpTransferOptions::interrupt`]).
    Interrupted,
    /// A system call failed, or the path is broken.
    Io(&'static str, io::Error),
}

impl IkpTransferError {
    /// The error of a carrier, which occurred while doing `what`.
    pub(super) fn new(what: &'static str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Nobody,
            _ => Self::Io(what, error),
        }
    }
}

impl From<IkpReplyError> for IkpTransferError {
    fn from(mistake: IkpReplyError) -> Self {
        match mistake {
            // A request makes one move at a time: a move in progress belongs to an abandoned message.
            IkpReplyError::Gone | IkpReplyError::Busy => Self::Gone,
            IkpReplyError::Outside(granted) => Self::Outside {
                granted: granted as usize,
            },
            IkpReplyError::Long(room) => Self::Long {
                room: room as usize,
            },
            IkpReplyError::Failed => Self::Failed,
        }
    }
}

impl From<client::IkpSendError> for IkpTransferError {
    fn from(mistake: client::IkpSendError) -> Self {
        match mistake {
            client::IkpSendError::Busy => Self::Interrupted,
            client::IkpSendError::Long(room) => Self::Long {
                room: room as usize,
            },
        }
    }
}

impl fmt::Display for IkpTransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("no server is listening at that address; hint: start the server first, and check its port"),
            Self::Silent(patience) => write!(
                f,
                "the peer has been silent for {patience}; hint: check whether it is running and whether a firewall drops its packets"
            ),
            Self::Refused(IkpRefusal::Parameters) => f.write_str(
                "the packets are too long for the server; hint: give both sides the same packet size and version",
            ),
            Self::Refused(IkpRefusal::Full) => f.write_str(
                "the server cannot accept another client; hint: raise its client limit, or reduce how long it remembers clients",
            ),
            Self::Gone => f.write_str("the client has abandoned this message"),
            Self::Failed => f.write_str("a move for this request has already failed; hint: drop the request"),
            Self::Outside { granted } => write!(f, "the data exceeds the granted segment of {granted} B"),
            Self::Long { room } => {
                write!(f, "the data is longer than the {room} B available; hint: grant a larger segment")
            }
            Self::Reply { bytes } => write!(f, "the reply of {bytes} B does not fit in its buffer"),
            Self::Packet { packet, room } => write!(
                f,
                "this path cannot carry packets with {packet} B of data: the maximum is {room} B; hint: use smaller packets, or raise the MTU"
            ),
            Self::Interrupted => f.write_str("interrupted before it finished"),
            Self::Io(what, error) => write!(f, "{what} failed: {error}"),
        }
    }
}

impl std::error::Error for IkpTransferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
