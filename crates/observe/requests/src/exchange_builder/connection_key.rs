//! The key by which connections are distinguished: their two ends, and for loopback addresses, which every host has, also the host.

use std::net::SocketAddr;

/// Who opened a connection and who was connected to.
pub(super) type RequestConnectionEnds = (SocketAddr, SocketAddr);

/// Identifies a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RequestConnectionKey {
    /// The host whose loopback it is on; `None` on a network.
    pub(super) within: Option<usize>,
    /// Its two ends.
    pub(super) ends: RequestConnectionEnds,
    /// Its number, if the caller numbers connections.
    pub(super) flow: Option<u32>,
}

impl RequestConnectionKey {
    pub(super) fn new(host: usize, ends: RequestConnectionEnds) -> Self {
        Self {
            within: ends.0.ip().is_loopback().then_some(host),
            ends,
            flow: None,
        }
    }
}
