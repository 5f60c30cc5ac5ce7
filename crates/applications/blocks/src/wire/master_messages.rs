//! Between a client, a loader or a disk server and the master.

use super::codec::record;
use super::server_messages::{BlockListEntry, DiskInfo, ServerBlockRequests};
use crate::set::BlockSet;
use alloc::string::String;
use alloc::vec::Vec;

record! {
    /// Where one copy of a block is.
    pub struct BlockCopyLocation {
        /// The server's number.
        pub server: u16,
        /// Which of its disks.
        pub disk: u16,
        /// Bytes before it.
        pub offset: u64,
    }
}

record! {
    /// Where a block is, and what it has to contain.
    pub struct BlockMapEntry {
        /// CRC-32 of its data.
        pub checksum: u32,
        /// Its copies; the first is preferred.
        pub places: Vec<BlockCopyLocation>,
    }
}

record! {
    /// A disk server as clients see it.
    pub struct ServerInfo {
        /// Its number.
        pub id: u16,
        /// Its name.
        pub name: String,
        /// Where it listens.
        pub address: String,
        /// Whether it is there.
        pub up: bool,
        /// Its disks.
        pub disks: Vec<DiskInfo>,
    }
}

record! {
    /// Client: a set is to be read.
    pub struct OpenSetRequest {
        /// What the client calls it.
        pub request: u32,
        /// The set's name.
        pub name: String,
    }
}

record! {
    /// Master: the set may be read.
    pub struct OpenSetReply {
        /// Which request is answered.
        pub request: u32,
        /// The user session, not to be guessed: whoever knows it receives its blocks.
        pub session: u128,
        /// Who the master is: with the set's number, which it never uses again, this distinguishes what is read from all else.
        pub master: u128,
        /// The set's number.
        pub set: u32,
        /// What it is.
        pub about: BlockSet,
        /// The servers to connect to.
        pub servers: Vec<ServerInfo>,
    }
}

record! {
    /// Client: a set is no longer read.
    pub struct Close {
        /// The set's number.
        pub set: u32,
    }
}

record! {
    /// Client: blocks that are wanted.
    pub struct BlockListRequest {
        /// Of which set.
        pub set: u32,
        /// Higher than that of every list before.
        pub serial: u64,
        /// Whether what is pending of this set is discarded.
        pub supersedes: bool,
        /// Whether the servers tell what they discard.
        pub report: bool,
        /// The unit of the first block; those of the others follow.
        pub first_unit: u64,
        /// When the application sent it, ns of its clock.
        pub app_send: u64,
        /// The blocks.
        pub blocks: Vec<u64>,
    }
}

impl BlockListRequest {
    /// What one server is asked for of this list.
    #[must_use]
    pub const fn for_server(
        &self,
        session: u128,
        stamps: [u64; 3],
        entries: Vec<BlockListEntry>,
    ) -> ServerBlockRequests {
        ServerBlockRequests {
            session,
            set: self.set,
            serial: self.serial,
            supersedes: self.supersedes,
            report: self.report,
            first_unit: self.first_unit,
            stamps,
            entries,
        }
    }
}

record! {
    /// Master: blocks of a list that no server will send.
    pub struct MissingBlocksNotice {
        /// Of which set.
        pub set: u32,
        /// Of which list.
        pub serial: u64,
        /// Why, as one of [`super::message::Why`].
        pub why: u8,
        /// Which.
        pub blocks: Vec<u64>,
    }
}

record! {
    /// Client: where blocks are.
    pub struct Map {
        /// What the client calls it.
        pub request: u32,
        /// Of which set.
        pub set: u32,
        /// From which block on.
        pub first: u64,
        /// How many, at most.
        pub count: u32,
    }
}

record! {
    /// Master: where blocks are; an empty row is one that was not written.
    pub struct Mapped {
        /// Which request is answered.
        pub request: u32,
        /// Of which set.
        pub set: u32,
        /// From which block on.
        pub first: u64,
        /// One a block.
        pub rows: Vec<BlockMapEntry>,
    }
}

record! {
    /// Client: what there is.
    pub struct Ask {
        /// What the client calls it.
        pub request: u32,
    }
}

record! {
    /// A set as `blocks list` shows it.
    pub struct SetInfo {
        /// What it is.
        pub about: BlockSet,
        /// Blocks that are there.
        pub written: u64,
        /// Blocks of which a server that is up has a copy.
        pub reachable: u64,
        /// Whether it is whole.
        pub sealed: bool,
    }
}

