//! What the threads of a process share: whether a recorder runs, and the rings that they write into.

use crate::ring::EventRing;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// 0 while no recorder runs, otherwise a number that differs for every recorder; [`TICKS`] is its lowest bit.
pub(super) static STATE: AtomicU64 = AtomicU64::new(0);
/// The bit of [`STATE`] that says that stamps are ticks of the processor's counter.
pub(super) const TICKS: u64 = 1;
/// Number of records that found no ring.
pub(super) static STRAY: AtomicU64 = AtomicU64::new(0);
/// The rings of all threads.
pub(super) static RINGS: Mutex<ThreadRings> = Mutex::new(ThreadRings {
    state: 0,
    recorders: 0,
    reader: None,
    rings: Vec::new(),
});

/// The rings of all threads.
#[derive(Debug)]
pub(super) struct ThreadRings {
    /// The value of [`STATE`] while these rings are drained.
    pub(super) state: u64,
    /// Number of recorders started in this process.
    pub(super) recorders: u64,
    /// The draining thread, which writers wake when a ring is half full.
    pub(super) reader: Option<Thread>,
    pub(super) rings: Vec<Arc<EventRing>>,
}

/// Locks the rings.
pub(super) fn rings() -> MutexGuard<'static, ThreadRings> {
    RINGS.lock().unwrap_or_else(PoisonError::into_inner)
}
