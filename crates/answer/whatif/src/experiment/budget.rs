//! How many runs of an experiment fit into a given time, and what a smaller design gives up. It runs nothing.

use stackline_core::units;
use stackline_factors::{Design, DesignKind};
use std::time::Duration;

/// The time for an experiment, how long a run takes, and how many runs are made at once.
#[derive(Clone, Copy, Debug)]
pub struct RunBudget {
    /// The time for the whole experiment.
    pub within: Duration,
    /// The time of one run.
    pub each: Duration,
    /// How many runs are made at once.
    pub at_once: usize,
}

impl RunBudget {
    /// How many runs fit into the time, between 2 and 100 000.
    #[must_use]
    pub fn runs(&self) -> usize {
        // 20 % is a reserve: runs at other levels may take longer.
        let runs = 0.8 * self.within.as_secs_f64() / self.each.as_secs_f64().max(1e-4)
            * self.at_once as f64;
        (runs as usize).clamp(2, 100_000)
    }

    /// A sentence on the chosen design, and what it gives up compared with a full design.
    #[must_use]
    pub fn given_up(&self, design: &Design, replicates: u32) -> String {
        let full: usize = design.levels.iter().product();
        let (within, runs) = (
            units::format_time(self.within.as_secs_f64()),
            units::format_time(self.each.as_secs_f64()),
        );
        let lost = match (&design.kind, design.resolution()) {
            (DesignKind::Full, _) => "nothing is given up",
            (DesignKind::Fraction(_), Some(3)) => {
                "effects are confounded with two-factor interactions"
            }
            (DesignKind::Fraction(_), Some(4)) => {
                "two-factor interactions are confounded with each other"
            }
            (DesignKind::Fraction(_), _) => {
                "two-factor interactions are confounded with those of three or more factors"
            }
            (DesignKind::Screening, _) => {
                "interactions are not estimated and are partly confounded with the effects"
            }
            (DesignKind::OneAtATime | DesignKind::Given, _) => "interactions are not estimated",
        };
        let combinations = design.rows.len();
        let takes = self.each.as_secs_f64() * combinations as f64 * f64::from(replicates)
            / self.at_once as f64;
        let late = if takes > self.within.as_secs_f64() {
            format!(
                "; the design does not fit: it would take about {}, and no smaller one is useful",
                units::format_time(takes)
            )
        } else {
            String::new()
        };
        format!(
            "within {within}, with runs of {runs} each: {design}, {combinations} of {full} possible combinations, replicates: {replicates}; {lost}{late}"
        )
    }
}
