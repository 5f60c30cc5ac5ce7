//! What servers and masters say while they run, on stderr: each line once, with nothing of others in it that steers a terminal.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often what a peer can make happen is said.
const REST: Duration = Duration::from_secs(10);

/// Something that happens as often as somebody else wants: it is counted, and said now and then.
#[derive(Debug, Default)]
pub(crate) struct Rarely(Mutex<(Option<Instant>, u64)>);

impl Rarely {
    /// It happened at `now`. Where it is to be said, how often it did since that was last.
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

/// Says a line; where nobody listens, nothing.
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
