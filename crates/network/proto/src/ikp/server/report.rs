//! What a server reports to its driver (the code that moves packets and data for it): results of moves and arrivals,
//! errors of use, counters. Plain data.

use crate::blast::answer_timeout::BlastSenderWait;
use crate::ikp::wire::Grants;

/// A message that has been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IkpMessage {
    /// The number of its transaction.
    pub transaction: u32,
    /// Bytes of the message, which are the first of the payload.
    pub bytes: u32,
    /// How many of the first readable bytes follow in the payload.
    pub carried: u32,
    /// What the server may read and write.
    pub grants: Grants,
    /// Bytes that a reply has for message and data.
    pub room: u32,
    /// It replaces a message that was not replied to: the client has given that one up.
    pub replaces: bool,
}

/// What to do with a packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpServerArrival {
    /// It is a message, to be received.
    Message(IkpMessage),
    /// Its payload belongs to the range that is being moved from the client, at this offset from the range's beginning.
    Place(u32),
    /// Do nothing: the packet is control, a duplicate, or of another transaction.
    Nothing,
    /// The packet goes beyond what was requested, or is invalid.
    Refused,
}

/// Why a move or a reply is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpReplyError {
    /// There is no unreplied message: it was replied to, or the client has given it up.
    Gone,
    /// It goes beyond the granted segment, which has this many bytes.
    Outside(u32),
    /// It is longer than the packet that carries it, which has room for this many bytes.
    Long(u32),
    /// The last move has not ended.
    Busy,
    /// A move of this message has failed.
    Failed,
}

/// The progress of a move.
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

/// Why [`super::IkpServer::poll`] has to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpServerPollCause {
    /// A reply, an answer or PENDING is to be sent.
    Answer,
    /// A move has something to send.
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
    /// Messages that were delivered again after their reply.
    pub again: u64,
    /// Sends answered with PENDING.
    pub pending: u64,
    /// Replies that were repeated.
    pub repeated: u64,
    /// Packets that were invalid or went beyond what was requested.
    pub violations: u64,
    /// Packets of another transaction or delivery.
    pub stale: u64,
}
