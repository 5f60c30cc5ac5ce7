//! Events of a connection: data sent for the first time and again, changes of the recovery phase, a full receive queue.
//! Plain data; `trace` records them.

use super::sender::TcpRecoveryPhase;
use alloc::vec::Vec;

/// Why data leaves again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpResendReason {
    /// Everything in flight was marked as lost when the retransmission timer expired.
    Timeout,
    /// Acknowledgements of later data show that it is missing.
    Missing,
    /// The end of what was sent may be lost.
    TailProbe,
    /// Nobody has answered the SYN, or its answer.
    Handshake,
}

impl TcpResendReason {
    /// The word for it in events.
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
    /// New data leaves.
    Sent {
        /// Where it begins.
        offset: u64,
        /// How much it is.
        bytes: u64,
    },
    /// Data leaves again.
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
    /// The receive queue is full: the window offered is none, or a packet found no free buffer.
    Full {
        /// The byte that would be next.
        offset: u64,
        /// Bytes in the queue.
        queued: u64,
    },
}

/// Recorded events, and the state compared with.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpEventLog {
    pub(super) events: Vec<TcpConnectionEvent>,
    pub(super) phase: TcpRecoveryPhase,
    pub(super) full: bool,
}
