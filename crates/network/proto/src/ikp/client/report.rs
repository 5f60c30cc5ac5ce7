//! What a client reports to its driver (the code that moves packets and data for it): state, arrivals, errors of use,
//! counters. Plain data.

use crate::blast::answer_timeout::BlastSenderWait;
use crate::ikp::wire::IkpRefusal;

/// The state of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpClientState {
    /// No message is being sent.
    Idle,
    /// Blocked: a message awaits its reply.
    Sending,
    /// The last message has failed.
    Failed(IkpFailure),
}

/// Why a message has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpFailure {
    /// Nothing was received from the server for longer than the options' patience. The message may have been received
    /// or not.
    Silent,
    /// The server refuses the message.
    Refused(IkpRefusal),
}

/// Why a message cannot be sent at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpSendError {
    /// The last one has not been replied to.
    Busy,
    /// It is longer than a packet; this many bytes fit.
    Long(u32),
}

/// What to do with a packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpClientArrival {
    /// Its payload belongs into the writable segment, at this offset.
    Place(u32),
    /// It is the reply: a message, and behind it data that belongs at an offset of the writable segment.
    Reply {
        /// Bytes of the message.
        message: u32,
        /// The offset in the writable segment at which the data belongs.
        offset: u32,
        /// Bytes of data.
        data: u32,
    },
    /// Do nothing: the packet is control, a duplicate, or of another transaction.
    Nothing,
    /// The packet goes beyond the grants, or is invalid.
    Refused,
}

/// Why [`super::IkpClient::poll`] has to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpClientPollCause {
    /// The message has to be sent, or sent again.
    Send,
    /// A move has something to send.
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
    /// Sends that repeated a message.
    pub repeated: u64,
    /// PENDING answers received.
    pub pending: u64,
    /// Packets that went beyond what was granted.
    pub violations: u64,
    /// Packets of another transaction or delivery.
    pub stale: u64,
}
