//! Runs simulated sessions, several at a time, each with its own seed, so that neither the order nor the number of
//! processors changes a figure.

use super::case::{MagicCase, MagicFigures, median};
use crate::parallel;
use stackline_core::error::Result;

/// The settings with which an experiment runs its sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lab {
    /// The first seed.
    pub(super) seed: u64,
    /// Largest number of seeds for each session, if there is a limit.
    pub(super) most_seeds: Option<u64>,
}

impl Lab {
    /// Runs a session once with each of `seeds` seeds.
    pub(super) fn runs(&self, case: &MagicCase, seeds: u64) -> Result<Vec<MagicFigures>> {
        let seeds = self.bounded(seeds);
        let each: Vec<(&MagicCase, u64)> =
            (0..seeds).map(|seed| (case, self.seed + seed)).collect();
        Self::all(&each)
    }

    /// For each case, the medians of its figures over `seeds` seeds.
    pub(super) fn medians(&self, seeds: u64, cases: &[MagicCase]) -> Result<Vec<MagicFigures>> {
        let seeds = self.bounded(seeds);
        let each = |case| (0..seeds).map(move |seed| (case, self.seed + seed));
        let runs = Self::all(&cases.iter().flat_map(each).collect::<Vec<_>>())?;
        Ok(runs.chunks(seeds as usize).map(median).collect())
    }

    /// Limits a number of seeds to `most_seeds`, but to no less than one.
    fn bounded(&self, seeds: u64) -> u64 {
        self.most_seeds.map_or(seeds, |most| seeds.min(most.max(1)))
    }

    /// Runs each of them; the results are in the same order.
    fn all(each: &[(&MagicCase, u64)]) -> Result<Vec<MagicFigures>> {
        parallel::each(each, |(case, seed)| case.run(*seed))
            .into_iter()
            .collect()
    }
}
