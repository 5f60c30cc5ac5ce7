//! What a client knows of the blocks it asked for: which are outstanding, which came in time, which came for nothing.
//!
//! It opens no connection and keeps no data. A list that supersedes makes the blocks of older lists of its set unwanted,
//! unless it names them again; a list that does not is added to them.

use crate::set::BlockSet;
use crate::wire::master_messages::{BlockListRequest, MissingBlocksNotice};
use crate::wire::server_messages::{BlockFailedNotice, BlockHead};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// A block that was asked for and has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutstandingBlock {
    /// The unit of its newest request.
    pub unit: u64,
    /// Of which list that was.
    pub serial: u64,
}

/// What became of one list until the next one of its set superseded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Of which set.
    pub set: u32,
    /// The list's serial number.
    pub serial: u64,
    /// When it was sent.
    pub sent: Instant,
    /// Blocks it asked for.
    pub requested: u32,
    /// Those that came before they were superseded.
    pub delivered: u32,
    /// Those of them that came from a server's memory.
    pub cached: u32,
    /// Bytes of those that came.
    pub bytes: u64,
    /// Those that no server could send.
    pub missing: u32,
    /// When the last of them came, after the list was sent.
    pub last: Duration,
}

/// What an arrived block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockArrival {
    /// It was outstanding.
    Wanted,
    /// It had been superseded, or had come already.
    Unwanted,
}

struct ClientSetState {
    about: BlockSet,
    outstanding: BTreeMap<u64, OutstandingBlock>,
    tally: Option<Tally>,
}

/// A client.
#[derive(Default)]
pub struct BlockClientMachine {
    sets: BTreeMap<u32, ClientSetState>,
    serial: u64,
    next_unit: u64,
    unwanted: u64,
    unwanted_bytes: u64,
}

impl BlockClientMachine {
    /// Whose units begin with that number: several clients of one run number their blocks apart.
    #[must_use]
    pub fn new(first_unit: u64) -> Self {
        Self {
            next_unit: first_unit,
            ..Self::default()
        }
    }

    /// A set was opened.
    pub fn opened(&mut self, set: u32, about: BlockSet) {
        self.sets.insert(
            set,
            ClientSetState {
                about,
                outstanding: BTreeMap::new(),
                tally: None,
            },
        );
    }

    /// What a set is.
    #[must_use]
    pub fn about(&self, set: u32) -> Option<&BlockSet> {
        self.sets.get(&set).map(|open| &open.about)
    }

    /// Blocks of a set that are wanted and have not come.
    #[must_use]
    pub fn outstanding(&self, set: u32) -> Vec<(u64, OutstandingBlock)> {
        let open = self.sets.get(&set).into_iter();
        open.flat_map(|open| open.outstanding.iter().map(|(number, one)| (*number, *one)))
            .collect()
    }

    /// How many blocks of a set are wanted and have not come.
    #[must_use]
    pub fn waiting(&self, set: u32) -> usize {
        self.sets.get(&set).map_or(0, |open| open.outstanding.len())
    }

    /// Blocks that came and were not wanted any more, and their bytes.
    #[must_use]
    pub const fn unwanted(&self) -> (u64, u64) {
        (self.unwanted, self.unwanted_bytes)
    }

    /// The message that asks for blocks, each once; what became of the list that it supersedes.
    pub fn request(
        &mut self,
        now: Instant,
        set: u32,
        blocks: Vec<u64>,
        supersedes: bool,
        report: bool,
    ) -> (BlockListRequest, Option<Tally>) {
        let blocks = remove_duplicates(blocks);
        self.serial += 1;
        let (serial, first_unit) = (self.serial, self.next_unit);
        self.next_unit += blocks.len() as u64;
        let mut before = None;
        if let Some(open) = self.sets.get_mut(&set) {
            let requested = blocks.len() as u32;
            if supersedes {
                open.outstanding.clear();
                before = open.tally.take();
            }
            match &mut open.tally {
                Some(tally) => tally.requested += requested,
                None => open.tally = Some(Tally::new(set, serial, now, requested)),
            }
            let units = first_unit..;
            let new = blocks
                .iter()
                .zip(units)
                .map(|(number, unit)| (*number, OutstandingBlock { unit, serial }));
            open.outstanding.extend(new);
        }
        (
            BlockListRequest {
                set,
                serial,
                supersedes,
                report,
                first_unit,
                app_send: now.0,
                blocks,
            },
            before,
        )
    }

    /// The last lists of all sets are over.
    pub fn finish(&mut self) -> Vec<Tally> {
        self.sets
            .values_mut()
            .filter_map(|open| open.tally.take())
            .collect()
    }

    /// A block came whole.
    pub fn arrived(&mut self, now: Instant, head: &BlockHead) -> BlockArrival {
        let open = self.sets.get_mut(&head.set);
        let found = open
            .and_then(|open| Some((open.outstanding.remove(&head.number)?, open.tally.as_mut())));
        let Some((_, tally)) = found else {
            self.unwanted += 1;
            self.unwanted_bytes += u64::from(head.length);
            return BlockArrival::Unwanted;
        };
        if let Some(tally) = tally {
            tally.delivered += 1;
            tally.cached += u32::from(head.cached);
            tally.bytes += u64::from(head.length);
            tally.last = now.since(tally.sent);
        }
        BlockArrival::Wanted
    }

    /// The master says that blocks will not come; those of them that were wanted.
    pub fn missing(&mut self, missing: &MissingBlocksNotice) -> Vec<u64> {
        let (set, serial) = (missing.set, Some(missing.serial));
        missing
            .blocks
            .iter()
            .copied()
            .filter(|number| self.drop_block(set, *number, serial))
            .collect()
    }

    /// A server says that a block will not come; whether it was wanted.
    pub fn failed(&mut self, failed: &BlockFailedNotice) -> bool {
        self.drop_block(failed.set, failed.number, Some(failed.serial))
    }

    /// A block is no longer waited for, since it is about to be asked for elsewhere; whether it was.
    pub fn take_back(&mut self, set: u32, number: u64) -> bool {
        let Some(open) = self.sets.get_mut(&set) else {
            return false;
        };
        let was_wanted = open.outstanding.remove(&number).is_some();
        if let Some(tally) = open.tally.as_mut().filter(|_| was_wanted) {
            tally.requested = tally.requested.saturating_sub(1);
        }
        was_wanted
    }

    /// A block is no longer waited for; whether it was.
    pub fn drop_block(&mut self, set: u32, number: u64, serial: Option<u64>) -> bool {
        let Some(open) = self.sets.get_mut(&set) else {
            return false;
        };
        let newest = open
            .outstanding
            .get(&number)
            .is_some_and(|one| serial.is_none_or(|serial| one.serial == serial));
        if newest {
            open.outstanding.remove(&number);
            if let Some(tally) = &mut open.tally {
                tally.missing += 1;
            }
        }
        newest
    }
}

/// Blocks in their order, each once.
#[must_use]
pub fn remove_duplicates(mut blocks: Vec<u64>) -> Vec<u64> {
    if !blocks.is_sorted_by(|one, next| one < next) {
        let mut known = BTreeSet::new();
        blocks.retain(|number| known.insert(*number));
    }
    blocks
}

impl Tally {
    const fn new(set: u32, serial: u64, sent: Instant, requested: u32) -> Self {
        let (delivered, cached, bytes, missing) = (0, 0, 0, 0);
        Self {
            set,
            serial,
            sent,
            requested,
            delivered,
            cached,
            bytes,
            missing,
            last: Duration::ZERO,
        }
    }
}
