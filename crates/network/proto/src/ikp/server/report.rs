//! What a server reports to its driver: results of moves and arrivals, errors of use, counters. Plain data.

use crate::blast::answer_timeout::BlastSenderWait;
use crate::ikp::wire::Grants;

/// A message that has been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IkpMessage {
    /// Its transaction.
    pub transaction: u32,
    /// Bytes of the message, the first of the payload.
    pub bytes: u32,
    /// Behind them in the payload, so many of the first readable bytes.
    pub carried: u32,
    /// What may be read and written.
    pub grants: Grants,
    /// Bytes that a reply has room for, message and data.
    pub room: u32,
    /// It takes the place of one that was not replied to: the client has given that one up.
    pub replaces: bool,
}

/// What to do with what arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpServerArrival {
    /// A message, to be received.
    Message(IkpMessage),
    /// Its payload belongs to the range that is being moved from the client, so many bytes from the range's beginning.
    Place(u32),
    /// Nothing: it is control, has been here before, or is of another time.
    Nothing,
    /// It goes beyond what was requested, or is invalid.
    Refused,
}

/// Why a move or a reply is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpReplyError {
    /// There is no message without a reply: it was replied to, or the client has given it up.
    Gone,
    /// It goes beyond the segment granted, which has so many bytes.
    Outside(u32),
    /// It is longer than the packet that carries it, which has room for so many bytes.
    Long(u32),
    /// The last move has not ended.
    Busy,
    /// A move of this message has failed.
    Failed,
}

/// How a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpMoveProgress {
    /// It is in progress.
    Going,
    /// All its bytes have arrived.
    Done,
    /// The client was silent for longer than the options' patience.
    Failed,
    /// The client has given the message up.
    Gone,
}

/// Why a server has to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpServerPollCause {
    /// A reply, an answer or PENDING is to be sent.
    Answer,
    /// Something of a move is to be sent.
    Move(BlastSenderWait),
    /// A range is to be requested, perhaps again.
    Ask,
    /// The client has been silent for too long in a move.
    Patience,
}

/// Counters of a server for one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IkpServerCounters {
    /// Messages delivered, repeated ones included.
    pub messages: u64,
    /// Messages delivered again.
    pub again: u64,
    /// Sends answered with PENDING.
    pub pending: u64,
    /// Replies repeated.
    pub repeated: u64,
    /// Packets that were invalid or went beyond what was requested.
    pub violations: u64,
    /// Packets of another transaction or delivery.
    pub stale: u64,
}
