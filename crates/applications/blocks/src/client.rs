//! The client's state machine: which blocks are outstanding, which came in time, and which came after they were superseded.
//!
//! It opens no connection and keeps no data. A list that supersedes makes the outstanding blocks of older lists of its set unwanted, unless
//! it names them again; a list that does not supersede is added to them.

use crate::set::BlockSet;
use crate::wire::master_messages::{BlockListRequest, MissingBlocksNotice};
use crate::wire::server_messages::{BlockFailedNotice, BlockHead};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// A block that was asked for and has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutstandingBlock {
    /// The unit of the newest request for it.
    pub unit: u64,
    /// The serial number of the list of that request.
    pub serial: u64,
}

/// What became of one list, with the lists that were added to it, until the next one of its set superseded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The number of the set.
    pub set: u32,
    /// The list's serial number.
    pub serial: u64,
    /// When it was sent.
    pub sent: Instant,
    /// Blocks that it asked for.
    pub requested: u32,
    /// Blocks that came before they were superseded.
    pub delivered: u32,
    /// Delivered blocks that the server had in its cache.
    pub cached: u32,
    /// Bytes of the delivered blocks.
    pub bytes: u64,
    /// Blocks that no server could send.
    pub missing: u32,
    /// The time from sending the list to the arrival of its last delivered block.
    pub last: Duration,
}

/// Whether a block that came was still outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockArrival {
    /// It was outstanding.
    Wanted,
    /// It had been superseded or dropped, or had come already.
    Unwanted,
}

/// What the client knows of one open set.
struct ClientSetState {
    /// The set's description.
    about: BlockSet,
    /// The outstanding blocks, by their numbers.
    outstanding: BTreeMap<u64, OutstandingBlock>,
    /// The counts of the current list; `None` before the first list.
    tally: Option<Tally>,
}

/// The state of one client.
#[derive(Default)]
pub struct BlockClientMachine {
    /// The open sets, by their numbers.
    sets: BTreeMap<u32, ClientSetState>,
    /// The serial number of the newest list; they grow by one.
    serial: u64,
    /// The unit that the next requested block gets.
    next_unit: u64,
    /// Blocks that came unwanted.
    unwanted: u64,
    /// Bytes of the unwanted blocks.
    unwanted_bytes: u64,
}

impl BlockClientMachine {
    /// A client whose units begin with `first_unit`. Several clients of one run use different ranges, so that their units do not collide.
    #[must_use]
    pub fn new(first_unit: u64) -> Self {
        Self {
            next_unit: first_unit,
            ..Self::default()
        }
    }

    /// Records that a set was opened.
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

    /// The description of an open set.
    #[must_use]
    pub fn about(&self, set: u32) -> Option<&BlockSet> {
        self.sets.get(&set).map(|open| &open.about)
    }

    /// The outstanding blocks of a set with their numbers.
    #[must_use]
    pub fn outstanding(&self, set: u32) -> Vec<(u64, OutstandingBlock)> {
        let open = self.sets.get(&set).into_iter();
        open.flat_map(|open| open.outstanding.iter().map(|(number, one)| (*number, *one)))
            .collect()
    }

    /// The number of outstanding blocks of a set.
    #[must_use]
    pub fn waiting(&self, set: u32) -> usize {
        self.sets.get(&set).map_or(0, |open| open.outstanding.len())
    }

    /// The number of blocks that came unwanted, and their bytes.
    #[must_use]
    pub const fn unwanted(&self) -> (u64, u64) {
        (self.unwanted, self.unwanted_bytes)
    }

    /// Builds the message that asks for `blocks`, duplicates removed. Also returns the tally of the list that it supersedes, if any.
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

    /// Ends the current lists of all sets, and returns their tallies.
    pub fn finish(&mut self) -> Vec<Tally> {
        self.sets
            .values_mut()
            .filter_map(|open| open.tally.take())
            .collect()
    }

    /// Records that a whole block came.
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

    /// Handles the master's notice that blocks will not come. Returns those that were outstanding from that list.
    pub fn missing(&mut self, missing: &MissingBlocksNotice) -> Vec<u64> {
        let (set, serial) = (missing.set, Some(missing.serial));
        missing
            .blocks
            .iter()
            .copied()
            .filter(|number| self.drop_block(set, *number, serial))
            .collect()
    }

    /// Handles a server's notice that it cannot send a block. Returns whether the block was outstanding from that list.
    pub fn failed(&mut self, failed: &BlockFailedNotice) -> bool {
        self.drop_block(failed.set, failed.number, Some(failed.serial))
    }

    /// Withdraws an outstanding block, because the caller is about to ask for it elsewhere: it no longer counts as requested. Returns
    /// whether it was outstanding.
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

    /// Gives up an outstanding block, which counts as missing; if `serial` is given, only if the list of that number asked for it. Returns
    /// whether it was given up.
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

/// The blocks in their order, without the second and later occurrences of a number.
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
