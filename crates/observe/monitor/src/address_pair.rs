//! The two addresses that identify a connection.

use std::net::SocketAddr;

/// A connection's addresses, as this host sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AddressPair {
    /// The address and port of this end.
    pub(crate) local: SocketAddr,
    /// The address and port of the other end.
    pub(crate) remote: SocketAddr,
}

#[cfg(test)]
impl AddressPair {
    /// Parses two texts `address:port`.
    pub(crate) fn parse(local: &str, remote: &str) -> Self {
        Self {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        }
    }
}
