//! The barrier that the threads of a job wait at before they start their clocks.

use crate::cancel::LiveCancelFlags;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use std::sync::{Condvar, Mutex, PoisonError};

/// Threads wait here before they start their clocks.
#[derive(Debug, Default)]
pub struct Barrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BarrierState {
    waiting: u32,
    open: bool,
}

impl Barrier {
    /// Waits until it is opened.
    ///
    /// # Errors
    /// [`Error::interrupted`].
    pub fn wait(&self, flags: &LiveCancelFlags) -> Result<()> {
        self.arrive();
        self.wait_open(flags)
    }

    /// One more waits, without blocking.
    pub fn arrive(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .waiting += 1;
        self.changed.notify_all();
    }

    /// Whether it was opened.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .open
    }

    /// Blocks until it is opened, for all that have arrived.
    ///
    /// # Errors
    /// [`Error::interrupted`].
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

    /// Lets everybody through, now and later.
    pub fn open(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .open = true;
        self.changed.notify_all();
    }

    /// Blocks until `n` threads wait, or it is open.
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
