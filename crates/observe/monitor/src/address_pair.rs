//! The two addresses that identify a connection.

use std::net::SocketAddr;

/// A connection's addresses, as this host sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AddressPair {
    /// At this end.
    pub(crate) local: SocketAddr,
    /// At the other end.
    pub(crate) remote: SocketAddr,
}

#[cfg(test)]
impl AddressPair {
    /// From `address:port` twice.
    pub(crate) fn parse(local: &str, remote: &str) -> Self {
        Self {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        }
    }
}
