//! Counts, over the connections of an initiator of QUIC, how they shook hands and how often their address changed. A responder counts what
//! it sees of the changes.

use stackline_core::connection_count::{
    EARLY_DATA_REJECTED, HANDSHAKES_EARLY, HANDSHAKES_FULL, HANDSHAKES_RESUMED, MIGRATIONS,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the connections of one side have counted.
#[derive(Debug, Default)]
pub(crate) struct QuicCounts {
    /// Certificates that were verified: a handshake that resumes a session has none.
    pub(super) verified: Arc<AtomicU64>,
    /// Handshakes that are done, as far as an initiator knows.
    done: AtomicU64,
    early: AtomicU64,
    rejected: AtomicU64,
    migrations: AtomicU64,
}

impl QuicCounts {
    /// Counts a handshake that is done, and in which the initiator offered no early data.
    pub(super) fn add_handshake(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a handshake that is done, and whose early data was accepted or rejected.
    pub(super) fn add_early(&self, accepted: bool) {
        self.add_handshake();
        let count = if accepted {
            &self.early
        } else {
            &self.rejected
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a change of the initiator's address.
    pub(super) fn add_migration(&self) {
        self.migrations.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts that are not 0, by name.
    pub(super) fn by_name(&self) -> BTreeMap<String, u64> {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (done, early) = (count(&self.done), count(&self.early));
        let full = count(&self.verified).min(done);
        let counts = [
            (HANDSHAKES_FULL, full),
            (HANDSHAKES_RESUMED, done.saturating_sub(full + early)),
            (HANDSHAKES_EARLY, early),
            (EARLY_DATA_REJECTED, count(&self.rejected)),
            (MIGRATIONS, count(&self.migrations)),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        counts
            .map(|(name, count)| (name.to_string(), count))
            .collect()
    }
}
