//! Which streams of a connection are over: nothing of theirs is new any more.

use crate::left_out::Bound;
use std::collections::BTreeSet;

/// Streams that are over while others below them are not; of more the lowest counts for all below it.
const MOST_STREAMS: usize = Bound::QuicStreams.most();

/// Streams that are over, of each of the four kinds: all below a number, and some above it.
#[derive(Clone, Debug, Default)]
pub struct ClosedStreams([(u64, BTreeSet<u64>); 4]);

impl ClosedStreams {
    /// One more is over.
    pub fn add(&mut self, stream: u64) {
        let (below, above) = &mut self.0[(stream % 4) as usize];
        above.insert(stream / 4);
        if above.len() > MOST_STREAMS {
            *below = above.first().copied().unwrap_or(*below);
        }
        while above.remove(below) {
            *below += 1;
        }
    }

    /// Whether one is over.
    #[must_use]
    pub fn has(&self, stream: u64) -> bool {
        let (below, above) = &self.0[(stream % 4) as usize];
        stream / 4 < *below || above.contains(&(stream / 4))
    }

    /// Bytes that it takes.
    pub(super) fn held(&self) -> usize {
        let above = self
            .0
            .iter()
            .map(|(_, above)| above.len() * size_of::<u64>());
        above.sum()
    }
}
