//! The enum of all messages, with their kinds, encoding and decoding.

use super::HEAD;
use super::MalformedBlockMessage as Fault;
use super::codec::{BlockWireField, BlockWireReader, MalformedBlockMessage};
use super::handshake::{BlockHello, Prove, Welcome};
use super::master_messages::{
    Alive, Ask, BlockCopyLocation, BlockInventoryReply, BlockListRequest, BlockMapEntry,
    BlockRequestDone, BlockRequestRefused, Changed, Close, Commit, CommittedBlock, Create, Created,
    Delete, DiskChanged, DiskServerJoined, Forget, Gone, Join, Map, Mapped, MissingBlocksNotice,
    OpenSetReply, OpenSetRequest, Reserve, Reserved, ServerInfo, SetInfo,
};
use super::server_messages::{
    Attach, Attached, BlockFailedNotice, BlockHead, BlockListEntry, Discarded, DiskInfo, Flushed,
    ServerBlockRequests, StoreBlockRequest, Sync, Synced,
};
use crate::limits;
use alloc::vec::Vec;

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident($body:ident) = $kind:literal,)*) => {
        /// A message between client, master and disk server.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message { $($(#[$doc])* $name($body),)* }

        impl Message {
            /// The number of its kind on the wire.
            #[must_use]
            pub const fn kind(&self) -> u8 {
                match self { $(Self::$name(_) => $kind,)* }
            }

            /// Decodes a message of that kind. `body` has to be consumed completely.
            ///
            /// # Errors
            /// [`MalformedBlockMessage`] if the kind is unknown or the body is not of this kind.
            pub fn read(kind: u8, body: &[u8]) -> Result<Self, MalformedBlockMessage> {
                let mut from = BlockWireReader::new(body);
                let message = match kind {
                    $($kind => Self::$name($body::take(&mut from)?),)*
                    kind => return Err(Fault::Kind(kind)),
                };
                from.end()?;
                Ok(message)
            }

            fn put_body(&self, to: &mut Vec<u8>) {
                match self { $(Self::$name(body) => body.put(to),)* }
            }
        }

        $(impl From<$body> for Message {
            fn from(body: $body) -> Self {
                Self::$name(body)
            }
        })*
    };
}

messages! {
    /// The first message of the connecting side.
    Hello(BlockHello) = 1,
    /// The first message of the accepting side.
    Welcome(Welcome) = 2,
    /// The connecting side's proof that it holds the key.
    Prove(Prove) = 3,
    /// A request is refused, or the connection is.
    Refused(BlockRequestRefused) = 4,
    /// A request is done.
    Done(BlockRequestDone) = 5,
    /// Client to master: open a set for reading.
    Open(OpenSetRequest) = 16,
    /// Master: the set is open.
    Opened(OpenSetReply) = 17,
    /// Client to master: close a set.
    Close(Close) = 18,
    /// Client to master: a list of wanted blocks.
    List(BlockListRequest) = 19,
    /// Master to client: blocks of a list that will not come.
    Missing(MissingBlocksNotice) = 20,
    /// Client to master: where are these blocks?
    Map(Map) = 21,
    /// Master: the places of the blocks.
    Mapped(Mapped) = 22,
    /// Client to master: which sets and servers are there?
    Ask(Ask) = 23,
    /// Master: all sets and servers.
    Inventory(BlockInventoryReply) = 24,
    /// Master to clients: a server came, changed or went.
    Changed(Changed) = 25,
    /// Master to clients: a set was deleted.
    Gone(Gone) = 26,
    /// Loader to master: create a set, or go on loading it.
    Create(Create) = 32,
    /// Master: the set may be loaded.
    Created(Created) = 33,
    /// Loader to master: reserve places for blocks.
    Reserve(Reserve) = 34,
    /// Master: the reserved places.
    Reserved(Reserved) = 35,
    /// Loader to master: blocks are on their disks.
    Commit(Commit) = 36,
    /// Loader to master: delete a set.
    Delete(Delete) = 37,
    /// Disk server to master: join.
    Join(Join) = 48,
    /// Master: the disk server has joined.
    Joined(DiskServerJoined) = 49,
    /// Disk server to master: one of its disks came or went.
    DiskChanged(DiskChanged) = 50,
    /// Master to disk servers: a session is over.
    Forget(Forget) = 51,
    /// Disk server to master: it is still alive.
    Alive(Alive) = 52,
    /// Master or client to disk server: a list of wanted blocks with their places.
    Requests(ServerBlockRequests) = 64,
    /// Client to disk server: the session's blocks go over this connection.
    Attach(Attach) = 65,
    /// Disk server: the session is attached.
    Attached(Attached) = 66,
    /// Disk server to client: the head of a block, whose data follows the message.
    BlockHead(BlockHead) = 67,
    /// Disk server to client: a block that cannot be sent.
    Failed(BlockFailedNotice) = 68,
    /// Disk server to client: blocks that a newer list discarded.
    Flushed(Flushed) = 69,
    /// Loader to disk server: write a block, whose data follows the message.
    Store(StoreBlockRequest) = 70,
    /// Loader to disk server: make what was written durable.
    Sync(Sync) = 71,
    /// Disk server: what was written is durable.
    Synced(Synced) = 72,
}

