//! Counts how the connections of a side shook hands.

use rustls::{CommonState, HandshakeKind};
use stackline_core::connection_count::{EARLY_DATA_REJECTED, HandshakeOutcome};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often handshakes came about how.
#[derive(Debug, Default)]
pub(crate) struct HandshakeCounts {
    full: AtomicU64,
    resumed: AtomicU64,
    early: AtomicU64,
    /// Those whose early data was sent again, which are also in `full` or `resumed`.
    rejected: AtomicU64,
}

impl HandshakeCounts {
    /// Counts a handshake that is done.
    pub(super) fn add(&self, outcome: HandshakeOutcome) {
        let count = match outcome {
            HandshakeOutcome::Full => &self.full,
            HandshakeOutcome::Resumed => &self.resumed,
            HandshakeOutcome::Early => &self.early,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts early data that was rejected.
    pub(super) fn reject_early_data(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts that are not 0, by name.
    pub(super) fn by_name(&self) -> BTreeMap<String, u64> {
        let outcomes = [
            (HandshakeOutcome::Full, &self.full),
            (HandshakeOutcome::Resumed, &self.resumed),
            (HandshakeOutcome::Early, &self.early),
        ];
        outcomes
            .map(|(outcome, count)| (outcome.count_name(), count))
            .into_iter()
            .chain([(EARLY_DATA_REJECTED, &self.rejected)])
            .map(|(name, count)| (name.to_string(), count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// How a session of TLS shook hands, apart from its early data.
pub(super) fn handshake_outcome(session: &CommonState) -> HandshakeOutcome {
    match session.handshake_kind() {
        Some(HandshakeKind::Resumed) => HandshakeOutcome::Resumed,
        _ => HandshakeOutcome::Full,
    }
}
