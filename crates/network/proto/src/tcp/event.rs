//! Events of a connection: data sent for the first time and again, changes of the recovery phase, a full receive queue.
//! Plain data; `trace` records them.

use super::sender::TcpRecoveryPhase;
use alloc::vec::Vec;

/// Why data is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpResendReason {
    /// Everything in flight was marked as lost when the retransmission timer expired.
    Timeout,
    /// Acknowledgements of later data show that it is missing.
    Missing,
    /// The last segments of what was sent may be lost (tail loss probe).
    TailProbe,
    /// Nobody has answered the SYN, or its answer.
    Handshake,
}

impl TcpResendReason {
    /// The reason as a word, as events show it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Missing => "fast",
            Self::TailProbe => "probe",
            Self::Handshake => "handshake",
        }
    }
}

/// Something that a connection did. Offsets count bytes of the stream, from the first after connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpConnectionEvent {
    /// New data is sent.
    Sent {
        /// Where it begins.
        offset: u64,
        /// How much it is.
        bytes: u64,
    },
    /// Data is sent again.
    Again {
        /// Where it begins.
        offset: u64,
        /// How much it is.
        bytes: u64,
        /// Why.
        reason: TcpResendReason,
    },
    /// The recovery phase has changed.
    State {
        /// First byte that is not acknowledged.
        offset: u64,
        /// `open`, `disorder`, `cwr`, `recovery` or `loss`.
        state: &'static str,
    },
    /// The receive queue is full: the offered window is zero, or a packet found no free buffer.
    Full {
        /// The offset of the next expected byte.
        offset: u64,
        /// Bytes in the queue.
        queued: u64,
    },
}

/// The recorded events, and the last recorded state, with which the present one is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpEventLog {
    pub(super) events: Vec<TcpConnectionEvent>,
    pub(super) phase: TcpRecoveryPhase,
    pub(super) full: bool,
}
