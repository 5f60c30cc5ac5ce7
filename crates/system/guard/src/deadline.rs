//! One time limit for several reads: a peer that sends a byte now and then gets no more time than one that sends nothing.

use std::time::{Duration, Instant};

/// The moment by which an exchange as a whole has to be finished.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    ends: Instant,
}

impl Deadline {
    /// The deadline `time` from now.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        Self {
            ends: Instant::now() + time,
        }
    }

    /// The time left, as a timeout for the next read; `None` once the deadline has passed.
    #[must_use]
    pub fn rest(&self) -> Option<Duration> {
        self.ends
            .checked_duration_since(Instant::now())
            .filter(|rest| !rest.is_zero())
    }

    /// The time left, as a timeout for the next read.
    ///
    /// # Errors
    /// `TimedOut` once the deadline has passed.
    pub fn timeout(&self) -> std::io::Result<Duration> {
        self.rest()
            .ok_or_else(|| std::io::ErrorKind::TimedOut.into())
    }
}
