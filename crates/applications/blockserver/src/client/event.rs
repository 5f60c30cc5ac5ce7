//! What happens to a client.

use stackline_blocks::wire::message::Why;
use stackline_blocks::wire::server_messages::{BlockHead, Flushed};
use stackline_core::time::Instant;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A block that came.
#[derive(Clone, Debug)]
pub struct ReceivedBlock {
    /// What it is, and when it passed which point.
    pub head: BlockHead,
    /// Its bytes; none where they are thrown away.
    pub data: Vec<u8>,
    /// When it had come whole.
    pub at: Instant,
    /// Whether it was still wanted.
    pub wanted: bool,
}

/// What happens to a client.
#[derive(Clone, Debug)]
pub enum BlockClientEvent {
    /// A block came.
    Block(Box<ReceivedBlock>),
    /// A block will not come.
    Failed {
        /// Of which set.
        set: u32,
        /// Its number.
        number: u64,
        /// Why.
        why: Why,
    },
    /// A newer list discarded blocks of an older one.
    Flushed(Flushed),
    /// A server is gone.
    ServerGone {
        /// Its name.
        name: String,
        /// Why.
        words: String,
    },
    /// A server is there.
    ServerCame {
        /// Its name.
        name: String,
    },
    /// The master is gone; sets that are open are read on.
    MasterGone,
}

/// Locks what a thread that panicked may have left.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
