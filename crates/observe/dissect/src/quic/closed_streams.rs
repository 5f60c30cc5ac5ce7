//! Remembers which streams of a connection have ended, so that repeated data on them is recognised.

use crate::left_out::Bound;
use std::collections::BTreeSet;

/// The most streams of a kind that have ended while a lower one has not; beyond it, the lower ones count as ended.
const MOST_STREAMS: usize = Bound::QuicStreams.most();

/// Ended streams of each of the four kinds (RFC 9000, 2.1): all below a number, and some above it.
#[derive(Clone, Debug, Default)]
pub struct ClosedStreams([(u64, BTreeSet<u64>); 4]);

impl ClosedStreams {
    /// Notes that a stream has ended.
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

    /// Whether a stream has ended.
    #[must_use]
    pub fn has(&self, stream: u64) -> bool {
        let (below, above) = &self.0[(stream % 4) as usize];
        stream / 4 < *below || above.contains(&(stream / 4))
    }

    /// The memory that this takes, in bytes.
    pub(super) fn held(&self) -> usize {
        let above = self
            .0
            .iter()
            .map(|(_, above)| above.len() * size_of::<u64>());
        above.sum()
    }
}
