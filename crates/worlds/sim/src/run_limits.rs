//! Where a simulated run is given up: its greatest virtual time, and the greatest number of events, in all and at one instant.

use stackline_core::time::Duration;

/// Where a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimRunLimits {
    /// Most virtual time.
    pub virtual_time: Duration,
    /// Most packets and steps at one instant: a sender that nothing slows down would go on for ever.
    pub steps_an_instant: u64,
    /// Most events: a run that needs more is given up as if it were interrupted.
    pub events: u64,
}

impl SimRunLimits {
    /// A day of virtual time, four million steps at an instant, and as many events as it takes.
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
