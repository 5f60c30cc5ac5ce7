//! The limits of the block server: how many sets, blocks, sessions and bytes a peer may use, so that memory stays bounded whatever it
//! sends.

use core::time::Duration;

/// Bytes of a block unless a set says otherwise: the paper's 48 KiB (Tierney et al. 1996, section 4.2.2).
pub const USUAL_BLOCK: u32 = 48 << 10;
/// The smallest and the largest size of a block, bytes.
pub const BLOCK_SIZES: (u32, u32) = (512, 16 << 20);
/// The largest number of blocks in a set.
pub const MOST_BLOCKS: u64 = 1 << 32;
/// The largest number of sets of a master.
pub const MOST_SETS: usize = 4096;
/// The largest number of copies of a block.
pub const MOST_REPLICAS: u8 = 8;
/// The largest number of blocks in one list.
pub const LONGEST_LIST: usize = 8192;
/// The largest number of blocks in one Reserve, Commit or Map message.
pub const LONGEST_BATCH: usize = 4096;
/// The largest number of blocks that one session may have pending at one server: asked for and neither read nor refused yet. The server
/// refuses a list that would exceed it.
pub const MOST_REQUESTED_BLOCKS: usize = 16_384;
/// The largest number of block copies in one set that a loader may have reserved and not committed.
pub const MOST_UNCOMMITTED_COPIES: usize = 65_536;
/// The largest number of holes (unused parts) that a master records for one disk. Space that is given back beyond it stays unused.
pub const MOST_HOLES: usize = 65_536;
/// The largest number of incomplete blocks that a client reassembles from datagrams at a time.
pub const MOST_PARTIAL_BLOCKS: usize = 64;
/// The largest number of blocks of one server whose end of writing is not reported yet. Beyond it, the session's record gives up the
/// oldest: its end of writing stays unknown.
pub const MOST_UNREPORTED_WRITES: usize = 256;
/// The largest number of sets that one session may have open.
pub const MOST_OPEN: usize = 64;
/// The largest number of read-only connections of a master or of a server.
pub const MOST_READERS: usize = 4096;
/// The largest number of connections of a master or of a server that have proven the key: loaders, writers, servers.
pub const MOST_TRUSTED: usize = 1024;
/// The largest number of connections that have not finished their greeting.
pub const MOST_STRANGERS: usize = 256;
/// The largest number of sessions of a master and of a server.
pub const MOST_SESSIONS: usize = MOST_READERS + MOST_TRUSTED;
/// Bytes of answers that may wait for one client of a master. Above this the master reads nothing more from that client.
pub const ANSWERS: u64 = 1 << 20;
/// Bytes of lists that may wait for one server at a master. Above this the master takes no list that needs this server.
pub const LISTS: u64 = 8 << 20;
/// Bytes that may wait for one connection of a master, whoever caused them. Above this the master closes the connection.
pub const MOST_WAITING: u64 = 16 << 20;
/// Bytes of answers that may wait at a master for all of its clients together. Above this the master closes the connection with the most
/// waiting.
pub const ALL_ANSWERS: u64 = 64 << 20;
/// Bytes of messages, such as reports of discarded blocks, that may wait for one client at a server. Above this the server refuses the
/// client's lists.
pub const WORDS: u64 = 4 << 20;
/// Bytes of blocks that may wait to be written at a server, for all clients together. Half of it is reserved for clients for which no block
/// waits yet, so that clients that do not read leave room for others.
pub const WRITE_QUEUES: u64 = 512 << 20;
/// How often a server reports to its master that it is alive, and after what silence it counts as down, both in ms.
pub const HEARTBEAT_MS: (u64, u64) = (2000, 10_000);
/// The largest number of servers of a master.
pub const MOST_SERVERS: usize = 128;
/// The largest number of disks of one server.
pub const MOST_DISKS: usize = 64;
/// Bytes of the longest message, without the data of a block that may follow it.
pub const LONGEST_MESSAGE: usize = 1 << 20;
/// Bytes of the longest message from a read-only client to the master: a list of [`LONGEST_LIST`] blocks.
pub const LONGEST_QUESTION: usize = 128 << 10;
/// Bytes of the longest message from a read-only client to a disk server.
pub const LONGEST_REQUEST: usize = 384 << 10;
/// Bytes of incomplete messages that may be held for all read-only clients together.
pub const ALL_INCOMING: u64 = 64 << 20;
/// Bytes of the longest text in a message.
pub const LONGEST_TEXT: usize = 1024;
/// How long the other side may take to complete its greeting.
pub const GREETING_TIME: Duration = Duration::from_secs(5);
/// Bytes of the longest message before the greeting is complete.
pub const LONGEST_GREETING: usize = 512;
/// Bytes of blocks that may wait to be written to one client of a server. At this bound the server reads no more from disk for it.
pub const WRITE_QUEUE: u64 = 16 << 20;