record! {
    /// Master: what there is.
    pub struct BlockInventoryReply {
        /// Which request is answered.
        pub request: u32,
        /// All sets.
        pub sets: Vec<SetInfo>,
        /// All servers.
        pub servers: Vec<ServerInfo>,
    }
}

record! {
    /// Master: a server came or went.
    pub struct Changed {
        /// The server.
        pub server: ServerInfo,
    }
}

record! {
    /// Loader: a set is to be written.
    pub struct Create {
        /// What the loader calls it.
        pub request: u32,
        /// What it is.
        pub about: BlockSet,
    }
}

record! {
    /// Master: it may be written by this connection, and by no other while that one lives.
    pub struct Created {
        /// Which request is answered.
        pub request: u32,
        /// The set's number.
        pub set: u32,
        /// Blocks that an earlier loader that was ended has committed.
        pub written: u64,
        /// The servers to connect to.
        pub servers: Vec<ServerInfo>,
    }
}

record! {
    /// Loader: where blocks are to be put.
    pub struct Reserve {
        /// What the loader calls it.
        pub request: u32,
        /// Of which set.
        pub set: u32,
        /// The blocks.
        pub blocks: Vec<u64>,
        /// Where the loader says it: one disk a block, counted over all disks.
        pub given: Vec<u32>,
    }
}

record! {
    /// Master: there.
    pub struct Reserved {
        /// Which request is answered.
        pub request: u32,
        /// One a block.
        pub rows: Vec<BlockMapEntry>,
    }
}

record! {
    /// One block that is on its disks.
    pub struct CommittedBlock {
        /// The block.
        pub number: u64,
        /// Where, and its checksum.
        pub row: BlockMapEntry,
    }
}

record! {
    /// Loader: blocks that are on their disks.
    pub struct Commit {
        /// What the loader calls it.
        pub request: u32,
        /// Of which set.
        pub set: u32,
        /// The blocks.
        pub blocks: Vec<CommittedBlock>,
        /// Whether the set is whole.
        pub seal: bool,
    }
}

record! {
    /// Loader: a set is to be forgotten.
    pub struct Delete {
        /// What the loader calls it.
        pub request: u32,
        /// The set's name.
        pub name: String,
    }
}

record! {
    /// Master, to those who have it open: a set was deleted.
    pub struct Gone {
        /// Its number.
        pub set: u32,
    }
}

record! {
    /// Master: what was asked for is done, and outlasts the master.
    pub struct BlockRequestDone {
        /// Which request is answered.
        pub request: u32,
    }
}

record! {
    /// What was asked for is not done.
    pub struct BlockRequestRefused {
        /// Which request is answered; 0: all of the connection.
        pub request: u32,
        /// Why, as one of [`super::message::Why`].
        pub why: u8,
        /// In words.
        pub words: String,
    }
}

record! {
    /// What the first page of a disk keeps of whose it is.
    pub struct DiskOwnerRecord {
        /// The identity of its master; 0: nobody's yet, or of a version that kept none.
        pub master: u128,
        /// Up to where it holds blocks, bytes.
        pub used: u64,
        /// The highest number of a set of which it has held blocks.
        pub last_set: u32,
    }
}

record! {
    /// Server: it is there.
    pub struct Join {
        /// Its name: the same after it was started again.
        pub name: String,
        /// Where it listens; an address without a host is completed by the master.
        pub address: String,
        /// Its disks.
        pub disks: Vec<DiskInfo>,
        /// Of each disk, whose it is.
        pub kept: Vec<DiskOwnerRecord>,
        /// Whether the master takes them over whosever they are.
        pub adopt: bool,
    }
}

record! {
    /// Master: it is known. Its disks keep whose they are before a block is written to them.
    pub struct DiskServerJoined {
        /// Its number.
        pub server: u16,
        /// Who the master is.
        pub master: u128,
    }
}

record! {
    /// Server: a disk is gone, or is there again.
    pub struct DiskChanged {
        /// Which.
        pub disk: u16,
        /// Whether it is there.
        pub up: bool,
        /// Whether it can be written.
        pub writable: bool,
    }
}

record! {
    /// Server, every other second: it is still there.
    pub struct Alive {
        /// Of each disk, copies that were found to be damaged since the server was started.
        pub damaged: Vec<u64>,
    }
}

record! {
    /// Master: a session is over.
    pub struct Forget {
        /// Which.
        pub session: u128,
    }
}