impl Message {
    /// Appends the message: length, kind and body.
    pub fn put(&self, to: &mut Vec<u8>) {
        let at = to.len();
        to.extend_from_slice(&[0; HEAD - 1]);
        self.kind().put(to);
        self.put_body(to);
        // The length counts what follows it.
        let length = (to.len() - at - (HEAD - 1)) as u32;
        to[at..at + HEAD - 1].copy_from_slice(&length.to_be_bytes());
    }

    /// The approximate memory that it takes while it waits, bytes; never less than its length on the wire.
    #[must_use]
    pub fn weight(&self) -> u64 {
        let rows = |rows: &[BlockMapEntry]| rows.iter().map(row).sum::<usize>();
        let row = |block: &CommittedBlock| size_of::<CommittedBlock>() + row(&block.row);
        let lists = match self {
            Self::Opened(opened) => servers(&opened.servers),
            Self::Created(created) => servers(&created.servers),
            Self::Changed(changed) => servers(core::slice::from_ref(&changed.server)),
            Self::Inventory(inventory) => {
                let sets = inventory
                    .sets
                    .iter()
                    .map(|set| size_of::<SetInfo>() + set.about.name.len());
                sets.sum::<usize>() + servers(&inventory.servers)
            }
            Self::Mapped(mapped) => rows(&mapped.rows),
            Self::Reserved(reserved) => rows(&reserved.rows),
            Self::Commit(commit) => commit.blocks.iter().map(row).sum(),
            Self::Reserve(reserve) => 8 * reserve.blocks.len() + 4 * reserve.given.len(),
            Self::Missing(missing) => 8 * missing.blocks.len(),
            Self::List(list) => 8 * list.blocks.len(),
            Self::Requests(list) => size_of::<BlockListEntry>() * list.entries.len(),
            Self::Flushed(flushed) => size_of::<Discarded>() * flushed.blocks.len(),
            Self::Refused(refused) => refused.words.len(),
            Self::Join(join) => 48 * join.disks.len() + join.disks.iter().map(disk).sum::<usize>(),
            _ => 0,
        };
        (size_of::<Self>() + lists) as u64
    }

    /// The message as bytes: length, kind and body.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }
}

fn row(row: &BlockMapEntry) -> usize {
    size_of::<BlockMapEntry>() + size_of::<BlockCopyLocation>() * row.places.len()
}

fn disk(disk: &DiskInfo) -> usize {
    size_of::<DiskInfo>() + disk.path.len()
}

fn servers(servers: &[ServerInfo]) -> usize {
    let one = |server: &ServerInfo| {
        let texts = server.name.len() + server.address.len();
        size_of::<ServerInfo>() + texts + server.disks.iter().map(disk).sum::<usize>()
    };
    servers.iter().map(one).sum()
}

/// Decodes the first four bytes of a message: the length of kind and body, bytes.
///
/// # Errors
/// [`MalformedBlockMessage`] if the length is 0 or more than `most`.
pub fn parse_message_length(
    first: [u8; HEAD - 1],
    most: usize,
) -> Result<usize, MalformedBlockMessage> {
    let length = u32::from_be_bytes(first) as usize;
    if length == 0 || length > most {
        Err(MalformedBlockMessage::Field("length"))
    } else {
        Ok(length)
    }
}

/// Bytes of block data that follow a message.
#[must_use]
pub const fn data_behind(message: &Message) -> u32 {
    match message {
        Message::BlockHead(head) => head.length,
        Message::Store(store) => store.length,
        _ => 0,
    }
}

