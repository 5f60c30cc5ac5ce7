//! A client that also asks for what may be needed next: behind each list of the application go the blocks that a function
//! names, and those that came so are given at once when they are asked for (Tierney et al. 1996, section 2.1).
//!
//! Everything goes in one list that supersedes, so a wrong prediction is discarded with the next one. It keeps blocks of one
//! set; what was asked for and came is the application's to keep.
//!
//! ```no_run
//! # use stackline_blockserver::{client::{Client, Event, Options}, prediction::Predicting};
//! # fn main() -> stackline_core::error::Result<()> {
//! let client = Client::connect("127.0.0.1:7480", Options::default())?;
//! let map = client.open("map")?;
//! let right = |list: &[u64]| list.iter().map(|block| block + 1).collect();
//! let mut viewer = Predicting::new(&client, &map, right);
//! viewer.request(vec![17, 18, 42])?;
//! while let Some(Event::Block(block)) = viewer.next(None) { /* 17, 18, 42 in the order in which they come */ }
//! # Ok(()) }
//! ```

use crate::client::{Block, Client, Event, OpenSet};
use stackline_core::error::Result;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Most blocks that are asked for on suspicion in a list, and that are kept, unless told otherwise.
const MOST: usize = 64;

/// A client of one set with a prediction.
#[derive(Debug)]
pub struct Predicting<'c, P> {
    client: &'c Client,
    set: OpenSet,
    predict: P,
    /// Most predicted blocks of a list, and most that are kept.
    pub most: usize,
    wanted: BTreeSet<u64>,
    kept: BTreeMap<u64, Box<Block>>,
    order: VecDeque<u64>,
    ready: VecDeque<Box<Block>>,
    /// Blocks that were there when they were asked for.
    hits: u64,
    /// Blocks that came and were not wanted at that moment: by prediction, or of an older list.
    unasked: u64,
}

impl<'c, P: FnMut(&[u64]) -> Vec<u64>> Predicting<'c, P> {
    /// `predict` gets each list, and names what may be needed next, the likeliest first.
    pub fn new(client: &'c Client, set: &OpenSet, predict: P) -> Self {
        Self {
            client,
            set: set.clone(),
            predict,
            most: MOST,
            wanted: BTreeSet::new(),
            kept: BTreeMap::new(),
            order: VecDeque::new(),
            ready: VecDeque::new(),
            hits: 0,
            unasked: 0,
        }
    }

    /// Asks for blocks, and behind them for what may be needed next. What is left of the list before is discarded.
    ///
    /// # Errors
    /// As for [`Client::request`].
    pub fn request(&mut self, blocks: Vec<u64>) -> Result<()> {
        let guessed = (self.predict)(&blocks);
        self.ready.clear();
        self.wanted.clear();
        let mut list = Vec::with_capacity(blocks.len());
        for number in blocks {
            if let Some(block) = self.kept.remove(&number) {
                self.order.retain(|kept| *kept != number);
                self.hits += 1;
                self.ready.push_back(block);
            } else if self.wanted.insert(number) {
                list.push(number);
            }
        }
        let end = self.set.about.blocks();
        let new = |number: &u64| *number < end && !self.wanted.contains(number) && !self.kept.contains_key(number);
        list.extend(guessed.into_iter().filter(new).take(self.most));
        self.client.request(self.set.id, list, true).map(|_| ())
    }

    /// What happens next; nothing when the time is over. Blocks that came by prediction are kept, not given.
    pub fn next(&mut self, within: Option<Duration>) -> Option<Event> {
        if let Some(block) = self.ready.pop_front() {
            return Some(Event::Block(block));
        }
        let until = within.map(|within| Instant::now() + within);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match self.client.next(left)? {
                Event::Block(block) if block.head.set == self.set.id && !self.wanted.remove(&block.head.number) => {
                    self.keep(block);
                }
                event => return Some(event),
            }
        }
    }

    fn keep(&mut self, block: Box<Block>) {
        let number = block.head.number;
        self.unasked += 1;
        if self.kept.insert(number, block).is_none() {
            self.order.push_back(number);
        }
        while self.order.len() > self.most {
            if let Some(oldest) = self.order.pop_front() {
                self.kept.remove(&oldest);
            }
        }
    }

    /// Blocks that were there when they were asked for, and all that came without being wanted: by prediction, or of an older list.
    #[must_use]
    pub const fn counts(&self) -> (u64, u64) {
        (self.hits, self.unasked)
    }
}
