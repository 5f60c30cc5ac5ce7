//! Limits how fast secrets can be guessed: every wrong secret makes the answer to the next wrong one wait longer, whichever peer sends it.
//!
//! The delay doubles from 50 ms up to 2 s and is forgotten after 10 s without a failure, so a typing mistake costs nothing noticeable,
//! and a guesser gets one attempt every 2 s for each connection that it can hold: 32 a second for the 64 strangers of a display service. A
//! right secret is not delayed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The delay after the first failure.
const FIRST: Duration = Duration::from_millis(50);
/// The longest delay.
const LONGEST: Duration = Duration::from_secs(2);
/// After this time without a failure the delay begins anew.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// Failed attempts of all peers of one service.
#[derive(Debug, Default)]
pub struct Attempts {
    /// When the last attempt failed, and its delay.
    failed: Mutex<Option<(Instant, Duration)>>,
}

impl Attempts {
    /// Notes that an attempt has failed at `now`. Returns how long its answer has to wait.
    #[must_use]
    pub fn failed(&self, now: Instant) -> Duration {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let delay = match *failed {
            Some((last, delay)) if now.saturating_duration_since(last) < FORGOTTEN => {
                (delay * 2).min(LONGEST)
            }
            _ => FIRST,
        };
        *failed = Some((now, delay));
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_bound_and_are_forgotten() {
        let (attempts, begun) = (Attempts::default(), Instant::now());
        let delays: Vec<_> = (0..8).map(|_| attempts.failed(begun).as_millis()).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(attempts.failed(begun + FORGOTTEN), FIRST);
    }
}
