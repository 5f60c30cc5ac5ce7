//! Simulates runs of a plan within a budget of simulated events; the results are kept only in memory.

use stackline_analyze::Summary;
use stackline_core::error::Blame;
use stackline_core::plan::{Plan, Warmup, World};
use stackline_core::run_record::RunRecord;
use stackline_runner::simulate_within;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// A plan with one measurement of `plan`, as one simulated run without warm-up.
#[must_use]
pub fn single_group_plan(plan: &Plan, index: usize) -> Plan {
    let mut one = plan.clone();
    one.measurements = plan.measurements.get(index).cloned().into_iter().collect();
    for measurement in &mut one.measurements {
        (measurement.runs, measurement.until, measurement.warmup) = (1, None, Warmup::Runs(0));
        measurement.world = World::Simulated;
    }
    one
}

/// How much may be simulated for an answer, in simulated events. A limit of time would give other answers on slower machines.
#[derive(Clone, Debug)]
pub struct SimulationBudget {
    /// Events that may still be simulated.
    left: Cell<u64>,
}

impl SimulationBudget {
    /// The default budget: about two seconds of simulation.
    #[must_use]
    pub const fn moment() -> Self {
        Self::of_events(4_000_000)
    }

    /// The budget with `--simulate`: about a minute of simulation.
    #[must_use]
    pub const fn patience() -> Self {
        Self::of_events(120_000_000)
    }

    /// A budget of so many events.
    #[must_use]
    pub const fn of_events(events: u64) -> Self {
        Self {
            left: Cell::new(events),
        }
    }

    /// Events that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    fn spend(&self, events: u64) {
        self.left.set(self.left.get().saturating_sub(events));
    }
}

/// Why nothing was simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulationFailure {
    /// No run finished within the limit on simulated events.
    TooManyEvents,
    /// The run itself failed, for this reason.
    Failed(String),
}

impl fmt::Display for SimulationFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyEvents => {
                to.write_str("no run finished within the limit on simulated events")
            }
            Self::Failed(why) => to.write_str(why),
        }
    }
}

/// The summaries of `most` simulated runs, or of as many as the budget allows.
///
/// # Errors
/// If no run could be made: the reason.
pub fn simulate_summaries(
    plan: &Plan,
    most: u64,
    budget: &SimulationBudget,
) -> Result<Vec<Summary>, SimulationFailure> {
    simulate_records(plan, most, budget).map(|records| stackline_analyze::summarise(plan, &records))
}

/// The records of `most` simulated runs, or of as many as the budget allows. Each run may use an equal share of the budget.
///
/// # Errors
/// If no run could be made: the reason.
pub fn simulate_records(
    plan: &Plan,
    most: u64,
    budget: &SimulationBudget,
) -> Result<Vec<RunRecord>, SimulationFailure> {
    let each = budget.left.get() / most.max(1);
    let seeds = plan.seed..=plan.seed.saturating_add(most - 1);
    let (nobody, mut records) = (AtomicBool::new(false), Vec::<RunRecord>::new());
    let made = simulate_within(plan, seeds, each, &nobody, |some, events| {
        budget.spend(events);
        records.extend(some);
    });
    match made.err() {
        Some(error) if error.blame != Blame::Interrupted => {
            Err(SimulationFailure::Failed(error.message))
        }
        gave_up => {
            // The first run that exceeds its share ends the series; its events are charged too.
            budget.spend(gave_up.map_or(0, |_| each));
            if records.is_empty() {
                Err(SimulationFailure::TooManyEvents)
            } else {
                Ok(records)
            }
        }
    }
}
