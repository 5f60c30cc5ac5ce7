//! How connections of QUIC end.

use quinn_proto::{ConnectionError, VarInt};

/// The error code of CONNECTION_CLOSE at an ordinary end.
pub(super) const OVER: VarInt = VarInt::from_u32(0);
/// The error code of CONNECTION_CLOSE when bytes came that nobody will read.
pub(super) const UNWANTED: VarInt = VarInt::from_u32(1);

/// How a connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimQuicLoss {
    /// The peer closed it, with nothing in transit.
    Closed,
    /// The idle timeout: no packet came for too long.
    Silence,
    /// Anything else: an error, a reset, or a close with unread bytes.
    Broken,
}

impl SimQuicLoss {
    /// The loss that quinn-proto reports for that reason.
    pub(super) fn from_reason(reason: &ConnectionError) -> Self {
        match reason {
            ConnectionError::ApplicationClosed(close) if close.error_code == OVER => Self::Closed,
            ConnectionError::TimedOut => Self::Silence,
            _ => Self::Broken,
        }
    }
}
