//! Between a client or a loader and a disk server, and the lists that the master forwards.

use super::codec::record;
use alloc::string::String;
use alloc::vec::Vec;

record! {
    /// A disk.
    pub struct DiskInfo {
        /// What it calls itself, on the disk: the same wherever it is mounted.
        pub identity: u128,
        /// Where the server has it, for people.
        pub path: String,
        /// Bytes it can hold.
        pub capacity: u64,
        /// Bytes given away.
        pub used: u64,
        /// Whether it is there.
        pub up: bool,
        /// Whether it can be written; else it is read as before, and gets no more blocks.
        pub writable: bool,
        /// Copies on it that its server found to be damaged since it was started.
        pub damaged: u64,
    }
}

record! {
    /// One block of a list, as its server reads it.
    pub struct BlockListEntry {
        /// Its place in the client's list.
        pub index: u32,
        /// Its number in the set.
        pub number: u64,
        /// Which disk.
        pub disk: u16,
        /// Bytes before it.
        pub offset: u64,
        /// Its bytes.
        pub length: u32,
        /// CRC-32 of them.
        pub checksum: u32,
    }
}

record! {
    /// To a server: blocks that a session wants. Every server of the session gets one, perhaps an empty one, since it
    /// also discards.
    pub struct ServerBlockRequests {
        /// Whose.
        pub session: u128,
        /// Of which set.
        pub set: u32,
        /// Higher than that of every list before.
        pub serial: u64,
        /// Whether what is pending of this set is discarded.
        pub supersedes: bool,
        /// Whether it tells what it discards.
        pub report: bool,
        /// The unit of the client's first block.
        pub first_unit: u64,
        /// When the application sent it, when the master had it, when the master sent it on, ns.
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
    /// To a server: the blocks of a session go over this connection, or as datagrams.
    pub struct Attach {
        /// The session.
        pub session: u128,
        /// How blocks travel, as one of [`super::message::BlockDataTransport`].
        pub transport: u8,
        /// The UDP port that datagrams go to.
        pub port: u16,
        /// Blocks that were asked for longer ago are dropped, ns; 0: none.
        pub age: u64,
        /// Bytes a second at which datagrams leave, with what precedes them; 0: as fast as they can.
        pub pace: u64,
    }
}

record! {
    /// Server: so it is.
    pub struct Attached {
        /// Its number.
        pub server: u16,
        /// Whether the data of blocks come in parts (see [`super::block_parts`]); else as they are, or beside the connection.
        pub parts: bool,
    }
}

record! {
    /// Before the data of a block. When things happened is in ns, each on the clock of its host; 0 where it did not.
    pub struct BlockHead {
        /// The unit that the client gave it.
        pub unit: u64,
        /// Of which set.
        pub set: u32,
        /// Its number.
        pub number: u64,
        /// Of which list.
        pub serial: u64,
        /// Bytes of data that follow.
        pub length: u32,
        /// CRC-32 of them.
        pub checksum: u32,
        /// Which server sent it, and from which disk.
        pub server: u16,
        /// See `server`.
        pub disk: u16,
        /// Whether it was in memory.
        pub cached: bool,
        /// The application sent its list.
        pub app_send: u64,
        /// The master had it.
        pub master_in: u64,
        /// The master sent it on.
        pub master_out: u64,
        /// The server had it.
        pub server_in: u64,
        /// Reading began.
        pub start_read: u64,
        /// It was in memory and in the write queue.
        pub end_read: u64,
        /// It was handed to the transport.
        pub start_write: u64,
        /// A block that was written before it on this connection, and when the transport had taken that, and with it those
        /// whose writing began at the same moment before it.
        pub before: u64,
        /// See `before`.
        pub before_end_write: u64,
    }
}

/// Bytes of a [`BlockHead`].
pub const BLOCK_HEAD: usize = <BlockHead as super::BlockWireField>::LEAST;

record! {
    /// Server: a block that cannot be sent.
    pub struct BlockFailedNotice {
        /// The unit that the client gave it.
        pub unit: u64,
        /// Of which set.
        pub set: u32,
        /// Its number.
        pub number: u64,
        /// Of which list.
        pub serial: u64,
        /// Why, as one of [`super::message::Why`].
        pub why: u8,
    }
}

record! {
    /// One block that was discarded.
    pub struct Discarded {
        /// Its place in the client's list.
        pub index: u32,
        /// When reading began, in us after the list came; [`NOT_READ`] where it was still to be read.
        pub start_read: u32,
        /// When it was in memory, in us after the list came; see `start_read`.
        pub end_read: u32,
        /// Since when it was next and waited for room in the transport, in us after the list came; see `start_read`.
        pub start_write: u32,
    }
}

/// Of a block that was discarded before it was read.
pub const NOT_READ: u32 = u32::MAX;

record! {
    /// Server: what a newer list discarded.
    pub struct Flushed {
        /// Of which set.
        pub set: u32,
        /// Of which list.
        pub serial: u64,
        /// The unit of that list's first block.
        pub first_unit: u64,
        /// Which server.
        pub server: u16,
        /// As of the list: application, master in, master out; and when the server had it, ns.
        pub stamps: [u64; 3],
        /// See `stamps`.
        pub server_in: u64,
        /// When it was discarded, ns.
        pub at: u64,
        /// What.
        pub blocks: Vec<Discarded>,
    }
}

record! {
    /// Loader: a block to write; its data follow.
    pub struct StoreBlockRequest {
        /// What the loader calls it.
        pub request: u32,
        /// Which disk.
        pub disk: u16,
        /// Bytes before it.
        pub offset: u64,
        /// Bytes of data.
        pub length: u32,
        /// CRC-32 of them.
        pub checksum: u32,
    }
}

record! {
    /// Loader: what was written has to outlast the machine.
    pub struct Sync {
        /// What the loader calls it.
        pub request: u32,
        /// The number of the set that it loads.
        pub set: u32,
    }
}

record! {
    /// Server: it does.
    pub struct Synced {
        /// Which request is answered.
        pub request: u32,
    }
}
