//! What happened and was not taken yet: blocks wait for room, words never do.

use super::event::{Event, lock};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most blocks that wait to be taken.
const BLOCKS: usize = 256;

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    blocks: usize,
    closed: bool,
}

/// Events of a client.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    came: Condvar,
    taken: Condvar,
}

impl Queue {
    /// Adds an event; a block waits until there is room, and is dropped when nobody takes any more.
    pub(super) fn put(&self, event: Event) {
        let mut waiting = lock(&self.waiting);
        if matches!(event, Event::Block(_)) {
            while waiting.blocks >= BLOCKS && !waiting.closed {
                waiting = self.taken.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            waiting.blocks += 1;
        }
        if !waiting.closed {
            waiting.events.push_back(event);
            self.came.notify_one();
        }
    }

    /// The next event; nothing when the time is over.
    pub(super) fn take(&self, within: Option<Duration>) -> Option<Event> {
        let until = within.map(|within| Instant::now() + within);
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(event) = waiting.events.pop_front() {
                if matches!(event, Event::Block(_)) {
                    waiting.blocks -= 1;
                    self.taken.notify_one();
                }
                return Some(event);
            }
            waiting = match until {
                None => self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    self.came.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
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
