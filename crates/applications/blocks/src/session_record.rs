//! What is kept of a session: its score, and the histories of all its blocks where they are wanted.

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
    /// What it got.
    pub score: Score,
    /// What became of each list.
    pub tallies: Vec<Tally>,
    /// All blocks, where they are wanted, in the order in which their end was known.
    pub histories: Vec<History>,
    keeps: bool,
    by_unit: BTreeMap<u64, usize>,
    /// By server, the newest blocks whose end of writing was not reported yet.
    awaiting_end_write: BTreeMap<u16, VecDeque<usize>>,
    /// Lists by their first unit, where histories are wanted.
    lists: BTreeMap<u64, SentListRecord>,
    /// Units that servers said they cannot send.
    failed: BTreeSet<u64>,
}

/// A list that was sent.
#[derive(Clone, Debug)]
pub struct SentListRecord {
    /// When.
    pub at: Instant,
    /// The set whose blocks it asks for.
    pub set: u32,
    /// Its number among the lists of the session.
    pub serial: u64,
    /// The numbers of its blocks, in its order.
    pub blocks: Vec<u64>,
}

/// A block that cannot be sent is one of the newest so many lists.
const NEWEST: usize = 8;

impl BlockSessionRecord {
    /// With all histories, or without.
    #[must_use]
    pub fn new(keeps: bool) -> Self {
        Self {
            keeps,
            ..Self::default()
        }
    }

    /// A list was sent.
    pub fn sent(&mut self, first_unit: u64, list: SentListRecord) {
        self.score.sent(list.at, list.blocks.len());
        if self.keeps {
            self.lists.insert(first_unit, list);
        }
    }

    /// A list is over.
    pub fn over(&mut self, tally: Tally) {
        self.score.over(&tally);
        self.tallies.push(tally);
    }

    /// The last list of a set is over because the session is.
    pub fn ended(&mut self, tally: Tally) {
        self.score.pending += u64::from(
            tally
                .requested
                .saturating_sub(tally.delivered.saturating_add(tally.missing)),
        );
        self.over(tally);
    }

    /// Servers cannot send a block.
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

    /// A block came.
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

    /// A head tells of an earlier block of its server when the transport had it, and with it those that it was given at the
    /// same moment before.
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

    /// Blocks were discarded.
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

    /// Blocks of which nothing came back, neither they nor a word: they were asked for, and more is not known.
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
