//! What a client reports to its driver: state, arrivals, errors of use, counters. Plain data.

use crate::blast::answer_timeout::BlastSenderWait;
use crate::ikp::wire::IkpRefusal;

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpClientState {
    /// Nothing is sent.
    Idle,
    /// Blocked: a message awaits its reply.
    Sending,
    /// The last message came to nothing.
    Failed(IkpFailure),
}

/// Why a message came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpFailure {
    /// Nothing was received from the server for longer than the options' patience. The message may have been received
    /// or not.
    Silent,
    /// The server does not take it.
    Refused(IkpRefusal),
}

/// Why a message is not sent at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpSendError {
    /// The last one has not been replied to.
    Busy,
    /// It is longer than a packet; so many bytes fit.
    Long(u32),
}

/// What to do with what arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpClientArrival {
    /// Its payload belongs into the writable segment, so many bytes from its beginning.
    Place(u32),
    /// The reply: so many bytes of message, and behind them as many of data that belong at this offset of the writable
    /// segment.
    Reply {
        /// Bytes of the message.
        message: u32,
        /// Where the data belongs.
        offset: u32,
        /// Bytes of data.
        data: u32,
    },
    /// Nothing: it is control, has been here before, or is of another time.
    Nothing,
    /// It goes beyond the grants, or is invalid.
    Refused,
}

/// Why a client has to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpClientPollCause {
    /// The message has to be sent, or sent again.
    Send,
    /// Something of a move is to be sent.
    Move(BlastSenderWait),
    /// An answer is to be sent.
    Answer,
    /// The server has been silent for too long.
    Patience,
}

/// Counters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IkpClientCounters {
    /// Messages replied to.
    pub replies: u64,
    /// Sends that repeated one.
    pub repeated: u64,
    /// Answers that a message is pending.
    pub pending: u64,
    /// Packets that went beyond what was granted.
    pub violations: u64,
    /// Packets of another transaction or delivery.
    pub stale: u64,
}
