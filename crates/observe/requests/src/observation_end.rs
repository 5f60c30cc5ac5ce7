//! The moment from which on whoever looks ends what goes on: connections that end then were under way, and did not fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// That moment, once it has come; all clones have the same.
#[derive(Clone, Debug, Default)]
pub struct ObservationEnd {
    /// 0: it has not come.
    at_ns: Arc<AtomicU64>,
}

impl ObservationEnd {
    /// From that moment on whoever looks ends programs. Only the first counts.
    pub fn set_moment(&self, at_ns: u64) {
        let first =
            self.at_ns
                .compare_exchange(0, at_ns.max(1), Ordering::Relaxed, Ordering::Relaxed);
        // A later one is due to the first.
        let _ = first;
    }

    /// Whether a moment is behind it.
    #[must_use]
    pub fn has_come_by(&self, at_ns: u64) -> bool {
        let end_ns = self.at_ns.load(Ordering::Relaxed);
        end_ns > 0 && at_ns >= end_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_moment_counts_for_all_clones() {
        let end = ObservationEnd::default();
        let other = end.clone();
        assert!(!other.has_come_by(u64::MAX));
        end.set_moment(10);
        end.set_moment(5);
        assert!(other.has_come_by(10) && !other.has_come_by(9));
    }
}
