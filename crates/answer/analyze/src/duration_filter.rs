//! Selects units by how long they took.

use crate::lifelines::{Lifeline, Lifelines};
use crate::segments::lifeline_duration_ns;
use std::time::Duration;

/// Limits for a unit's time from its first to its last point. With a limit, units that did not arrive are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationFilter {
    /// Only units that arrived and took longer than this.
    pub slower_than: Option<Duration>,
    /// Only units that arrived and took less than this.
    pub faster_than: Option<Duration>,
}

impl DurationFilter {
    /// Whether no limit is set, so that all units are selected.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.slower_than.is_none() && self.faster_than.is_none()
    }

    /// Whether a line is selected.
    #[must_use]
    pub fn has(self, lifelines: &Lifelines, line: &Lifeline) -> bool {
        let ns = i128::from(lifeline_duration_ns(lifelines, line));
        let of = |limit: Duration| i128::try_from(limit.as_nanos()).unwrap_or(i128::MAX);
        let slow = self.slower_than.is_none_or(|limit| ns > of(limit));
        let fast = self.faster_than.is_none_or(|limit| ns < of(limit));
        self.is_any() || line.has_arrived() && slow && fast
    }

    /// Removes the lines that are not selected.
    pub fn leave(self, lifelines: &mut Lifelines) {
        if !self.is_any() {
            let all = std::mem::take(&mut lifelines.lines);
            let left = all
                .into_iter()
                .filter(|line| self.has(lifelines, line))
                .collect();
            lifelines.lines = left;
        }
    }
}
