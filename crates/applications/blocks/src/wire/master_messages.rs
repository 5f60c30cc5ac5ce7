//! Messages between a client, a loader or a disk server and the master.

use super::codec::record;
use super::server_messages::{BlockListEntry, DiskInfo, ServerBlockRequests};
use crate::set::BlockSet;
use alloc::string::String;
use alloc::vec::Vec;

record! {
    /// The place of one copy of a block.
    pub struct BlockCopyLocation {
        /// The server's number.
        pub server: u16,
        /// The number of the disk on that server.
        pub disk: u16,
        /// Bytes from the beginning of the disk.
        pub offset: u64,
    }
}

record! {
    /// The places of a block, and the checksum of its data.
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
        /// The address on which it listens.
        pub address: String,
        /// Whether it is up.
        pub up: bool,
        /// Its disks.
        pub disks: Vec<DiskInfo>,
    }
}

record! {
    /// Client to master: open a set for reading.
    pub struct OpenSetRequest {
        /// The client's number for this request; the answer repeats it.
        pub request: u32,
        /// The set's name.
        pub name: String,
    }
}

record! {
    /// Master: the set is open.
    pub struct OpenSetReply {
        /// The number of the request that is answered.
        pub request: u32,
        /// The session number. It cannot be guessed: whoever knows it can receive the session's blocks.
        pub session: u128,
        /// The identity of the master. Together with the set's number, which the master never uses again, it identifies the data.
        pub master: u128,
        /// The set's number.
        pub set: u32,
        /// The set's description.
        pub about: BlockSet,
        /// The servers to connect to.
        pub servers: Vec<ServerInfo>,
    }
}

record! {
    /// Client to master: close a set.
    pub struct Close {
        /// The set's number.
        pub set: u32,
    }
}

record! {
    /// Client to master: a list of wanted blocks.
    pub struct BlockListRequest {
        /// The number of their set.
        pub set: u32,
        /// The serial number of the list, higher than that of every earlier list of the client.
        pub serial: u64,
        /// Whether it discards what older lists of this set left pending.
        pub supersedes: bool,
        /// Whether the servers report what they discard of it.
        pub report: bool,
        /// The unit of the first block; those of the others follow consecutively.
        pub first_unit: u64,
        /// When the application sent it, ns of the client's clock.
        pub app_send: u64,
        /// The numbers of the blocks.
        pub blocks: Vec<u64>,
    }
}

impl BlockListRequest {
    /// The part of this list for one server.
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
    /// Master to client: blocks of a list that no server will send.
    pub struct MissingBlocksNotice {
        /// The number of their set.
        pub set: u32,
        /// The serial number of the list.
        pub serial: u64,
        /// The reason, a number of [`super::message::Why`].
        pub why: u8,
        /// The numbers of the blocks.
        pub blocks: Vec<u64>,
    }
}

record! {
    /// Client to master: where are these blocks?
    pub struct Map {
        /// The client's number for this request.
        pub request: u32,
        /// The number of the set.
        pub set: u32,
        /// The number of the first block.
        pub first: u64,
        /// The largest number of blocks to answer.
        pub count: u32,
    }
}

record! {
    /// Master: the places of blocks; a row without places is a block that is not written.
    pub struct Mapped {
        /// The number of the request that is answered.
        pub request: u32,
        /// The number of the set.
        pub set: u32,
        /// The number of the first block.
        pub first: u64,
        /// One row for each block.
        pub rows: Vec<BlockMapEntry>,
    }
}

record! {
    /// Client to master: which sets and servers are there?
    pub struct Ask {
        /// The client's number for this request.
        pub request: u32,
    }
}

record! {
    /// A set as `blocks list` shows it.
    pub struct SetInfo {
        /// The set's description.
        pub about: BlockSet,
        /// The number of blocks that are written.
        pub written: u64,
        /// The number of blocks of which a running server has a copy.
        pub reachable: u64,
        /// Whether loading has ended with all blocks written.
        pub sealed: bool,
    }
}

record! {
    /// Master: all sets and servers.
    pub struct BlockInventoryReply {
        /// The number of the request that is answered.
        pub request: u32,
        /// All sets.
        pub sets: Vec<SetInfo>,
        /// All servers.
        pub servers: Vec<ServerInfo>,
    }
}

record! {
    /// Master to clients: a server came, changed or went.
    pub struct Changed {
        /// The server as it is from now on.
        pub server: ServerInfo,
    }
}

