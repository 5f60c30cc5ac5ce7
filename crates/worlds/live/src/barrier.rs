//! The barrier that the threads of a job wait at before they start their clocks.

use crate::cancel::LiveCancelFlags;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use std::sync::{Condvar, Mutex, PoisonError};

/// A barrier that opens once, by command, and stays open.
#[derive(Debug, Default)]
pub struct Barrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BarrierState {
    /// How many endpoints have arrived.
    waiting: u32,
    open: bool,
}

impl Barrier {
    /// Arrives and blocks until the barrier is opened.
    ///
    /// # Errors
    /// [`Error::interrupted`] when the job was ended.
    pub fn wait(&self, flags: &LiveCancelFlags) -> Result<()> {
        self.arrive();
        self.wait_open(flags)
    }

    /// Counts one more arrival, without blocking.
    pub fn arrive(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .waiting += 1;
        self.changed.notify_all();
    }

    /// Whether the barrier was opened.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .open
    }

    /// Blocks until the barrier is opened, without counting an arrival: for a thread whose endpoints have all arrived.
    ///
    /// # Errors
    /// [`Error::interrupted`] when the job was ended.
    pub fn wait_open(&self, flags: &LiveCancelFlags) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.open {
            flags.interrupted()?;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        flags.interrupted()
    }

    /// Opens the barrier for those that wait and all that come later.
    pub fn open(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .open = true;
        self.changed.notify_all();
    }

    /// Blocks until `n` endpoints have arrived or the barrier is open.
    pub fn until_waiting(&self, n: u32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.waiting < n && !state.open {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
