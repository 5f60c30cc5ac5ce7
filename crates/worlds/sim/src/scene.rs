//! The scene of one run: its network and measurement, which run it is, its seed, and where it is given up.

use crate::run_limits::SimRunLimits;
use stackline_core::network::Network;
use stackline_core::plan::Measurement;
use stackline_core::random::Seed;
use std::sync::atomic::AtomicBool;

/// What one run needs.
#[derive(Clone, Copy, Debug)]
pub struct SimRunScene<'p> {
    /// The network it runs across.
    pub network: &'p Network,
    /// The measurement.
    pub measurement: &'p Measurement,
    /// Its index in the plan.
    pub index: usize,
    /// Which run of it, from 0.
    pub run: u32,
    /// Whether it is one of those that are left out of every total.
    pub warmup: bool,
    /// The seed of this run.
    pub seed: Seed,
    /// Where it is given up.
    pub limits: SimRunLimits,
    /// Set from outside to end it early, as interrupted.
    pub interrupted: Option<&'p AtomicBool>,
}
