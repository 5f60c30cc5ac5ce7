//! What a peer may ask for at most. Every bound that keeps memory bounded stands here, with what it bounds.

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
/// Most blocks that one session may have pending at one server; a list that goes beyond is refused.
pub const MOST_PENDING: usize = 16_384;
/// Most sets that one session may have open.
pub const MOST_OPEN: usize = 64;
/// Most sessions of a master, and connections of a server.
pub const MOST_SESSIONS: usize = 4096;
/// How often a server says that it is still there, ms, and after what silence it counts as down.
pub const HEARTBEAT_MS: (u64, u64) = (2000, 10_000);
/// Most servers, and disks of one.
pub const MOST_SERVERS: usize = 128;
/// See [`MOST_SERVERS`].
pub const MOST_DISKS: usize = 64;
/// Bytes of the longest message without the data of a block.
pub const LONGEST_MESSAGE: usize = 1 << 20;
/// Bytes of the longest message before the other side is known.
pub const LONGEST_GREETING: usize = 512;
/// Bytes of blocks that wait for one client at a server; disks are read for it only below.
pub const WRITE_QUEUE: u64 = 16 << 20;
