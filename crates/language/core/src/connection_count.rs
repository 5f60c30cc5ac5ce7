//! What stacks count over all connections of a side, by the names that results have: handshakes by kind, and changes of address.

/// Handshakes in which the server proved its identity (RFC 8446, 2): no session was resumed.
pub const HANDSHAKES_FULL: &str = "handshakes_full";
/// Handshakes that resumed an earlier session (RFC 8446, 2.2), without early data or with early data that was rejected.
pub const HANDSHAKES_RESUMED: &str = "handshakes_resumed";
/// Handshakes that resumed an earlier session and took early data (RFC 8446, 2.3; RFC 9001, 4.6).
pub const HANDSHAKES_EARLY: &str = "handshakes_early";
/// Handshakes whose early data the server rejected, so that it was sent again; they are also counted as full or resumed.
pub const EARLY_DATA_REJECTED: &str = "early_data_rejected";
/// Changes of a connection's local address (RFC 9000, 9).
pub const MIGRATIONS: &str = "migrations";

/// How a connection of TLS or QUIC shook hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeOutcome {
    /// The server proved its identity.
    Full,
    /// An earlier session was resumed.
    Resumed,
    /// An earlier session was resumed, and early data was accepted.
    Early,
}

impl HandshakeOutcome {
    /// The name under which it is counted.
    #[must_use]
    pub const fn count_name(self) -> &'static str {
        match self {
            Self::Full => HANDSHAKES_FULL,
            Self::Resumed => HANDSHAKES_RESUMED,
            Self::Early => HANDSHAKES_EARLY,
        }
    }
}
