//! The demand of a session: which blocks each of its lists asks for. The lists come from a simulated viewer of a picture, from simple
//! patterns, or from a captured session (tv_sim; Tierney et al. 1996, section 2.1.5).
//!
//! Each list asks for what is needed at its time, whatever was asked before, except the blocks that came and are still kept.

use crate::client::remove_duplicates;
use crate::pyramid_viewer::PyramidViewer;
use crate::set::BlockSet;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use rand_core::Rng;
use stackline_core::random::{Generator, Seed};
use stackline_core::time::Duration;

/// Where the lists come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// The tiles that a simulated viewer of the set's picture needs.
    Viewer(PyramidViewer),
    /// This many blocks per list, in the order of their numbers; after the last block it begins anew with the first.
    Sequential(u32),
    /// This many different blocks per list, at random.
    Random(u32),
    /// Captured lists: when each was sent after the beginning of its session, and its blocks.
    CapturedLists(Vec<(Duration, Vec<u64>)>),
}

/// When lists are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockListSchedule {
    /// The time between two lists; the paper's viewer sends one every 200 ms.
    pub interval: Duration,
    /// For how long lists are sent.
    pub duration: Duration,
}

impl Default for BlockListSchedule {
    fn default() -> Self {
        Self {
            interval: Duration(200_000_000),
            duration: Duration(10_000_000_000),
        }
    }
}

/// The generator of a session's lists.
#[derive(Clone, Debug)]
pub struct Asker {
    demand: Demand,
    schedule: BlockListSchedule,
    generator: Generator,
    /// The number of blocks in the set.
    blocks: u64,
    set: BlockSet,
    /// The next block of [`Demand::Sequential`], before the modulo.
    next_block: u64,
    /// The index of the next list.
    next_list: u64,
    /// The blocks that are kept.
    kept: BTreeSet<u64>,
    /// The kept blocks in the order in which they came: the oldest is dropped first.
    order: VecDeque<u64>,
    /// How many blocks are kept at most.
    keeps: usize,
    /// The largest number of blocks in a list.
    most: usize,
}

impl Asker {
    /// A generator of lists for a set. At most `keeps` blocks are kept; a list has at most `most` blocks. `seed` matters for
    /// [`Demand::Random`].
    #[must_use]
    pub fn new(
        set: &BlockSet,
        demand: Demand,
        schedule: BlockListSchedule,
        keeps: usize,
        most: usize,
        seed: Seed,
    ) -> Self {
        Self {
            demand,
            schedule,
            generator: seed.child("lists").generator(),
            blocks: set.blocks(),
            set: set.clone(),
            next_block: 0,
            next_list: 0,
            kept: BTreeSet::new(),
            order: VecDeque::new(),
            keeps,
            most,
        }
    }

    /// When the next list is due, after the beginning of the session; `None` after the last one.
    #[must_use]
    pub fn next_at(&self) -> Option<Duration> {
        match &self.demand {
            Demand::CapturedLists(lists) => lists.get(self.next_list as usize).map(|(at, _)| *at),
            _ => {
                let at = Duration(self.next_list.saturating_mul(self.schedule.interval.0));
                (at < self.schedule.duration).then_some(at)
            }
        }
    }

    /// The next list: the blocks that are needed and not kept, the most important first.
    pub fn list(&mut self) -> Vec<u64> {
        let at = self.next_at().unwrap_or_default();
        let index = self.next_list;
        self.next_list += 1;
        let needed: Vec<u64> = match &self.demand {
            Demand::Viewer(viewer) => {
                let picture = self.set.picture.as_ref();
                picture.map_or_else(Vec::new, |picture| viewer.needs(picture, at.seconds()))
            }
            Demand::Sequential(count) => {
                let first = self.next_block;
                self.next_block += u64::from(*count);
                (first..first + u64::from(*count))
                    .map(|number| number % self.blocks.max(1))
                    .collect()
            }
            Demand::Random(count) => {
                let mut drawn = BTreeMap::new();
                while drawn.len() < (*count as usize).min(self.blocks as usize) {
                    let number = self.generator.next_u64() % self.blocks.max(1);
                    let place = drawn.len();
                    drawn.entry(number).or_insert(place);
                }
                let mut drawn: Vec<_> = drawn.into_iter().collect();
                drawn.sort_by_key(|(_, place)| *place);
                drawn.into_iter().map(|(number, _)| number).collect()
            }
            Demand::CapturedLists(lists) => lists
                .get(index as usize)
                .map(|(_, blocks)| blocks.clone())
                .unwrap_or_default(),
        };
        remove_duplicates(needed)
            .into_iter()
            .filter(|number| !self.kept.contains(number))
            .take(self.most)
            .collect()
    }

    /// Records that a block came, so that it is kept.
    pub fn came(&mut self, number: u64) {
        if self.keeps == 0 || !self.kept.insert(number) {
            return;
        }
        self.order.push_back(number);
        if self.order.len() > self.keeps
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::BlockPlacementPolicy;
    use alloc::vec;

    fn asker(demand: Demand, keeps: usize) -> Asker {
        let (block_size, placement, picture) = (4096, BlockPlacementPolicy::Hash, None);
        let set = BlockSet {
            name: "a".into(),
            block_size,
            bytes: 10 * 4096,
            replicas: 1,
            placement,
            picture,
        };
        let schedule = BlockListSchedule {
            interval: Duration(200),
            duration: Duration(1000),
        };
        Asker::new(&set, demand, schedule, keeps, 100, Seed::root(1))
    }

    #[test]
    fn lists_come_at_their_times_whatever_happens() {
        let mut asker = asker(Demand::Sequential(4), 0);
        let mut lists = Vec::new();
        while let Some(at) = asker.next_at() {
            lists.push((at.0, asker.list()));
        }
        let times: Vec<_> = lists.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0, 200, 400, 600, 800]);
        assert_eq!(lists[2].1, [8, 9, 0, 1]);
    }

    #[test]
    fn a_list_has_each_block_once() {
        assert_eq!(
            asker(Demand::Sequential(14), 0).list(),
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        );
        let mut trace = asker(
            Demand::CapturedLists(vec![(Duration(0), vec![3, 1, 3, 2, 1])]),
            0,
        );
        assert_eq!(trace.list(), [3, 1, 2]);
    }

    #[test]
    fn drawn_blocks_are_different_and_the_same_for_a_seed() {
        let (mut one, mut other) = (asker(Demand::Random(6), 0), asker(Demand::Random(6), 0));
        let list = one.list();
        assert_eq!(list, other.list());
        assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), 6);
        assert_ne!(list, one.list());
    }

    #[test]
    fn what_is_kept_is_not_asked_for_again() {
        let mut asker = asker(
            Demand::CapturedLists(vec![
                (Duration(0), vec![1, 2, 3]),
                (Duration(5), vec![2, 3, 4]),
            ]),
            2,
        );
        asker.came(1);
        assert_eq!(asker.list(), [2, 3]);
        asker.came(2);
        asker.came(3);
        assert_eq!(asker.next_at(), Some(Duration(5)));
        assert_eq!(asker.list(), [4]);
        assert_eq!(asker.next_at(), None);
    }
}
