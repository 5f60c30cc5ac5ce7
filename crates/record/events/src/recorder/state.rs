//! What the threads of a process share while it records: whether it does, and the rings that they write into.

use crate::ring::EventRing;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// 0 while nobody records, else what is different for every recorder; its lowest bit says that stamps are ticks.
pub(super) static STATE: AtomicU64 = AtomicU64::new(0);
pub(super) const TICKS: u64 = 1;
/// Records that found no ring.
pub(super) static STRAY: AtomicU64 = AtomicU64::new(0);
pub(super) static RINGS: Mutex<ThreadRings> = Mutex::new(ThreadRings {
    state: 0,
    recorders: 0,
    reader: None,
    rings: Vec::new(),
});

/// The rings of all threads.
#[derive(Debug)]
pub(super) struct ThreadRings {
    /// What [`STATE`] is while these are drained.
    pub(super) state: u64,
    /// How many recorders there were.
    pub(super) recorders: u64,
    pub(super) reader: Option<Thread>,
    pub(super) rings: Vec<Arc<EventRing>>,
}

pub(super) fn rings() -> MutexGuard<'static, ThreadRings> {
    RINGS.lock().unwrap_or_else(PoisonError::into_inner)
}
