//! What a gateway allows: every bound on its memory and patience.

use std::time::Duration;

/// Connections at once; one more gets a 503.
pub const CONNECTIONS: usize = 1024;
/// Connections beyond the limit, all of which are busy, that get an answer that says so, at once; more are closed.
pub const REFUSALS: usize = 64;
/// Bytes of a request's head; more are 431.
pub const HEAD: usize = 16 << 10;
/// Headers of a request; more are 431.
pub const HEADERS: usize = 64;
/// Bytes that are asked of the servers and have not come, for all requests together.
pub const FLIGHT: u64 = 16 << 20;
/// Blocks that are asked of the servers and have not come.
pub const FLIGHT_BLOCKS: usize = 4096;
/// Bytes that are asked for ahead of what one range or list has sent; at least two blocks of at most so many bytes, or one larger one.
pub const AHEAD: u64 = 1 << 20;
/// Most blocks asked for ahead of what one range or list has sent.
pub const AHEAD_BLOCKS: u64 = 64;
/// Blocks of one list.
pub const LIST: usize = stackline_blocks::limits::LONGEST_LIST;
/// Bytes of a viewer's name.
pub const VIEWER: usize = 64;
/// Sets that one session has open before another one begins.
pub const SETS: usize = stackline_blocks::limits::MOST_OPEN - 2;
/// Questions to the master at once.
pub const QUESTIONS: usize = 8;
/// How long the master may take for an answer.
pub const ANSWER: Duration = Duration::from_secs(5);
/// How long after a failure that took longer than [`BRIEF`] the master is not connected to again.
pub const REST: Duration = Duration::from_secs(1);
/// How long a request for a set that is open waits for a master that is gone to be there again.
pub const BRIEF: Duration = Duration::from_millis(250);
/// Bytes of blocks, pictures and texts that are held for all clients together.
pub const ROOM: u64 = 256 << 20;
/// Large pictures that are made at once.
pub const PICTURES: usize = 4;
/// After what time without taking a byte a client is closed where others wait for room.
pub const IDLE: Duration = Duration::from_secs(1);
/// After what time all such clients are.
pub const LONG_IDLE: Duration = Duration::from_secs(5);
/// How long others wait for room before clients that have taken nothing for less than [`IDLE`] are closed too.
pub const LONG_WAIT: Duration = Duration::from_secs(2);

/// How patient a gateway is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until a request's head has come whole; also how long a connection may be idle.
    pub head: Duration,
    /// While a client takes nothing of its answer.
    pub stall: Duration,
    /// Until a block has come.
    pub block: Duration,
}

impl Patience {
    /// How long a request may get nothing at all before it is ended. A block may wait here and then on its way, for `block`
    /// each, and the master may be asked three times: what takes longer is an error of ours, and is not to hold a connection for good.
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

/// Blocks of a size that are asked for ahead.
#[must_use]
pub(super) fn count_blocks_ahead(block_size: u32) -> usize {
    let least = if u64::from(block_size) <= AHEAD { 2 } else { 1 };
    (AHEAD / u64::from(block_size.max(1))).clamp(least, AHEAD_BLOCKS) as usize
}
