//! What a peer may ask for at most. Every bound that keeps memory bounded stands here, with what it bounds.

use core::time::Duration;

/// Bytes of a block unless a set says otherwise: the paper's 48 KiB (Tierney et al. 1996, section 4.2.2).
pub const USUAL_BLOCK: u32 = 48 << 10;
/// Fewest and most bytes of a block.
pub const BLOCK_SIZES: (u32, u32) = (512, 16 << 20);
/// Most blocks of a set.
pub const MOST_BLOCKS: u64 = 1 << 32;
/// Most sets.
pub const MOST_SETS: usize = 4096;
/// Most copies of a block.
pub const MOST_REPLICAS: u8 = 8;
/// Most blocks of one list.
pub const LONGEST_LIST: usize = 8192;
/// Most blocks that are placed, committed or mapped in one message.
pub const LONGEST_BATCH: usize = 4096;
/// Most blocks that one session may have asked of one server and not got; a list that goes beyond is refused.
pub const MOST_REQUESTED_BLOCKS: usize = 16_384;
/// Most copies of blocks of one set that a loader may have reserved and not committed.
pub const MOST_UNCOMMITTED_COPIES: usize = 65_536;
/// Most holes of one disk that a master knows; what is given back above it is lost.
pub const MOST_HOLES: usize = 65_536;
/// Most blocks that a client puts together from datagrams at a time.
pub const MOST_PARTIAL_BLOCKS: usize = 64;
/// Most blocks of one server that may come before the end of one's writing is reported: the session's record forgets the oldest above.
pub const MOST_UNREPORTED_WRITES: usize = 256;
/// Most sets that one session may have open.
pub const MOST_OPEN: usize = 64;
/// Most connections of a master, or of a server, that only read.
pub const MOST_READERS: usize = 4096;
/// Most connections of a master, or of a server, that have proven the key: loaders, writers, servers.
pub const MOST_TRUSTED: usize = 1024;
/// Most connections that have not said who they are.
pub const MOST_STRANGERS: usize = 256;
/// Most sessions of a master, and of a server.
pub const MOST_SESSIONS: usize = MOST_READERS + MOST_TRUSTED;
/// Bytes of answers that wait for one client of a master: nothing more is read of it above.
pub const ANSWERS: u64 = 1 << 20;
/// Bytes of lists that wait for one server at a master: no list for it is taken above.
pub const LISTS: u64 = 8 << 20;
/// Bytes that wait for one connection of a master, whoever has sent them: above, it is closed.
pub const MOST_WAITING: u64 = 16 << 20;
/// Bytes of answers that wait at a master for all of its clients: above, the one for which most waits is closed.
pub const ALL_ANSWERS: u64 = 64 << 20;
/// Bytes of words, such as which blocks were discarded, that wait for one client at a server: no list of it is taken above.
pub const WORDS: u64 = 4 << 20;
/// Bytes of blocks that wait at a server for all of its clients. Half is for those for whom nothing waits yet, so that those who read
/// nothing leave room for others.
pub const WRITE_QUEUES: u64 = 512 << 20;
/// How often a server says that it is still there, ms, and after what silence it counts as down.
pub const HEARTBEAT_MS: (u64, u64) = (2000, 10_000);
/// Most servers, and disks of one.
pub const MOST_SERVERS: usize = 128;
/// See [`MOST_SERVERS`].
pub const MOST_DISKS: usize = 64;
/// Bytes of the longest message without the data of a block.
pub const LONGEST_MESSAGE: usize = 1 << 20;
/// Bytes of the longest message of a client that only reads, to the master: a list of [`LONGEST_LIST`] blocks.
pub const LONGEST_QUESTION: usize = 128 << 10;
/// The same to a server.
pub const LONGEST_REQUEST: usize = 384 << 10;
/// Bytes that may have come of messages that are not whole, of all clients that only read.
pub const ALL_INCOMING: u64 = 64 << 20;
/// Bytes of the longest text in a message.
pub const LONGEST_TEXT: usize = 1024;
/// How long the other side may take in all to say who it is.
pub const GREETING_TIME: Duration = Duration::from_secs(5);
/// Bytes of the longest message before the other side is known.
pub const LONGEST_GREETING: usize = 512;
/// Bytes of blocks that wait for one client at a server; disks are read for it only below.
pub const WRITE_QUEUE: u64 = 16 << 20;
