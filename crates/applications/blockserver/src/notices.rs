//! Notices that servers and masters print on stderr while they run. Control characters are replaced, since parts of a line may come from a
//! peer; what a peer can cause at will is printed rarely.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two notices about the same thing that a peer can cause.
const REST: Duration = Duration::from_secs(10);

/// Limits notices about an event that a peer can cause at will: events are counted, and reported at most once per [`REST`].
/// Holds the time of the last report, and the count since then.
#[derive(Debug, Default)]
pub(crate) struct Rarely(Mutex<(Option<Instant>, u64)>);

impl Rarely {
    /// Counts an event at `now`. If it is to be reported, returns how many events there were since the last report, this one included.
    pub(crate) fn happened(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += 1;
        if state.0.is_some_and(|said| now.duration_since(said) < REST) {
            return None;
        }
        state.0 = Some(now);
        Some(std::mem::take(&mut state.1))
    }
}

/// Prints a line on stderr, with control characters replaced. An error is ignored: nobody may be reading stderr.
pub fn print_notice(words: &str) {
    let clean: String = words
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    let _ = writeln!(std::io::stderr(), "{clean}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_counted_and_said_rarely() {
        let (rarely, begun) = (Rarely::default(), Instant::now());
        assert_eq!(rarely.happened(begun), Some(1));
        assert!((0..50).all(|_| rarely.happened(begun).is_none()));
        assert_eq!(rarely.happened(begun + REST), Some(51));
    }
}
