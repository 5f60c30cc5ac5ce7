//! What is chosen of a connection, and what is not.

use super::packet::MOST_DATA;
use stackline_core::time::Duration;

/// What is chosen of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PupOptions {
    /// Bytes of data of a packet at most.
    pub packet: u16,
    /// Bytes that are kept until they are acknowledged, and until they are read.
    pub send_buffer: usize,
    /// See `send_buffer`; at most 65,535 are reported to the peer.
    pub receive_buffer: usize,
    /// Whether packets have checksums.
    pub checked: bool,
    /// Every timeout is so long; else they follow the round trip.
    pub fixed_timeout: Option<Duration>,
    /// How often it is asked again before the other end is given up.
    pub tries: u32,
    /// After so long without a packet the other end is asked whether it is there.
    pub idle: Option<Duration>,
}

impl PupOptions {
    /// Timeouts before a round trip was measured; the least and the longest.
    pub const FIRST_TIMEOUT: Duration = Duration(1_000_000_000);
    /// See [`Self::FIRST_TIMEOUT`].
    pub const LEAST_TIMEOUT: Duration = Duration(50_000_000);
    /// See [`Self::FIRST_TIMEOUT`].
    pub const LONGEST_TIMEOUT: Duration = Duration(8_000_000_000);
    /// How long an end that has answered an End stays, to answer it again.
    pub const DALLY: Duration = Duration(10_000_000_000);
}

impl Default for PupOptions {
    fn default() -> Self {
        Self {
            packet: MOST_DATA as u16,
            send_buffer: 64 << 10,
            receive_buffer: 60 << 10,
            checked: true,
            fixed_timeout: None,
            tries: 6,
            idle: None,
        }
    }
}
