//! The scene of one run: its network and measurement, which run it is, its seed, and where it is given up.

use stackline_core::network::Network;
use stackline_core::plan::Measurement;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
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

/// Where a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimRunLimits {
    /// Most virtual time.
    pub virtual_time: Duration,
    /// Most packets and steps at one instant: a sender that nothing slows down would go on for ever.
    pub steps_an_instant: u64,
}

impl SimRunLimits {
    /// A day of virtual time, and four million steps at an instant.
    pub const USUAL: Self = Self {
        virtual_time: Duration(86_400_000_000_000),
        steps_an_instant: 4_000_000,
    };
}

impl Default for SimRunLimits {
    fn default() -> Self {
        Self::USUAL
    }
}
