//! The record of a session: its score and, if wanted, the histories of all its blocks.

use crate::block_history::{BlockPathPoint, History};
use crate::client::Tally;
use crate::limits;
use crate::score::Score;
use crate::wire::server_messages::{BlockHead, Flushed};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use stackline_core::time::Instant;

/// The record of a session.
#[derive(Clone, Debug, Default)]
pub struct BlockSessionRecord {
    /// The score so far.
    pub score: Score,
    /// What became of each list that is over.
    pub tallies: Vec<Tally>,
    /// The histories of all blocks, in the order in which their end became known; empty if histories are not kept.
    pub histories: Vec<History>,
    /// Whether histories are kept.
    keeps: bool,
    /// The index in `histories` of each block that came, by its unit.
    by_unit: BTreeMap<u64, usize>,
    /// By server: indices in `histories` of blocks that came and whose end of writing is not reported yet.
    awaiting_end_write: BTreeMap<u16, VecDeque<usize>>,
    /// The lists that were sent, by their first unit; empty if histories are not kept.
    lists: BTreeMap<u64, SentListRecord>,
    /// The units of blocks that servers reported as impossible to send.
    failed: BTreeSet<u64>,
}

/// A list of blocks that was sent.
#[derive(Clone, Debug)]
pub struct SentListRecord {
    /// When it was sent.
    pub at: Instant,
    /// The set whose blocks it asks for.
    pub set: u32,
    /// Its serial number among the lists of the session.
    pub serial: u64,
    /// The numbers of the blocks, in the list's order.
    pub blocks: Vec<u64>,
}

/// How many of the newest lists are searched for a block that a server cannot send.
const NEWEST: usize = 8;

impl BlockSessionRecord {
    /// An empty record; `keeps` says whether block histories are kept.
    #[must_use]
    pub fn new(keeps: bool) -> Self {
        Self {
            keeps,
            ..Self::default()
        }
    }

    /// Records that a list was sent; `first_unit` is the unit of its first block.
    pub fn sent(&mut self, first_unit: u64, list: SentListRecord) {
        self.score.sent(list.at, list.blocks.len());
        if self.keeps {
            self.lists.insert(first_unit, list);
        }
    }

    /// Records that a list is over because a newer one superseded it.
    pub fn over(&mut self, tally: Tally) {
        self.score.over(&tally);
        self.tallies.push(tally);
    }

    /// Records that the last list of a set is over because the session ended: its outstanding blocks count as pending.
    pub fn ended(&mut self, tally: Tally) {
        self.score.pending += u64::from(
            tally
                .requested
                .saturating_sub(tally.delivered.saturating_add(tally.missing)),
        );
        self.over(tally);
    }

    /// Records that no server can send a block.
    pub fn failed(&mut self, set: u32, number: u64) {
        let unit = |(first, sent): (&u64, &SentListRecord)| {
            let at = sent
                .blocks
                .iter()
                .position(|known| *known == number)
                .filter(|_| sent.set == set)?;
            Some(first + at as u64)
        };
        let unit = self.lists.iter().rev().take(NEWEST).find_map(unit);
        self.failed.extend(unit);
    }

    /// Records that a block came; `wanted` says whether it was still outstanding.
    pub fn came(&mut self, head: &BlockHead, at: Instant, wanted: bool) {
        let history = History::of_block(head, at);
        self.score.came(&history, wanted);
        if !self.keeps {
            return;
        }
        self.written(head);
        let at = self.histories.len();
        self.by_unit.insert(head.unit, at);
        let awaiting = self.awaiting_end_write.entry(head.server).or_default();
        awaiting.push_back(at);
        if awaiting.len() > limits::MOST_UNREPORTED_WRITES {
            awaiting.pop_front();
        }
        self.histories.push(history);
    }

    /// Takes the end of writing that a block's head reports of an earlier block of the same server. It also holds for the blocks before
    /// that one whose writing began at the same moment.
    fn written(&mut self, head: &BlockHead) {
        let Some(last) = self.by_unit.get(&head.before).copied() else {
            return;
        };
        let Some(start) = self
            .histories
            .get(last)
            .map(|one| one.passed(BlockPathPoint::StartWrite))
        else {
            return;
        };
        let histories = &mut self.histories;
        self.awaiting_end_write
            .entry(head.server)
            .or_default()
            .retain(|at| {
                let one = &mut histories[*at];
                let is_complete = *at <= last && one.passed(BlockPathPoint::StartWrite) == start;
                if is_complete {
                    one.at[BlockPathPoint::EndWrite as usize] =
                        Some(Instant(head.before_end_write));
                }
                !is_complete
            });
    }

    /// Records a server's report of discarded blocks.
    pub fn flushed(&mut self, flushed: &Flushed) {
        let numbers = self
            .lists
            .get(&flushed.first_unit)
            .map(|sent| sent.blocks.clone())
            .unwrap_or_default();
        for history in History::of_flushed(flushed, |index| {
            numbers.get(index as usize).copied().unwrap_or(u64::MAX)
        }) {
            self.score.flushed(&history);
            if self.keeps {
                self.histories.push(history);
            }
        }
    }

    /// The histories of blocks of which neither data nor any report came back.
    #[must_use]
    pub fn unanswered(&self) -> Vec<History> {
        let mut ended: BTreeSet<u64> = self.histories.iter().map(|history| history.unit).collect();
        ended.extend(&self.failed);
        let of_list = |(first, sent): (&u64, &SentListRecord)| {
            let (first, set, serial, at) = (*first, sent.set, sent.serial, sent.at);
            let later = self
                .lists
                .range(first + 1..)
                .find(|(_, list)| list.set == set);
            let given_up = later.map(|(_, list)| list.at);
            let units = sent.blocks.clone().into_iter().zip(first..);
            units
                .map(move |(number, unit)| History {
                    given_up,
                    ..History::unanswered(unit, set, number, serial, at)
                })
                .collect::<Vec<_>>()
        };
        let all = self.lists.iter().flat_map(of_list);
        all.filter(|history| !ended.contains(&history.unit))
            .collect()
    }
}
