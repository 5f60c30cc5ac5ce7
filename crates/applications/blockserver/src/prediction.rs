//! A client that also asks for what may be needed next: behind each list of the application go the blocks that a function
//! names, and those that came so are given at once when they are asked for (Tierney et al. 1996, section 2.1).
//!
//! Everything goes in one list that supersedes, so a wrong prediction is discarded with the next one. It keeps blocks of one
//! set; what was asked for and came is the application's to keep.
//!
//! ```no_run
//! # use stackline_blockserver::{client::{BlockClient, BlockClientEvent, BlockClientOptions}, prediction::Predicting};
//! # fn main() -> stackline_core::error::Result<()> {
//! let client = BlockClient::connect("127.0.0.1:7480", BlockClientOptions::default())?;
//! let map = client.open("map")?;
//! let right = |list: &[u64]| list.iter().map(|block| block + 1).collect();
//! let mut viewer = Predicting::new(&client, &map, right);
//! viewer.request(vec![17, 18, 42])?;
//! while let Some(BlockClientEvent::Block(block)) = viewer.next(None) { /* 17, 18, 42 in the order in which they come */ }
//! # Ok(()) }
//! ```

use crate::client::{BlockClient, BlockClientEvent, OpenSet, ReceivedBlock};
use stackline_core::error::Result;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Most blocks that are asked for on suspicion in a list, and that are kept, unless chosen otherwise.
const MOST: usize = 64;

/// What may be needed next of one set, and what of it came.
#[derive(Debug)]
pub struct BlockPrediction<P> {
    set: OpenSet,
    predict: P,
    /// Most predicted blocks of a list, and most that are kept.
    pub most: usize,
    wanted: BTreeSet<u64>,
    kept: BTreeMap<u64, Box<ReceivedBlock>>,
    order: VecDeque<u64>,
    /// Blocks that were there when they were asked for.
    hits: u64,
    /// Blocks that came and were not wanted at that moment: by prediction, or of an older list.
    unasked: u64,
}

impl<P: FnMut(&[u64]) -> Vec<u64>> BlockPrediction<P> {
    /// `predict` gets each list, and names what may be needed next, the likeliest first.
    pub fn new(set: &OpenSet, predict: P) -> Self {
        Self {
            set: set.clone(),
            predict,
            most: MOST,
            wanted: BTreeSet::new(),
            kept: BTreeMap::new(),
            order: VecDeque::new(),
            hits: 0,
            unasked: 0,
        }
    }

    /// Blocks are wanted: the list to ask for, which supersedes, and what of them is there already.
    pub fn list(&mut self, blocks: Vec<u64>) -> (Vec<u64>, Vec<Box<ReceivedBlock>>) {
        let guessed = (self.predict)(&blocks);
        self.wanted.clear();
        let (mut list, mut there) = (Vec::with_capacity(blocks.len()), Vec::new());
        for number in blocks
            .into_iter()
            .filter(|number| self.wanted.insert(*number))
        {
            match self.kept.remove(&number) {
                Some(block) => {
                    self.order.retain(|kept| *kept != number);
                    self.hits += 1;
                    there.push(block);
                }
                None => list.push(number),
            }
        }
        let end = self.set.about.blocks();
        let new = |number: &u64| {
            *number < end && !self.wanted.contains(number) && !self.kept.contains_key(number)
        };
        list.extend(guessed.into_iter().filter(new).take(self.most));
        (list, there)
    }

    /// A block of the set came: it is given where it is wanted, and kept where not.
    pub fn came(&mut self, block: Box<ReceivedBlock>) -> Option<Box<ReceivedBlock>> {
        let number = block.head.number;
        if self.wanted.remove(&number) {
            return Some(block);
        }
        self.unasked += 1;
        if self.kept.insert(number, block).is_none() {
            self.order.push_back(number);
        }
        while self.order.len() > self.most {
            if let Some(oldest) = self.order.pop_front() {
                self.kept.remove(&oldest);
            }
        }
        None
    }

    /// Blocks that were there when they were asked for, and all that came without being wanted: by prediction, or of an older list.
    #[must_use]
    pub const fn counts(&self) -> (u64, u64) {
        (self.hits, self.unasked)
    }
}

/// A client of one set with a prediction.
#[derive(Debug)]
pub struct Predicting<'c, P> {
    client: &'c BlockClient,
    /// What it asks for beside what is wanted.
    pub prediction: BlockPrediction<P>,
}

impl<'c, P: FnMut(&[u64]) -> Vec<u64>> Predicting<'c, P> {
    /// As [`BlockPrediction::new`].
    pub fn new(client: &'c BlockClient, set: &OpenSet, predict: P) -> Self {
        Self {
            client,
            prediction: BlockPrediction::new(set, predict),
        }
    }

    /// Asks for blocks, and behind them for what may be needed next. What is left of the list before is discarded.
    ///
    /// # Errors
    /// As for [`BlockClient::request`].
    pub fn request(&mut self, blocks: Vec<u64>) -> Result<()> {
        let (list, there) = self.prediction.list(blocks);
        there
            .into_iter()
            .for_each(|block| self.client.give_back(block));
        self.client
            .request(self.prediction.set.id, list, true)
            .map(|_| ())
    }

    /// What happens next; nothing when the time is over. Blocks that came by prediction are kept, not given.
    pub fn next(&mut self, within: Option<Duration>) -> Option<BlockClientEvent> {
        let until = within.map(|within| Instant::now() + within);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match self.client.next(left)? {
                BlockClientEvent::Block(block) if block.head.set == self.prediction.set.id => {
                    if let Some(block) = self.prediction.came(block) {
                        return Some(BlockClientEvent::Block(block));
                    }
                }
                event => return Some(event),
            }
        }
    }

    /// As [`BlockPrediction::counts`].
    #[must_use]
    pub const fn counts(&self) -> (u64, u64) {
        self.prediction.counts()
    }
}
