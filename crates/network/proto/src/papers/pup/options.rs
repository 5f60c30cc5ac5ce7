//! The options and the fixed times of a PUP connection.

use super::packet::MOST_DATA;
use stackline_core::time::Duration;

/// The options of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PupOptions {
    /// The most bytes of data in a packet.
    pub packet: u16,
    /// Size of the send buffer: unacknowledged bytes that are kept.
    pub send_buffer: usize,
    /// Size of the receive buffer: unread bytes that are kept; at most 65,535 are reported to the peer.
    pub receive_buffer: usize,
    /// Whether packets have checksums.
    pub checked: bool,
    /// A constant timeout; `None`: timeouts follow the round trip.
    pub fixed_timeout: Option<Duration>,
    /// How often the other end is asked again before it is given up.
    pub tries: u32,
    /// After this time without a packet the other end is asked whether it is there.
    pub idle: Option<Duration>,
}

impl PupOptions {
    /// The timeout before a round trip was measured.
    pub const FIRST_TIMEOUT: Duration = Duration(1_000_000_000);
    /// The least timeout.
    pub const LEAST_TIMEOUT: Duration = Duration(50_000_000);
    /// The longest timeout.
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
