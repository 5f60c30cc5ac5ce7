//! A client that also requests what may be needed next. Each list of the application is followed by the blocks that a function predicts.
//! Predicted blocks that came are kept, and given out at once when they are requested (Tierney et al. 1996, section 2.1).
//!
//! Wanted and predicted blocks go in one superseding list, so a wrong prediction is discarded by the next list. A prediction is for one
//! set. Blocks that the application requested and received are not kept here.
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

/// The limit on predicted blocks in a list, and on blocks that are kept, by default.
const MOST: usize = 64;

/// The prediction for one set, with the predicted blocks that came.
#[derive(Debug)]
pub struct BlockPrediction<P> {
    set: OpenSet,
    predict: P,
    /// The limit on predicted blocks in a list, and on blocks that are kept.
    pub most: usize,
    /// Blocks that the application waits for.
    wanted: BTreeSet<u64>,
    /// Blocks that came and are not wanted yet.
    kept: BTreeMap<u64, Box<ReceivedBlock>>,
    /// The numbers of the kept blocks, the oldest first.
    order: VecDeque<u64>,
    /// Blocks that were kept when they were requested.
    hits: u64,
    /// Blocks that came when they were not wanted: predicted ones, or of an older list.
    unasked: u64,
}

impl<P: FnMut(&[u64]) -> Vec<u64>> BlockPrediction<P> {
    /// `predict` is given each list, and returns the blocks that may be needed next, the likeliest first.
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

    /// Handles a request of the application. Returns the superseding list to send, and the requested blocks that are kept already.
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

    /// Handles a block that came: returns it if it is wanted, otherwise keeps it.
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

    /// The number of blocks that were kept when they were requested, and of blocks that came when they were not wanted.
    #[must_use]
    pub const fn counts(&self) -> (u64, u64) {
        (self.hits, self.unasked)
    }
}

/// A client of one set with a prediction.
#[derive(Debug)]
pub struct Predicting<'c, P> {
    client: &'c BlockClient,
    /// The prediction for the set.
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

    /// Requests blocks, followed by the predicted ones. What is pending of the previous list is discarded.
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

    /// The next event; `None` if none comes within the time. Blocks that were only predicted are kept, not returned.
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
