//! One bound of time on several reads: a peer that sends a byte now and then gets no more time than one that sends nothing.

use std::time::{Duration, Instant};

/// A moment by which something has to be done as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    ends: Instant,
}

impl Deadline {
    /// So long from now.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        Self {
            ends: Instant::now() + time,
        }
    }

    /// What is left of it, as a timeout for the next read; `None` once it has passed.
    #[must_use]
    pub fn rest(&self) -> Option<Duration> {
        self.ends
            .checked_duration_since(Instant::now())
            .filter(|rest| !rest.is_zero())
    }

    /// What is left of it, as a timeout for the next read.
    ///
    /// # Errors
    /// `TimedOut` once it has passed.
    pub fn timeout(&self) -> std::io::Result<Duration> {
        self.rest()
            .ok_or_else(|| std::io::ErrorKind::TimedOut.into())
    }
}
