//! Who runs the sessions: several at a time, each with its seed, so that neither the order nor the number of processors
//! changes a figure.

use super::case::{Case, Figures, median};
use stackline_core::error::{Error, Result};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lab {
    /// The first seed.
    pub(super) seed: u64,
}

impl Lab {
    /// A session with each of so many seeds.
    pub(super) fn runs(&self, case: &Case, seeds: u64) -> Result<Vec<Figures>> {
        let each: Vec<(&Case, u64)> = (0..seeds).map(|seed| (case, self.seed + seed)).collect();
        Self::all(&each)
    }

    /// Of each case the medians of its figures over so many seeds.
    pub(super) fn medians(&self, seeds: u64, cases: &[Case]) -> Result<Vec<Figures>> {
        let each = |case| (0..seeds).map(move |seed| (case, self.seed + seed));
        let runs = Self::all(&cases.iter().flat_map(each).collect::<Vec<_>>())?;
        Ok(runs.chunks(seeds as usize).map(median).collect())
    }

    /// Each of them, in their order.
    fn all(each: &[(&Case, u64)]) -> Result<Vec<Figures>> {
        let next = AtomicUsize::new(0);
        let take = || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            each.get(index).map(|(case, seed)| (index, case.run(*seed)))
        };
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        let mut found: Vec<(usize, Result<Figures>)> = thread::scope(|scope| {
            let work = || std::iter::from_fn(take).collect::<Vec<_>>();
            let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            started.into_iter().filter_map(|worker| worker.join().ok()).flatten().collect()
        });
        found.sort_by_key(|(index, _)| *index);
        if found.len() < each.len() {
            return Err(Error::measurement("a session came to no figures"));
        }
        found.into_iter().map(|(_, figures)| figures).collect()
    }
}
