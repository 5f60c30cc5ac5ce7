//! Messages between a client or a loader and a disk server, and the lists that the master forwards to disk servers.

use super::codec::record;
use alloc::string::String;
use alloc::vec::Vec;

record! {
    /// A disk of a server.
    pub struct DiskInfo {
        /// The identity that is stored on the disk: it is the same wherever the disk is mounted.
        pub identity: u128,
        /// The server's path of it, for people.
        pub path: String,
        /// Bytes it can hold.
        pub capacity: u64,
        /// Bytes that are allocated.
        pub used: u64,
        /// Whether the disk is there.
        pub up: bool,
        /// Whether it can be written. If not, it is still read, and gets no more blocks.
        pub writable: bool,
        /// The number of damaged copies that the server found on it since it was started.
        pub damaged: u64,
    }
}

record! {
    /// One block of a list, with its place.
    pub struct BlockListEntry {
        /// Its index in the client's list.
        pub index: u32,
        /// Its number in the set.
        pub number: u64,
        /// The number of the disk.
        pub disk: u16,
        /// Bytes from the beginning of the disk.
        pub offset: u64,
        /// Bytes of the block.
        pub length: u32,
        /// CRC-32 of its data.
        pub checksum: u32,
    }
}

record! {
    /// Master or client to disk server: blocks that a session wants. A superseding list goes to every server, even without blocks for it,
    /// since it also discards.
    pub struct ServerBlockRequests {
        /// The session number.
        pub session: u128,
        /// The number of the set.
        pub set: u32,
        /// The serial number of the list, higher than that of every earlier list of the session.
        pub serial: u64,
        /// Whether it discards what older lists of this set left pending.
        pub supersedes: bool,
        /// Whether the server reports what it discards of it.
        pub report: bool,
        /// The unit of the first block in the client's list; a block's unit is this plus its index.
        pub first_unit: u64,
        /// When the application sent the list, when the master received it, when the master sent it on; ns of the sender's and the master's
        /// clocks.
        pub stamps: [u64; 3],
        /// The blocks.
        pub entries: Vec<BlockListEntry>,
    }
}

impl super::BlockWireField for [u64; 3] {
    const LEAST: usize = 24;
    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|stamp| stamp.put(to));
    }
    fn take(from: &mut super::BlockWireReader<'_>) -> Result<Self, super::MalformedBlockMessage> {
        Ok([u64::take(from)?, u64::take(from)?, u64::take(from)?])
    }
}

record! {
    /// Client to disk server: the blocks of a session go over this connection, or as datagrams to this host.
    pub struct Attach {
        /// The session number.
        pub session: u128,
        /// How blocks travel, a number of [`super::message::BlockDataTransport`].
        pub transport: u8,
        /// The UDP port that datagrams go to.
        pub port: u16,
        /// Blocks that were asked for longer ago than this (ns) are dropped; 0: none.
        pub age: u64,
        /// Bytes per second at which datagrams leave, with their headers; 0: as fast as possible.
        pub pace: u64,
    }
}

record! {
    /// Disk server: the session is attached.
    pub struct Attached {
        /// The number of the server.
        pub server: u16,
        /// Whether the data of blocks comes in parts (see [`super::block_parts`]); if not, it follows its head whole, or goes beside the
        /// connection.
        pub parts: bool,
    }
}

record! {
    /// The head that precedes the data of a block. Times are in ns, each of the clock of the host where it happened; 0 if it did not
    /// happen.
    pub struct BlockHead {
        /// The unit that the client gave it.
        pub unit: u64,
        /// The number of its set.
        pub set: u32,
        /// The number of the block in the set.
        pub number: u64,
        /// The serial number of the list that asked for it.
        pub serial: u64,
        /// Bytes of data.
        pub length: u32,
        /// CRC-32 of the data.
        pub checksum: u32,
        /// The number of the server that sent it.
        pub server: u16,
        /// The number of the disk from which it was read.
        pub disk: u16,
        /// Whether the server had it in its cache.
        pub cached: bool,
        /// When the application sent the list.
        pub app_send: u64,
        /// When the master received the list.
        pub master_in: u64,
        /// When the master sent the list on.
        pub master_out: u64,
        /// When the server received the list.
        pub server_in: u64,
        /// When reading began.
        pub start_read: u64,
        /// When the block was in memory and in the write queue.
        pub end_read: u64,
        /// When it was handed to the transport.
        pub start_write: u64,
        /// The unit of a block that was written earlier on this connection; 0 if none is reported.
        pub before: u64,
        /// When the transport had taken that block. It holds also for the blocks before it whose writing began at the same moment.
        pub before_end_write: u64,
    }
}

/// Bytes of an encoded [`BlockHead`].
pub const BLOCK_HEAD: usize = <BlockHead as super::BlockWireField>::LEAST;

record! {
    /// Disk server to client: a block that cannot be sent.
    pub struct BlockFailedNotice {
        /// The unit that the client gave it.
        pub unit: u64,
        /// The number of its set.
        pub set: u32,
        /// The number of the block in the set.
        pub number: u64,
        /// The serial number of the list that asked for it.
        pub serial: u64,
        /// The reason, a number of [`super::message::Why`].
        pub why: u8,
    }
}

record! {
    /// One block that was discarded.
    pub struct Discarded {
        /// Its index in the client's list.
        pub index: u32,
        /// When reading began, us after the list came; [`NOT_READ`] if it had not.
        pub start_read: u32,
        /// When the block was in memory, us after the list came; [`NOT_READ`] if it was not.
        pub end_read: u32,
        /// When the block was next to be written and waited for room in the transport, us after the list came; [`NOT_READ`] if it was not.
        pub start_write: u32,
    }
}

/// The time of a step that a discarded block did not reach.
pub const NOT_READ: u32 = u32::MAX;

record! {
    /// Disk server to client: blocks of one list that a newer list discarded.
    pub struct Flushed {
        /// The number of their set.
        pub set: u32,
        /// The serial number of the list.
        pub serial: u64,
        /// The unit of the list's first block.
        pub first_unit: u64,
        /// The number of the server.
        pub server: u16,
        /// When the application sent the list, when the master received it, when the master sent it on, ns.
        pub stamps: [u64; 3],
        /// When the server received the list, ns of its clock.
        pub server_in: u64,
        /// When the blocks were discarded, ns of the server's clock.
        pub at: u64,
        /// The discarded blocks.
        pub blocks: Vec<Discarded>,
    }
}

record! {
    /// Loader to disk server: write a block, whose data follows.
    pub struct StoreBlockRequest {
        /// The loader's number for this request.
        pub request: u32,
        /// The number of the disk.
        pub disk: u16,
        /// Bytes from the beginning of the disk.
        pub offset: u64,
        /// Bytes of data.
        pub length: u32,
        /// CRC-32 of the data.
        pub checksum: u32,
    }
}

record! {
    /// Loader to disk server: make what was written durable.
    pub struct Sync {
        /// The loader's number for this request.
        pub request: u32,
        /// The number of the set that is loaded.
        pub set: u32,
    }
}

record! {
    /// Disk server: what was written is durable.
    pub struct Synced {
        /// The number of the request that is answered.
        pub request: u32,
    }
}
