//! What happened and was not taken yet: blocks wait for room, words never do.

use super::event::{BlockClientEvent, lock};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most blocks that wait to be taken.
const BLOCKS: usize = 256;

#[derive(Debug, Default)]
struct QueuedBlockEvents {
    /// Each with what it was put with.
    events: VecDeque<(BlockClientEvent, u64)>,
    blocks: usize,
    /// Who waits for an event, and who for room.
    takers: usize,
    putters: usize,
    closed: bool,
}

/// Events of a client.
#[derive(Debug, Default)]
pub(super) struct BlockEventQueue {
    waiting: Mutex<QueuedBlockEvents>,
    came: Condvar,
    taken: Condvar,
}

impl BlockEventQueue {
    /// Adds an event; a block waits until there is room, and is dropped when nobody takes any more.
    pub(super) fn put(&self, event: BlockClientEvent, mark: u64) {
        self.add(event, mark, BLOCKS);
    }

    /// Adds an event that was taken before; it waits for nothing.
    pub(super) fn put_again(&self, event: BlockClientEvent, mark: u64) {
        self.add(event, mark, usize::MAX);
    }

    fn add(&self, event: BlockClientEvent, mark: u64, most: usize) {
        let mut waiting = lock(&self.waiting);
        if matches!(event, BlockClientEvent::Block(_)) {
            while waiting.blocks >= most && !waiting.closed {
                waiting.putters += 1;
                waiting = self
                    .taken
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
                waiting.putters -= 1;
            }
            waiting.blocks += 1;
        }
        if waiting.closed {
            return;
        }
        waiting.events.push_back((event, mark));
        let is_waited_for = waiting.takers > 0;
        // Whoever wakes finds it unlocked; waking nobody would be a system call as well.
        drop(waiting);
        if is_waited_for {
            self.came.notify_one();
        }
    }

    /// The next event, with what it was put with; nothing when the time is over.
    pub(super) fn take(&self, within: Option<Duration>) -> Option<(BlockClientEvent, u64)> {
        let until = within.map(|within| Instant::now() + within);
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some((event, mark)) = waiting.events.pop_front() {
                if matches!(event, BlockClientEvent::Block(_)) {
                    waiting.blocks -= 1;
                    if waiting.putters > 0 {
                        self.taken.notify_one();
                    }
                }
                return Some((event, mark));
            }
            waiting.takers += 1;
            waiting = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self
                    .came
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    self.came
                        .wait_timeout(waiting, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
            waiting.takers -= 1;
            if waiting.events.is_empty() && until.is_some_and(|until| until <= Instant::now()) {
                return None;
            }
        }
    }

    /// Nobody takes any more.
    pub(super) fn close(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        waiting.events.clear();
        self.taken.notify_all();
    }
}
