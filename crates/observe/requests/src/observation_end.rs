//! The moment from which the observer itself ends programs. Connections that end after it were under way: they did not fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The moment, once it has come; all clones share it.
#[derive(Clone, Debug, Default)]
pub struct ObservationEnd {
    /// The moment, ns; 0 while it has not come.
    at_ns: Arc<AtomicU64>,
}

impl ObservationEnd {
    /// Sets the moment, ns; only the first call counts.
    pub fn set_moment(&self, at_ns: u64) {
        let first =
            self.at_ns
                .compare_exchange(0, at_ns.max(1), Ordering::Relaxed, Ordering::Relaxed);
        // A failed exchange means that the moment was set before; a later end follows from the first one.
        let _ = first;
    }

    /// Whether the moment had come by `at_ns`.
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