/// Checks that the lists in a message are not longer than [`limits`] allows.
///
/// # Errors
/// [`MalformedBlockMessage`] if one is.
pub fn check_message_bounds(message: &Message) -> Result<(), MalformedBlockMessage> {
    let within = match message {
        Message::List(list) => list.blocks.len() <= limits::LONGEST_LIST,
        Message::Requests(list) => list.entries.len() <= limits::LONGEST_LIST,
        Message::Reserve(reserve) => reserve.blocks.len() <= limits::LONGEST_BATCH,
        Message::Commit(commit) => commit.blocks.len() <= limits::LONGEST_BATCH,
        Message::Map(map) => map.count as usize <= limits::LONGEST_BATCH,
        Message::Join(join) => {
            !join.disks.is_empty()
                && join.disks.len() <= limits::MOST_DISKS
                && join.kept.len() == join.disks.len()
        }
        Message::Alive(alive) => alive.damaged.len() <= limits::MOST_DISKS,
        Message::BlockHead(_) | Message::Store(_) => data_behind(message) <= limits::BLOCK_SIZES.1,
        _ => true,
    };
    if within {
        Ok(())
    } else {
        Err(Fault::Field("list"))
    }
}

/// The reasons for which a request is refused or a block does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The other side speaks another version.
    Version,
    /// The bytes are not a message, or not one that is allowed here.
    Malformed,
    /// The key is missing or wrong.
    Key,
    /// No set has that name or number.
    NoSet,
    /// The set has no such block, or it was not written.
    NoBlock,
    /// No running server has the block.
    NoServer,
    /// The disk is gone, or the read failed.
    Disk,
    /// The data read differs from the data written: its checksum is wrong.
    Corrupt,
    /// There is no space left.
    Full,
    /// Somebody else loads the set, or it exists already.
    Busy,
    /// More was asked for than is allowed at once.
    Limit,
    /// No session has that number.
    NoSession,
    /// A disk belongs to another master, or holds more than this one remembers.
    Foreign,
    /// The master cannot store what it has to remember.
    Memory,
}

impl Why {
    const ALL: [Self; 14] = [
        Self::Version,
        Self::Malformed,
        Self::Key,
        Self::NoSet,
        Self::NoBlock,
        Self::NoServer,
        Self::Disk,
        Self::Corrupt,
        Self::Full,
        Self::Busy,
        Self::Limit,
        Self::NoSession,
        Self::Foreign,
        Self::Memory,
    ];

    /// The reason with that number; [`Why::Malformed`] for a number that only a newer program knows.
    #[must_use]
    pub fn from_number(number: u8) -> Self {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .unwrap_or(Self::Malformed)
    }

    /// The reason as part of a sentence about a block or set.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Version => "the peer speaks a different protocol version",
            Self::Malformed => "a message was not understood",
            Self::Key => "the key is missing or wrong",
            Self::NoSet => "unknown set",
            Self::NoBlock => "the set has no such block",
            Self::NoServer => "no running server has it",
            Self::Disk => "its disk cannot be read",
            Self::Corrupt => "the block read differs from the one written",
            Self::Full => "no space is left",
            Self::Busy => "it is being loaded by another client, or already exists",
            Self::Limit => "too much was requested at once",
            Self::NoSession => "the session is over",
            Self::Memory => "the master cannot save its data",
            Self::Foreign => "its disk belongs to another master",
        }
    }
}

/// How a disk server sends the data of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDataTransport {
    /// On the TCP connection of the session.
    Tcp,
    /// In UDP datagrams, without retransmission.
    Udp,
    /// In UDP datagrams with RTP headers (RFC 3550), without retransmission.
    Rtp,
    /// Heads on the TCP connection, data as blasts beside it (Zwaenepoel 1985).
    Blast,
}

stackline_core::named_values!(BlockDataTransport,
    Tcp = "tcp", "On one connection per server";
    Udp = "udp", "In datagrams, without retransmission";
    Rtp = "rtp", "Like udp, with RTP headers";
    Blast = "blast", "Each block as a blast, retransmitted until it arrives");

impl BlockDataTransport {
    /// The transport with that number.
    ///
    /// # Errors
    /// [`MalformedBlockMessage`] if there is none.
    pub const fn from_number(number: u8) -> Result<Self, MalformedBlockMessage> {
        match number {
            0 => Ok(Self::Tcp),
            1 => Ok(Self::Udp),
            2 => Ok(Self::Rtp),
            3 => Ok(Self::Blast),
            _ => Err(Fault::Field("transport")),
        }
    }
}
