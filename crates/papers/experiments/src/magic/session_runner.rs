//! Who runs the sessions: several at a time, each with its seed, so that neither the order nor the number of processors
//! changes a figure.

use super::case::{MagicCase, MagicFigures, median};
use crate::parallel;
use stackline_core::error::Result;

/// Runs sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lab {
    /// The first seed.
    pub(super) seed: u64,
    /// Most seeds of a session, where there is a bound.
    pub(super) most_seeds: Option<u64>,
}

impl Lab {
    /// A session with each of so many seeds.
    pub(super) fn runs(&self, case: &MagicCase, seeds: u64) -> Result<Vec<MagicFigures>> {
        let seeds = self.bounded(seeds);
        let each: Vec<(&MagicCase, u64)> =
            (0..seeds).map(|seed| (case, self.seed + seed)).collect();
        Self::all(&each)
    }

    /// Of each case the medians of its figures over so many seeds.
    pub(super) fn medians(&self, seeds: u64, cases: &[MagicCase]) -> Result<Vec<MagicFigures>> {
        let seeds = self.bounded(seeds);
        let each = |case| (0..seeds).map(move |seed| (case, self.seed + seed));
        let runs = Self::all(&cases.iter().flat_map(each).collect::<Vec<_>>())?;
        Ok(runs.chunks(seeds as usize).map(median).collect())
    }

    fn bounded(&self, seeds: u64) -> u64 {
        self.most_seeds.map_or(seeds, |most| seeds.min(most.max(1)))
    }

    /// Each of them, in their order.
    fn all(each: &[(&MagicCase, u64)]) -> Result<Vec<MagicFigures>> {
        parallel::each(each, |(case, seed)| case.run(*seed))
            .into_iter()
            .collect()
    }
}
