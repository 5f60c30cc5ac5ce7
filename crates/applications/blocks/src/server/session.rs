//! The state of one user session at one disk server: blocks to read, by disk, blocks to write, and messages to send.

use crate::limits;
use crate::wire::message::Message;
use crate::wire::server_messages::BlockListEntry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use stackline_core::time::Instant;

/// What the blocks of one list have in common. The fields are those of
/// [`ServerBlockRequests`](crate::wire::server_messages::ServerBlockRequests).
#[derive(Debug)]
pub(crate) struct ListHead {
    pub(crate) set: u32,
    pub(crate) serial: u64,
    pub(crate) first_unit: u64,
    pub(crate) report: bool,
    pub(crate) stamps: [u64; 3],
    /// When the list came.
    pub(crate) server_in: Instant,
}

/// A block of a list that is still to be sent.
#[derive(Clone, Debug)]
pub(crate) struct WantedBlock {
    pub(crate) list: Arc<ListHead>,
    pub(crate) entry: BlockListEntry,
}

/// A block that is in memory and waits to be written.
#[derive(Debug)]
pub(crate) struct ReadyBlock<B> {
    pub(crate) wanted: WantedBlock,
    pub(crate) block: B,
    /// Whether it came from the cache; then both times are those of finding it there.
    pub(crate) cached: bool,
    pub(crate) start_read: Instant,
    pub(crate) end_read: Instant,
}

/// A block that a transport was given and has not taken yet.
#[derive(Debug)]
pub(crate) struct BlockBeingWritten<B> {
    pub(crate) ready: ReadyBlock<B>,
    /// When its writing began.
    pub(crate) start: Instant,
    /// The earlier block whose end of writing its head reports.
    pub(crate) before: Option<WrittenBlock>,
    /// When a newer list first superseded it. If it has been begun, it is still sent unless it is cut off.
    pub(crate) superseded: Option<Instant>,
    /// Whether the newest of those lists asks for it again: then the rest of it is still wanted.
    pub(crate) asked_again: bool,
}

/// A block that a transport has taken. It stands also for the blocks given to the transport at the same moment before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenBlock {
    pub(crate) unit: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// The state of one session.
#[derive(Debug)]
pub(crate) struct DiskServerSession<B> {
    /// The connection for its blocks, and the age (ns after its list came) at which a block is dropped.
    pub(crate) attached: Option<(u64, Option<u64>)>,
    /// The serial number of the newest superseding list of each set; 0 where there is none.
    pub(crate) newest: BTreeMap<u32, u64>,
    /// Blocks to read, by disk.
    pub(crate) to_read: BTreeMap<u16, VecDeque<WantedBlock>>,
    /// Blocks to write, in their order.
    pub(crate) to_write: VecDeque<ReadyBlock<B>>,
    /// Bytes of blocks in `to_write`.
    pub(crate) write_bytes: u64,
    /// Messages that are sent before the next block.
    pub(crate) words: VecDeque<Message>,
    /// The number of blocks in `to_read` and being read.
    pub(crate) pending: usize,
    /// Blocks that a transport was given and has not taken yet.
    pub(crate) writing: VecDeque<BlockBeingWritten<B>>,
    /// Since when the next block has waited for room in the transport.
    pub(crate) waits: Option<Instant>,
    /// Blocks that were written and whose end of writing is not reported yet.
    pub(crate) written: VecDeque<WrittenBlock>,
}

impl<B> Default for DiskServerSession<B> {
    fn default() -> Self {
        Self {
            attached: None,
            newest: BTreeMap::new(),
            to_read: BTreeMap::new(),
            to_write: VecDeque::new(),
            write_bytes: 0,
            words: VecDeque::new(),
            pending: 0,
            writing: VecDeque::new(),
            waits: None,
            written: VecDeque::new(),
        }
    }
}

impl<B> ReadyBlock<B> {
    /// The unit that the client gave this request.
    pub(crate) fn unit(&self) -> u64 {
        // The client chose both numbers, so the sum may overflow: it wraps.
        self.wanted
            .list
            .first_unit
            .wrapping_add(self.wanted.entry.index.into())
    }
}

impl<B> DiskServerSession<B> {
    /// Whether a block of `length` bytes may be added to those that wait for this client, while `all` bytes wait for all clients. A client
    /// may have as much waiting as is still free for others (dynamic thresholds; Choudhury and Hahne 1998), but half of all space is kept
    /// for clients for which nothing waits.
    pub(crate) fn has_room(&self, length: u32, all: u64) -> bool {
        let (left, length) = (limits::WRITE_QUEUES.saturating_sub(all), u64::from(length));
        let is_within = self.write_bytes < limits::WRITE_QUEUE
            && self.to_write.len() < limits::MOST_REQUESTED_BLOCKS;
        let shared = left.saturating_sub(limits::WRITE_QUEUES / 2);
        is_within
            && length <= left
            && (self.write_bytes == 0 || self.write_bytes + length <= shared)
    }

    /// Adds a block to those to be written, and returns its bytes.
    pub(crate) fn push(&mut self, ready: ReadyBlock<B>) -> u64 {
        let bytes = u64::from(ready.wanted.entry.length);
        self.write_bytes += bytes;
        self.to_write.push_back(ready);
        bytes
    }

    /// Takes the next block to write.
    pub(crate) fn pop(&mut self) -> Option<ReadyBlock<B>> {
        let ready = self.to_write.pop_front()?;
        self.write_bytes -= u64::from(ready.wanted.entry.length);
        Some(ready)
    }
}
