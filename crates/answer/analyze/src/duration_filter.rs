//! Units by how long they took.

use crate::lifelines::{Lifeline, Lifelines};
use crate::segments::lifeline_duration_ns;
use std::time::Duration;

/// Units by their time from the first to the last point; those that never arrived have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationFilter {
    /// Only what arrived and took longer than this.
    pub slower_than: Option<Duration>,
    /// Only what arrived and took less than this.
    pub faster_than: Option<Duration>,
}

impl DurationFilter {
    /// Whether nothing is chosen.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.slower_than.is_none() && self.faster_than.is_none()
    }

    /// Whether a line is among them.
    #[must_use]
    pub fn has(self, lifelines: &Lifelines, line: &Lifeline) -> bool {
        let ns = i128::from(lifeline_duration_ns(lifelines, line));
        let of = |limit: Duration| i128::try_from(limit.as_nanos()).unwrap_or(i128::MAX);
        let slow = self.slower_than.is_none_or(|limit| ns > of(limit));
        let fast = self.faster_than.is_none_or(|limit| ns < of(limit));
        self.is_any() || line.has_arrived() && slow && fast
    }

    /// Leaves the lines that are among them.
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
