//! The queue of events that the application has not taken. Blocks wait for room in it, other events never do.

use super::event::{BlockClientEvent, lock};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The limit on blocks in the queue.
const BLOCKS: usize = 256;

#[derive(Debug, Default)]
struct QueuedBlockEvents {
    /// Each event with its mark: the number of withdrawals of its set when it was known.
    events: VecDeque<(BlockClientEvent, u64)>,
    /// The number of blocks in `events`.
    blocks: usize,
    /// Threads that wait for an event.
    takers: usize,
    /// Threads that wait for room.
    putters: usize,
    /// Whether the client is closed.
    closed: bool,
}

/// The queue of a client's events.
#[derive(Debug, Default)]
pub(super) struct BlockEventQueue {
    waiting: Mutex<QueuedBlockEvents>,
    came: Condvar,
    taken: Condvar,
}

impl BlockEventQueue {
    /// Adds an event. A block waits until there is room, and is dropped once the queue is closed.
    pub(super) fn put(&self, event: BlockClientEvent, mark: u64) {
        self.add(event, mark, BLOCKS);
    }

    /// Adds an event that was taken before. It does not wait for room.
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
        // The waiting thread should find the mutex unlocked; and notifying nobody would cost a system call.
        drop(waiting);
        if is_waited_for {
            self.came.notify_one();
        }
    }

    /// The next event with its mark; `None` if none comes within the time.
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

    /// Closes the queue: nothing is taken any more, and threads that wait for room go on.
    pub(super) fn close(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        waiting.events.clear();
        self.taken.notify_all();
    }
}
