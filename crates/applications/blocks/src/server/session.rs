//! What one user session wants of one server: blocks to read, by disk; blocks to write; words to say.

use crate::limits;
use crate::wire::message::Message;
use crate::wire::server_messages::BlockListEntry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use stackline_core::time::Instant;

/// What the blocks of one list have in common.
#[derive(Debug)]
pub(crate) struct ListHead {
    pub(crate) set: u32,
    pub(crate) serial: u64,
    pub(crate) first_unit: u64,
    pub(crate) report: bool,
    pub(crate) stamps: [u64; 3],
    pub(crate) server_in: Instant,
}

/// A block that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct WantedBlock {
    pub(crate) list: Arc<ListHead>,
    pub(crate) entry: BlockListEntry,
}

/// A block that is in memory and wanted.
#[derive(Debug)]
pub(crate) struct ReadyBlock<B> {
    pub(crate) wanted: WantedBlock,
    pub(crate) block: B,
    pub(crate) cached: bool,
    pub(crate) start_read: Instant,
    pub(crate) end_read: Instant,
}

/// A block that a transport was given.
#[derive(Debug)]
pub(crate) struct BlockBeingWritten<B> {
    pub(crate) ready: ReadyBlock<B>,
    pub(crate) start: Instant,
    /// What was reported with it.
    pub(crate) before: Option<WrittenBlock>,
    /// When a newer list came that discards it, unless it has been begun and is not cut off.
    pub(crate) superseded: Option<Instant>,
    /// Whether the newest of those lists asks for it again: what has been begun of it is of use.
    pub(crate) asked_again: bool,
}

/// A block that a transport has, and with it those that it was given at the same moment before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenBlock {
    pub(crate) unit: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// One session.
#[derive(Debug)]
pub(crate) struct DiskServerSession<B> {
    /// The connection its blocks go over, and after what age they are dropped.
    pub(crate) attached: Option<(u64, Option<u64>)>,
    /// Of each set the newest list that superseded others; 0 where none did.
    pub(crate) newest: BTreeMap<u32, u64>,
    /// By disk.
    pub(crate) to_read: BTreeMap<u16, VecDeque<WantedBlock>>,
    pub(crate) to_write: VecDeque<ReadyBlock<B>>,
    /// Bytes of blocks in `to_write`.
    pub(crate) write_bytes: u64,
    /// Messages that it gets between blocks.
    pub(crate) words: VecDeque<Message>,
    /// Blocks in `to_read` and being read.
    pub(crate) pending: usize,
    /// What a transport was given and has not taken yet.
    pub(crate) writing: VecDeque<BlockBeingWritten<B>>,
    /// Since when what is next waits for room in the transport.
    pub(crate) waits: Option<Instant>,
    /// What was written and was not reported yet.
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
    /// The unit that the client gave it.
    pub(crate) fn unit(&self) -> u64 {
        // Both are the client's: what it numbers beyond the end begins anew.
        self.wanted
            .list
            .first_unit
            .wrapping_add(self.wanted.entry.index.into())
    }
}

impl<B> DiskServerSession<B> {
    /// Whether a block of so many bytes may come to wait for this client, where so many bytes wait for all: each may have as much as is left
    /// for others (Choudhury and Hahne 1998), but half is for those for whom nothing waits.
    pub(crate) fn has_room(&self, length: u32, all: u64) -> bool {
        let (left, length) = (limits::WRITE_QUEUES.saturating_sub(all), u64::from(length));
        let is_within = self.write_bytes < limits::WRITE_QUEUE
            && self.to_write.len() < limits::MOST_REQUESTED_BLOCKS;
        let shared = left.saturating_sub(limits::WRITE_QUEUES / 2);
        is_within
            && length <= left
            && (self.write_bytes == 0 || self.write_bytes + length <= shared)
    }

    /// A block is ready to be written; how many bytes more wait now.
    pub(crate) fn push(&mut self, ready: ReadyBlock<B>) -> u64 {
        let bytes = u64::from(ready.wanted.entry.length);
        self.write_bytes += bytes;
        self.to_write.push_back(ready);
        bytes
    }

    /// The next block to write.
    pub(crate) fn pop(&mut self) -> Option<ReadyBlock<B>> {
        let ready = self.to_write.pop_front()?;
        self.write_bytes -= u64::from(ready.wanted.entry.length);
        Some(ready)
    }
}
