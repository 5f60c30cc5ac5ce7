//! Predicts by simulation what no formula covers: a few runs with different seeds, kept only in memory.

use crate::simulated_runs::{SimulationBudget, simulate_summaries, single_group_plan};
use stackline_analyze::predicted::{PartPrediction, PredictionOutcome, RUNS, by_simulation};
use stackline_core::error::Result;
use stackline_core::plan::Plan;

/// Replaces predictions that are not covered by those of simulated runs, as far as the budget allows, or adds why that is not
/// possible. `simulated` makes the plan for the simulated world; it is called only if needed.
pub fn fill_by_simulation(
    simulated: impl FnOnce() -> Result<Plan>,
    predictions: &mut [PartPrediction],
    budget: &SimulationBudget,
) {
    let open = |prediction: &&PartPrediction| {
        prediction.answer().is_none() && prediction.network.is_some()
    };
    let mut indices: Vec<usize> = predictions
        .iter()
        .filter(open)
        .map(|prediction| prediction.measurement)
        .collect();
    indices.dedup();
    let plan = if indices.is_empty() {
        None
    } else {
        Some(simulated())
    };
    for index in indices {
        let found = match &plan {
            Some(Ok(plan)) => simulate_summaries(&single_group_plan(plan, index), RUNS, budget)
                .map_err(|failure| failure.to_string()),
            Some(Err(error)) => Err(error.message.clone()),
            None => return,
        };
        for prediction in predictions
            .iter_mut()
            .filter(|prediction| prediction.measurement == index)
        {
            let PredictionOutcome::NotCovered(reason) = &prediction.outcome else {
                continue;
            };
            prediction.outcome = match &found {
                Ok(summaries) => {
                    let summary = summaries
                        .iter()
                        .find(|summary| summary.part_index == prediction.part_index);
                    let outcome = summary.and_then(|summary| by_simulation(reason, summary, RUNS));
                    outcome.unwrap_or_else(|| {
                        unknown(reason, "too few runs finished, and their results differ")
                    })
                }
                Err(why) => unknown(reason, why),
            };
        }
    }
}

/// The outcome "not covered", with why simulation did not help.
fn unknown(reason: &str, why: &str) -> PredictionOutcome {
    PredictionOutcome::NotCovered(format!("{reason}; simulated: {why}"))
}
