//! The options of HTTP that both worlds have, and hyper's values where they are not written.

use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::plan::Stack;

/// The least and the largest window of HTTP/2 (RFC 9113, 6.9.1), bytes.
const WINDOW: OptionKind = OptionKind::Bytes(1, (1 << 31) - 1);

/// The window of a connection, bytes: it begins with 65,535 and can only grow (RFC 9113, 6.9.2).
const CONNECTION_WINDOW: OptionKind = OptionKind::Bytes(65_535, (1 << 31) - 1);

/// The options of HTTP/2 itself.
pub const HTTP2_OPTIONS: [OptionTable; 2] = [
    OptionTable::new(
        "window",
        WINDOW,
        "hyper's: 2 MiB at the initiator, 1 MiB at the responder",
        "flow-control window of each stream (SETTINGS_INITIAL_WINDOW_SIZE)",
    ),
    OptionTable::new(
        "connection_window",
        CONNECTION_WINDOW,
        "hyper's: 5 MiB at the initiator, 1 MiB at the responder",
        "flow-control window of the connection",
    ),
];

/// The windows in which one end receives, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Windows {
    /// Of each stream.
    pub stream: u32,
    /// Of the connection.
    pub connection: u32,
}

impl Http2Windows {
    /// hyper's at the client.
    pub const CLIENT: Self = Self {
        stream: 2 << 20,
        connection: 5 << 20,
    };
    /// hyper's at the server.
    pub const SERVER: Self = Self {
        stream: 1 << 20,
        connection: 1 << 20,
    };

    /// Those of the stack's options where they are written.
    #[must_use]
    pub fn or_written(self, stack: &Stack) -> Self {
        let written = |name, own| {
            let bytes = stack.number(name).and_then(|n| u32::try_from(n).ok());
            bytes.unwrap_or(own)
        };
        Self {
            stream: written("window", self.stream),
            connection: written("connection_window", self.connection),
        }
    }
}
