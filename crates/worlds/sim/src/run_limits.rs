//! The limits at which a simulated run is given up: virtual time, the number of events in all, and the number of steps
//! at one instant.

use stackline_core::time::Duration;

/// The limits at which a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimRunLimits {
    /// The greatest virtual time.
    pub virtual_time: Duration,
    /// The most packets and steps at one instant: a sender that nothing slows down would go on for ever.
    pub steps_an_instant: u64,
    /// The most events: a run that needs more is given up as if it were interrupted.
    pub events: u64,
}

impl SimRunLimits {
    /// A day of virtual time, four million steps at an instant, and no limit of events.
    pub const USUAL: Self = Self {
        virtual_time: Duration(86_400_000_000_000),
        steps_an_instant: 4_000_000,
        events: u64::MAX,
    };
}

impl Default for SimRunLimits {
    fn default() -> Self {
        Self::USUAL
    }
}