record! {
    /// Loader to master: create a set, or go on loading it.
    pub struct Create {
        /// The loader's number for this request.
        pub request: u32,
        /// The set's description.
        pub about: BlockSet,
    }
}

record! {
    /// Master: the set may be loaded by this connection, and by no other as long as the connection lives.
    pub struct Created {
        /// The number of the request that is answered.
        pub request: u32,
        /// The set's number.
        pub set: u32,
        /// The number of blocks that an earlier, interrupted load has committed.
        pub written: u64,
        /// The servers to connect to.
        pub servers: Vec<ServerInfo>,
    }
}

record! {
    /// Loader to master: reserve places for blocks.
    pub struct Reserve {
        /// The loader's number for this request.
        pub request: u32,
        /// The number of the set.
        pub set: u32,
        /// The numbers of the blocks.
        pub blocks: Vec<u64>,
        /// If the set's placement is [`BlockPlacementPolicy::Given`](crate::placement::BlockPlacementPolicy::Given): the disk of each
        /// block, counted over the disks of all servers.
        pub given: Vec<u32>,
    }
}

record! {
    /// Master: the reserved places.
    pub struct Reserved {
        /// The number of the request that is answered.
        pub request: u32,
        /// One row for each block.
        pub rows: Vec<BlockMapEntry>,
    }
}

record! {
    /// A block that is on its disks.
    pub struct CommittedBlock {
        /// The number of the block.
        pub number: u64,
        /// The places of its copies, and its checksum.
        pub row: BlockMapEntry,
    }
}

record! {
    /// Loader to master: blocks are on their disks.
    pub struct Commit {
        /// The loader's number for this request.
        pub request: u32,
        /// The number of the set.
        pub set: u32,
        /// The blocks.
        pub blocks: Vec<CommittedBlock>,
        /// Whether the set is complete with them.
        pub seal: bool,
    }
}

record! {
    /// Loader to master: delete a set.
    pub struct Delete {
        /// The loader's number for this request.
        pub request: u32,
        /// The set's name.
        pub name: String,
    }
}

record! {
    /// Master to clients that have it open: a set was deleted.
    pub struct Gone {
        /// The number of the set.
        pub set: u32,
    }
}

record! {
    /// Master: the request is done, and its effect is stored durably.
    pub struct BlockRequestDone {
        /// The number of the request that is answered.
        pub request: u32,
    }
}

record! {
    /// A request, or the whole connection, is refused.
    pub struct BlockRequestRefused {
        /// The number of the request; 0: the whole connection is refused.
        pub request: u32,
        /// The reason, a number of [`super::message::Why`].
        pub why: u8,
        /// The reason in words.
        pub words: String,
    }
}

record! {
    /// What the first page of a disk says about its owner.
    pub struct DiskOwnerRecord {
        /// The identity of its master; 0 if there is none yet, or the page is of a version that stored none.
        pub master: u128,
        /// The end of the space that holds blocks, bytes.
        pub used: u64,
        /// The highest number of a set of which the disk has held blocks.
        pub last_set: u32,
    }
}

record! {
    /// Disk server to master: it wants to join.
    pub struct Join {
        /// Its name, which stays the same when it is started again.
        pub name: String,
        /// The address on which it listens; the master completes an address without a host.
        pub address: String,
        /// Its disks.
        pub disks: Vec<DiskInfo>,
        /// The owner record of each disk.
        pub kept: Vec<DiskOwnerRecord>,
        /// Whether the master should take the disks over, whoever owns them.
        pub adopt: bool,
    }
}

record! {
    /// Master: the disk server has joined. It stores the master's identity on its disks before a block is written to them.
    pub struct DiskServerJoined {
        /// Its number.
        pub server: u16,
        /// The identity of the master.
        pub master: u128,
    }
}

record! {
    /// Disk server to master: a disk is gone, is there again, or became read-only.
    pub struct DiskChanged {
        /// The number of the disk on that server.
        pub disk: u16,
        /// Whether the disk is there.
        pub up: bool,
        /// Whether it can be written.
        pub writable: bool,
    }
}

record! {
    /// Disk server to master, every two seconds: it is still alive.
    pub struct Alive {
        /// For each disk, the number of damaged copies found since the server was started.
        pub damaged: Vec<u64>,
    }
}

record! {
    /// Master to disk servers: a session is over.
    pub struct Forget {
        /// The session number.
        pub session: u128,
    }
}
