//! All messages by their kinds.

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
        /// A message.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message { $($(#[$doc])* $name($body),)* }

        impl Message {
            /// Its kind.
            #[must_use]
            pub const fn kind(&self) -> u8 {
                match self { $(Self::$name(_) => $kind,)* }
            }

            /// Reads one of that kind from all of these bytes.
            ///
            /// # Errors
            /// [`MalformedBlockMessage`].
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
    /// The connecting side begins.
    Hello(BlockHello) = 1,
    /// The accepting side answers.
    Welcome(Welcome) = 2,
    /// The connecting side proves the key.
    Prove(Prove) = 3,
    /// Something is not done.
    Refused(BlockRequestRefused) = 4,
    /// Something is done.
    Done(BlockRequestDone) = 5,
    /// A set is to be read.
    Open(OpenSetRequest) = 16,
    /// It may be.
    Opened(OpenSetReply) = 17,
    /// It is no longer read.
    Close(Close) = 18,
    /// Blocks that are wanted.
    List(BlockListRequest) = 19,
    /// Those that will not come.
    Missing(MissingBlocksNotice) = 20,
    /// Where blocks are?
    Map(Map) = 21,
    /// There.
    Mapped(Mapped) = 22,
    /// What is there?
    Ask(Ask) = 23,
    /// This.
    Inventory(BlockInventoryReply) = 24,
    /// A server came or went.
    Changed(Changed) = 25,
    /// A set was deleted.
    Gone(Gone) = 26,
    /// A set is to be written.
    Create(Create) = 32,
    /// It may be.
    Created(Created) = 33,
    /// Where blocks are to be put?
    Reserve(Reserve) = 34,
    /// There.
    Reserved(Reserved) = 35,
    /// Blocks are written.
    Commit(Commit) = 36,
    /// A set is to be forgotten.
    Delete(Delete) = 37,
    /// A server is there.
    Join(Join) = 48,
    /// It is known.
    Joined(DiskServerJoined) = 49,
    /// One of its disks came or went.
    DiskChanged(DiskChanged) = 50,
    /// A session is over.
    Forget(Forget) = 51,
    /// A server is still there.
    Alive(Alive) = 52,
    /// What a session wants of a server.
    Requests(ServerBlockRequests) = 64,
    /// Where its blocks go.
    Attach(Attach) = 65,
    /// So it is.
    Attached(Attached) = 66,
    /// A block; its data follow behind the message.
    BlockHead(BlockHead) = 67,
    /// A block that cannot be sent.
    Failed(BlockFailedNotice) = 68,
    /// What was discarded.
    Flushed(Flushed) = 69,
    /// A block to write; its data follow behind the message.
    Store(StoreBlockRequest) = 70,
    /// What was written is to last.
    Sync(Sync) = 71,
    /// It does.
    Synced(Synced) = 72,
}

impl Message {
    /// Appends the whole message.
    pub fn put(&self, to: &mut Vec<u8>) {
        let at = to.len();
        to.extend_from_slice(&[0; HEAD - 1]);
        self.kind().put(to);
        self.put_body(to);
        let length = (to.len() - at - (HEAD - 1)) as u32;
        to[at..at + HEAD - 1].copy_from_slice(&length.to_be_bytes());
    }

    /// Bytes of memory that it takes while it waits, about, and no fewer than it has on its way.
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

    /// The whole message.
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

/// Length of what follows the first four bytes, from them.
///
/// # Errors
/// [`MalformedBlockMessage`] where it is longer than `most`, or empty.
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

/// Bytes of data that follow a message.
#[must_use]
pub const fn data_behind(message: &Message) -> u32 {
    match message {
        Message::BlockHead(head) => head.length,
        Message::Store(store) => store.length,
        _ => 0,
    }
}

/// Whether the lists in it are no longer than they may be.
///
/// # Errors
/// [`MalformedBlockMessage`] that names the field.
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

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The other side speaks another version.
    Version,
    /// What was sent is no message, or none that belongs here.
    Malformed,
    /// The key is missing or wrong.
    Key,
    /// No set has that name or number.
    NoSet,
    /// The set has no such block, or it was not written.
    NoBlock,
    /// No server that is up has it.
    NoServer,
    /// The disk is gone, or reading failed.
    Disk,
    /// The block is not what was written.
    Corrupt,
    /// There is no room.
    Full,
    /// Somebody else loads it, or it is there already.
    Busy,
    /// More than is allowed at once.
    Limit,
    /// No session has that number.
    NoSession,
    /// A disk belongs to another master, or holds more than this one remembers.
    Foreign,
    /// The master cannot write down what it has to remember.
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

    /// Of its number; one that a newer program sent is [`Why::Malformed`].
    #[must_use]
    pub fn of(number: u8) -> Self {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .unwrap_or(Self::Malformed)
    }

    /// As part of a sentence about a block or set.
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

/// How blocks travel from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDataTransport {
    /// On the connection that asked.
    Tcp,
    /// In datagrams, none of them sent again.
    Udp,
    /// The same with RTP's headers (RFC 3550).
    Rtp,
    /// Heads on the connection, data as blasts beside it (Zwaenepoel 1985).
    Blast,
}

stackline_core::named_values!(BlockDataTransport,
    Tcp = "tcp", "On one connection per server";
    Udp = "udp", "In datagrams, without retransmission";
    Rtp = "rtp", "Like udp, with RTP headers";
    Blast = "blast", "Each block as a blast, retransmitted until it arrives");

impl BlockDataTransport {
    /// Of its number.
    ///
    /// # Errors
    /// [`MalformedBlockMessage`].
    pub const fn of(number: u8) -> Result<Self, MalformedBlockMessage> {
        match number {
            0 => Ok(Self::Tcp),
            1 => Ok(Self::Udp),
            2 => Ok(Self::Rtp),
            3 => Ok(Self::Blast),
            _ => Err(Fault::Field("transport")),
        }
    }
}
