//! The limits of a gateway on memory and time.

use std::time::Duration;

/// The limit on connections; further ones get a 503.
pub const CONNECTIONS: usize = 1024;
/// The limit on connections that are being answered with 503 at the same time; further ones are just closed.
pub const REFUSALS: usize = 64;
/// The limit on the bytes of a request's head; above it the answer is 431.
pub const HEAD: usize = 16 << 10;
/// The limit on the headers of a request; above it the answer is 431.
pub const HEADERS: usize = 64;
/// The limit on bytes that were requested from the servers and have not come, for all requests together.
pub const FLIGHT: u64 = 16 << 20;
/// The limit on blocks that were requested from the servers and have not come.
pub const FLIGHT_BLOCKS: usize = 4096;
/// Bytes that one range or list requests ahead of what it has sent: at least two blocks of at most this size, or one larger block.
pub const AHEAD: u64 = 1 << 20;
/// The limit on blocks that one range or list requests ahead of what it has sent.
pub const AHEAD_BLOCKS: u64 = 64;
/// The limit on blocks of one list.
pub const LIST: usize = stackline_blocks::limits::LONGEST_LIST;
/// The limit on the bytes of a viewer's name.
pub const VIEWER: usize = 64;
/// The number of sets that one session opens before another session begins.
pub const SETS: usize = stackline_blocks::limits::MOST_OPEN - 2;
/// The limit on questions to the master at the same time.
pub const QUESTIONS: usize = 8;
/// How long the master may take for an answer.
pub const ANSWER: Duration = Duration::from_secs(5);
/// How long the master is not tried again after a failure that took longer than [`BRIEF`].
pub const REST: Duration = Duration::from_secs(1);
/// How long a request for an open set waits for a master that is gone to come back.
pub const BRIEF: Duration = Duration::from_millis(250);
/// Bytes of blocks, pictures and texts that may be held for all clients together.
pub const ROOM: u64 = 256 << 20;
/// The limit on large pictures that are encoded at the same time.
pub const PICTURES: usize = 4;
/// After what time without taking a byte a client may be closed, if others wait for memory.
pub const IDLE: Duration = Duration::from_secs(1);
/// After what time without taking a byte all such clients are closed, if others wait for memory.
pub const LONG_IDLE: Duration = Duration::from_secs(5);
/// How long others wait for memory before clients that have stalled for less than [`IDLE`] are closed too.
pub const LONG_WAIT: Duration = Duration::from_secs(2);

/// The time limits of a gateway.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the complete head of a request; also for an idle connection.
    pub head: Duration,
    /// For a client that takes nothing of its answer.
    pub stall: Duration,
    /// For a block to come.
    pub block: Duration,
}

impl Patience {
    /// How long a request may get nothing before it is ended. A block may wait here and then in flight, for `block` each, and the master
    /// may be asked three times. Anything longer is an error in the gateway, which must not hold a connection forever.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.block.saturating_mul(2).saturating_add(ANSWER * 3)
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            block: Duration::from_secs(15),
        }
    }
}

/// The number of blocks of this size that are requested ahead.
#[must_use]
pub(super) fn count_blocks_ahead(block_size: u32) -> usize {
    let least = if u64::from(block_size) <= AHEAD { 2 } else { 1 };
    (AHEAD / u64::from(block_size.max(1))).clamp(least, AHEAD_BLOCKS) as usize
}
