//! The events of a client.

use stackline_blocks::wire::message::Why;
use stackline_blocks::wire::server_messages::{BlockHead, Flushed};
use stackline_core::time::Instant;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A block that came.
#[derive(Clone, Debug)]
pub struct ReceivedBlock {
    /// The block's head: what it is, and its time stamps.
    pub head: BlockHead,
    /// The block's data; empty if the client discards data.
    pub data: Vec<u8>,
    /// When the whole block had come.
    pub at: Instant,
    /// Whether it was still wanted.
    pub wanted: bool,
}

/// An event of a client.
#[derive(Clone, Debug)]
pub enum BlockClientEvent {
    /// A block came.
    Block(Box<ReceivedBlock>),
    /// A block will not come.
    Failed {
        /// The number of the set.
        set: u32,
        /// The number of the block in the set.
        number: u64,
        /// The reason.
        why: Why,
    },
    /// A newer list discarded blocks of an older one.
    Flushed(Flushed),
    /// A server was lost, or cannot be reached.
    ServerGone {
        /// Its name.
        name: String,
        /// Why, in words.
        words: String,
    },
    /// A server that was reported as gone has been reached.
    ServerCame {
        /// Its name.
        name: String,
    },
    /// The master is gone; open sets can still be read.
    MasterGone,
}

/// Locks a mutex, also if a thread panicked while holding it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
