//! The scene of one run: its network and measurement, which run it is, its seed, and the limits at which it is given
//! up.

use crate::run_limits::SimRunLimits;
use stackline_core::network::Network;
use stackline_core::plan::Measurement;
use stackline_core::random::Seed;
use std::sync::atomic::AtomicBool;

/// The input of one run.
#[derive(Clone, Copy, Debug)]
pub struct SimRunScene<'p> {
    /// The network that the run goes across.
    pub network: &'p Network,
    /// The measurement.
    pub measurement: &'p Measurement,
    /// The index of the measurement in the plan.
    pub index: usize,
    /// The number of the run, from 0.
    pub run: u32,
    /// Whether the run is left out of every total.
    pub warmup: bool,
    /// The seed of this run.
    pub seed: Seed,
    /// The limits at which the run is given up.
    pub limits: SimRunLimits,
    /// Set from outside to end the run early, as interrupted.
    pub interrupted: Option<&'p AtomicBool>,
}
