//! Times at the marks of one endpoint: since its clock started, and from each mark to the next one it passes. A mark in a
//! repeat is followed by itself: that time is the time of a pass.

use crate::times::Times;
use stackline_core::record::Histogram;
use stackline_core::time::{Duration, Instant};

/// All marks of one program.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Since the start, by mark.
    since_start: Vec<Times>,
    /// From one to the next, by both; taken when they first follow each other.
    between: Vec<Option<Times>>,
    /// The one passed last, and when.
    last: Option<(usize, Instant)>,
}

impl Marks {
    /// Room for this many marks, each with times of its own.
    pub(crate) fn make_room(&mut self, marks: usize, times: impl Fn() -> Times) {
        if self.since_start.len() < marks {
            self.since_start = (0..marks).map(|_| times()).collect();
            self.between = (0..marks * marks).map(|_| None).collect();
        }
    }

    /// A mark was passed `since` the start.
    pub(crate) fn pass(
        &mut self,
        mark: usize,
        now: Instant,
        since: Duration,
        between: impl Fn(Instant) -> Duration,
        times: impl Fn() -> Times,
    ) {
        let marks = self.since_start.len();
        let Some(mine) = self.since_start.get_mut(mark) else { return };
        mine.record(since);
        if let Some((before, at)) = self.last.replace((mark, now)) {
            self.between[before * marks + mark].get_or_insert_with(times).record(between(at));
        }
    }

    /// What was recorded, by name: `first`, and `first -> second` between two.
    pub(crate) fn finish(self, names: &[String]) -> Vec<(String, Histogram)> {
        let pairs = names.iter().flat_map(|from| names.iter().map(move |to| format!("{from} -> {to}")));
        let between = pairs.zip(self.between).filter_map(|(name, times)| Some((name, times?.finish())));
        let since = names.iter().cloned().zip(self.since_start.into_iter().map(Times::finish));
        since.filter(|(_, times)| times.n() > 0).chain(between).collect()
    }
}
