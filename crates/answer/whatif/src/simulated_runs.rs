//! Runs of a plan in the simulated world within a number of events, kept nowhere: what answers are tried with.

use stackline_analyze::Summary;
use stackline_core::error::Blame;
use stackline_core::plan::{Plan, Warmup, World};
use stackline_core::run_record::RunRecord;
use stackline_runner::simulate_within;
use std::cell::Cell;
use std::sync::atomic::AtomicBool;

/// One measurement of a plan, one simulated run for each seed.
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

/// How much is simulated for an answer, in events: time would give another answer on a slower machine.
#[derive(Clone, Debug)]
pub struct SimulationBudget {
    left: Cell<u64>,
}

impl SimulationBudget {
    /// What takes about two seconds: as long as nobody minds to wait for it.
    #[must_use]
    pub const fn moment() -> Self {
        Self::of_events(4_000_000)
    }

    /// With `--simulate`: what takes about a minute.
    #[must_use]
    pub const fn patience() -> Self {
        Self::of_events(120_000_000)
    }

    /// So many.
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

/// What so many runs come to, or as many of them as the budget has events for; else why there is none.
///
/// # Errors
/// Why there is none.
pub fn simulate_summaries(
    plan: &Plan,
    most: u64,
    budget: &SimulationBudget,
) -> Result<Vec<Summary>, String> {
    simulate_records(plan, most, budget).map(|records| stackline_analyze::summarise(plan, &records))
}

/// The same, each run's records.
///
/// # Errors
/// Why there is none.
pub fn simulate_records(
    plan: &Plan,
    most: u64,
    budget: &SimulationBudget,
) -> Result<Vec<RunRecord>, String> {
    let each = budget.left.get() / most.max(1);
    let seeds = plan.seed..=plan.seed.saturating_add(most - 1);
    let (nobody, mut records) = (AtomicBool::new(false), Vec::<RunRecord>::new());
    let made = simulate_within(plan, seeds, each, &nobody, |some, events| {
        budget.spend(events);
        records.extend(some);
    });
    match made.err() {
        Some(error) if error.blame != Blame::Interrupted => Err(error.message),
        gave_up => {
            // The first that takes too much is the last.
            budget.spend(gave_up.map_or(0, |_| each));
            if records.is_empty() {
                Err("no run finished within the limit on simulated events".to_owned())
            } else {
                Ok(records)
            }
        }
    }
}
