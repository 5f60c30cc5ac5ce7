//! How connections are distinguished: by their two ends, and where these are everybody's by whose they are.

use std::net::SocketAddr;

/// Who opened a connection and who was connected to.
pub(super) type RequestConnectionEnds = (SocketAddr, SocketAddr);

/// A connection: its ends, whose loopback it is on, as every host has the same addresses there, and its number where others count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RequestConnectionKey {
    pub(super) within: Option<usize>,
    pub(super) ends: RequestConnectionEnds,
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
